"""A table on this machine's disk that is reached as if it were in an object store."""

from dataclasses import dataclass, field

from backfill_assets.adapters.storage.object_store import ObjectFolder, Stored
from backfill_assets.adapters.storage.warehouse import TableLocation

__all__ = ["CountingFolder", "StoredLocation", "stored_at"]


@dataclass(frozen=True, kw_only=True)
class CountingFolder(ObjectFolder):
    """A folder that remembers what was requested of it: objects, and their sizes; and of which folders it was listed."""

    requested: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)

    def get(self, path: str) -> bytes | None:
        self.requested.append(path)
        return super().get(path)

    def head(self, path: str) -> Stored | None:
        self.requested.append(path)
        return super().head(path)

    def listed(self, prefix: str, *, after: str | None = None) -> dict[str, Stored]:
        self.lists.append(prefix)
        return super().listed(prefix, after=after)

    def taken(self) -> list[str]:
        """The names of what was requested since this was asked before, sorted; versions for entries of a log."""
        found = sorted(path.rpartition("/")[2].removesuffix(".json").lstrip("0") or "0" for path in self.requested)
        self.requested.clear()
        return found


@dataclass(frozen=True, kw_only=True)
class StoredLocation(TableLocation):
    """A table in a counting folder."""

    counting: CountingFolder

    @property
    def is_local(self) -> bool:
        return False

    def objects(self) -> ObjectFolder:
        return self.counting


def stored_at(uri: str, *, has_tail: bool = False) -> StoredLocation:
    """The table at a path."""
    return StoredLocation(uri=uri, counting=CountingFolder(uri=uri), has_tail=has_tail)
