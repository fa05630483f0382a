"""Where tables live, and plain file access there: one warehouse on local disk or in an object store."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from deltalake.fs import DeltaStorageHandler

__all__ = ["TableLocation", "Warehouse"]


@dataclass(frozen=True, kw_only=True)
class TableLocation:
    """One table's address with what is needed to reach it."""

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Whether it is a path on this machine's disk."""
        return "://" not in self.uri

    def load(self, version: int | None = None) -> DeltaTable | None:
        """The table, at its newest or the given version; None where there is none."""
        try:
            return DeltaTable(self.uri, version=version, storage_options=dict(self.storage_options) or None)
        except TableNotFoundError:
            return None

    def files(self) -> pafs.FileSystem:
        """A file system whose root is the table's folder."""
        return pafs.PyFileSystem(DeltaStorageHandler(self.uri, dict(self.storage_options) or None))

    def child(self, path: str) -> str:
        """The address of a path inside the table, as Spark takes it."""
        return f"{self.uri.rstrip('/')}/{path}"


@dataclass(frozen=True, kw_only=True)
class Warehouse:
    """The folder (or bucket prefix) that holds `sources/`, `views/` and `_state/`."""

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def at(cls, place: str, *, root: Path, storage_options: Mapping[str, str] | None = None) -> "Warehouse":
        """A warehouse from a URI or a path; a relative path is meant against the project's root."""
        path = place.removeprefix("file://")
        uri = path if "://" in path else str((root / path).resolve())
        return cls(uri=uri.rstrip("/"), storage_options=dict(storage_options or {}))

    @property
    def is_local(self) -> bool:
        """Whether it lies on this machine's disk."""
        return "://" not in self.uri

    def table(self, path: str) -> TableLocation:
        """The table at a path such as `views/revenue` or `_state/ledger`."""
        return TableLocation(uri=f"{self.uri}/{path}", storage_options=self.storage_options)
