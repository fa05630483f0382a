"""The small documents of the state store: JSON objects of one table each, which are replaced as a whole."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypeGuard, TypeVar

from backfill_assets.adapters.storage.documents import DocumentKind
from backfill_assets.adapters.storage.object_store import ObjectFolder, Stored
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.errors import StoredFormatError

if TYPE_CHECKING:
    from obstore import PutResult

__all__ = ["Documents"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Documents(Generic[T]):
    """JSON documents of one kind: one for each table, or several. The newest content counts; each is written at once.

    `inside` is what names of this kind have after the name of a table; `empty_is_none`: an empty object is no document.
    Reading a document that is of another format, or damaged, is a `StoredFormatError`.
    """

    place: str
    kind: DocumentKind
    warehouse: Warehouse
    make: Callable[[str, dict[str, Any]], T]
    inside: str = ""
    empty_is_none: bool = False
    _known: dict[str, tuple[Stored, T]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def folder(self) -> ObjectFolder:
        """Where they lie."""
        return self.warehouse.objects(self.place)

    def name(self, target: str, *inside: str) -> str:
        """The name of a table's document, or of one of several."""
        return "/".join((f"{target}{self.inside}", *inside)) + ".json"

    def put(self, name: str, **document: object) -> "PutResult":
        written = self.kind.written({**document, "written_at": datetime.now(UTC).isoformat()})
        return self.folder.put(name, json.dumps(written).encode())

    def get(self, name: str) -> T | None:
        content = self.folder.get(name)
        return self.read(name, content) if self._is_document(content) else None

    def read(self, name: str, content: bytes) -> T:
        target = "/".join(name.split("/")[:2])
        return self.kind.read(content, partial(self.make, target), target=target, place=f"object {self.place}/{name}")

    def listed(self, target: str, found: Mapping[str, Stored]) -> list[T]:
        """Those of a table, of what a list has found; each is requested only if the store had another one there before."""
        key = f"{target}{self.inside}"
        names = sorted(
            name
            for name, stored in found.items()
            if (name == f"{key}.json" or name.startswith(f"{key}/")) and (stored.size or not self.empty_is_none)
        )
        before = {name: self._known.pop(name) for name in [*self._known] if name.startswith(f"{target}/")}
        self._known.update((name, before[name]) for name in names if before.get(name, (None,))[0] == found[name])
        new = [name for name in names if name not in self._known]
        for name, content in zip(new, self.folder.get_all(new), strict=True):
            if self._is_document(content):  # it may have been deleted at this moment
                self._known[name] = (found[name], self.read(name, content))
        return [self._known[name][1] for name in names if name in self._known]

    def all(self) -> Mapping[str, T]:
        """The documents of all sources and views, by table; of kinds that have one for each."""
        ending = f"{self.inside}.json"
        names = [
            name
            for kind in ("sources", "views")
            for name, size in sorted(self.folder.sizes(kind).items())
            if name.endswith(ending) and (size or not self.empty_is_none)
        ]
        contents = zip(names, self.folder.get_all(names), strict=True)
        return _Read(self, {name.removesuffix(ending): found for name, found in contents if self._is_document(found)})

    def of(self, target: str) -> list[str]:
        """The names of the documents of a table."""
        return [self.name(target), *self.folder.names(f"{target}{self.inside}")]

    def remove(self, target: str) -> None:
        """Delete the documents of a table."""
        self.folder.delete(self.of(target))

    def remove_unreadable(self, target: str) -> list[str]:
        """Delete those documents of a table that cannot be read; the names of the objects."""
        found = [name for name in self.of(target) if not self._is_readable(name)]
        self.folder.delete(found)
        return [f"{self.place}/{name}" for name in found]

    def _is_document(self, content: bytes | None) -> TypeGuard[bytes]:
        return content is not None and (content != b"" or not self.empty_is_none)

    def _is_readable(self, name: str) -> bool:
        try:
            self.get(name)
        except StoredFormatError:
            return False
        return True


@dataclass(frozen=True, eq=False)
class _Read(Mapping[str, T]):
    """The documents that were read, by table; an error is that of the table that is asked for."""

    documents: "Documents[T]"
    contents: Mapping[str, bytes]

    def __getitem__(self, target: str) -> T:
        return self.documents.read(self.documents.name(target), self.contents[target])

    def __contains__(self, target: object) -> bool:
        return target in self.contents

    def __iter__(self) -> Iterator[str]:
        return iter(self.contents)

    def __len__(self) -> int:
        return len(self.contents)
