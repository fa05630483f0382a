"""The folder of all tables, and file access there: one warehouse on local disk or in an object store."""

import logging
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler

from backfill_assets.adapters.storage.access import settings_of_spark
from backfill_assets.adapters.storage.addresses import address
from backfill_assets.adapters.storage.copied_log import CopiedLog, CopiedTable, entry_of
from backfill_assets.adapters.storage.object_store import ObjectFolder, Stored
from backfill_assets.adapters.storage.store_errors import cannot_be_read, masking, of_store, said
from backfill_assets.adapters.storage.store_files import StoreFiles
from backfill_assets.errors import EnvironmentSetupError

__all__ = ["LoadedTable", "Mark", "TableLocation", "Warehouse"]

_log = logging.getLogger(__name__)

_REMEMBERED = 2**25
"""The bytes of files that are remembered at most."""

_LISTED = 50
"""So many files of a folder are looked for in its list, which tells a thousand objects with each request."""

Mark = tuple[int, Stored]
"""A commit of a log: its version, and what is said of its entry. Stores that tell times in whole seconds, within which
entries of one size may take each other's place, give each a tag."""


@dataclass(frozen=True, kw_only=True)
class TableLocation:
    """One table's address, with everything that is needed to reach it."""

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)  # they may hold secrets
    has_tail: bool = False
    """Whether this project writes the table, so that its log may have a tail (`log_tail`)."""

    @property
    def is_local(self) -> bool:
        """Whether it is a path on this machine's disk."""
        return "://" not in self.uri

    def load(self, version: int | None = None) -> DeltaTable | None:
        """The table, at its newest or the given version; None if it does not exist.

        Errors: `EnvironmentSetupError` if its store cannot be read; delta-rs's own if its log cannot.
        """
        try:
            return DeltaTable(self.uri, version=version, storage_options=dict(self.storage_options) or None)
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            if isinstance(error, DeltaError) and not of_store(error):
                raise
            raise self.cannot_be_read(error) from None

    def ask(self) -> None:
        """Called before the table's store is first read: raises if it does not answer, where that can be found out soon."""

    def cannot_be_read(self, error: Exception) -> EnvironmentSetupError:
        """The error about a store that does not answer a read, or refuses it; or about this machine's own disk, where a log
        is copied."""
        if isinstance(error, OSError) and error.errno is not None and not self.is_local:
            return EnvironmentSetupError(
                f"the temporary folder {tempfile.gettempdir()} of this machine cannot be used: {said(error, {})}",
                hint="free some space there, or set TMPDIR to another folder",
            )
        return cannot_be_read("the table", self.uri, error, self.storage_options)

    def files(self) -> pafs.FileSystem:
        """A file system whose root is the table's folder."""
        if self.is_local:
            return pafs.PyFileSystem(DeltaStorageHandler(self.uri, dict(self.storage_options) or None))
        return pafs.PyFileSystem(StoreFiles(self.uri, self.storage_options))

    def commit_mark(self, version: int) -> "Mark | None":
        """What distinguishes a commit from another one with the same version; None if the log does not have it."""
        path = entry_of(version)
        if not self.is_local:
            head = self.objects().head(path)
            return None if head is None else (version, head)
        (info,) = self.files().get_file_info([path])
        return (version, Stored(size=info.size, modified=info.mtime_ns, tag=None)) if info.is_file else None

    def content(self, path: str, *, again: bool = False) -> bytes | None:
        """What is in a small file; None if it does not exist. An entry of the log that was loaded is read `again` only if
        that is asked for."""
        if not self.is_local:
            known = None if again else self.followed.content(path)
            return self.objects().get(path) if known is None else known
        try:
            with self.files().open_input_stream(path) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def sizes(self, paths: Sequence[str]) -> dict[str, int]:
        """The sizes of those of these files that exist."""
        if self.is_local:
            return {info.path: info.size for info in self.files().get_file_info(list(paths)) if info.is_file}
        known = {path: len(self._put_here[path]) for path in paths if path in self._put_here}
        known |= self._listed([path for path in paths if path not in known])
        others = [path for path in paths if path not in known]
        found = zip(others, self.objects().head_all(others), strict=True)
        return known | {path: head.size for path, head in found if head is not None}

    def _listed(self, paths: Sequence[str]) -> dict[str, int]:
        """The sizes of those files that lists of folders with many of them show. A store's lists may lag behind, so others
        are to be looked for one by one."""
        wanted, folders = set(paths), Counter(path.rpartition("/")[0] for path in paths)
        lists = [self.objects().sizes(folder) for folder, many in folders.items() if many >= _LISTED]
        return {path: size for each in lists for path, size in each.items() if path in wanted}

    def put_file(self, path: str, content: bytes) -> None:
        """Write a file, and remember it until `forget_files`, if it is small: the store has acknowledged it. Errors:
        `EnvironmentSetupError` if the store refuses it."""
        self.objects().put(path, content)
        if sum(map(len, self._put_here.values())) + len(content) <= _REMEMBERED and not self.is_local:
            self._put_here[path] = content

    def forget_files(self) -> None:
        """Look for files in the store again that were written here, because others may have deleted them meanwhile."""
        self._put_here.clear()

    def opened(self, path: str) -> pa.NativeFile:
        """A file to be read; one that is remembered, without a request."""
        known = self._put_here.get(path)
        return self.files().open_input_file(path) if known is None else pa.BufferReader(known)

    def write(self, path: str, content: bytes) -> None:
        """Write a small file into the table's folder."""
        if not self.is_local:
            self.objects().put(path, content)
            return
        # The underlying handler: streams that pyarrow makes from it write buffers, which it does not accept.
        handler: Any = DeltaStorageHandler(self.uri, dict(self.storage_options) or None)._handler
        with masking(self.storage_options):
            stream = handler.open_output_stream(path, None)
            stream.write(content)
            stream.close()

    def put_entry(self, version: int, content: bytes) -> bool:
        """Write an entry of the log, unless the log has that version; returns as `ObjectFolder.put_if_absent`."""
        written, tag = self.objects().put_new(entry_of(version), content)
        if written and tag is not None:
            self.followed.put(version, tag, content)
        return written

    def objects(self) -> ObjectFolder:
        """The folder's small objects, with put-if-absent."""
        return self._objects

    @cached_property
    def followed(self) -> "LoadedTable":
        """The table as all that hold this object follow it: what one of them has loaded, the others need not load again.

        It may be loaded from a copy of its log; `to_write` is for those who change it.
        """
        return LoadedTable(self)

    def make_checkpoint(self, version: int) -> None:
        """Write a checkpoint of a version. Errors: as `load`; those of delta-rs."""
        if not self.followed.make_checkpoint(version) and (loaded := self.load(version)) is not None:
            loaded.create_checkpoint()

    def to_write(self, table: DeltaTable) -> DeltaTable:
        """A loaded version as delta-rs commits on it. Errors: as `load`; those of delta-rs if it is gone."""
        if not isinstance(table, CopiedTable):
            return table
        loaded = self.load(table.version())
        assert loaded is not None
        return loaded

    def last(self) -> DeltaTable | None:
        """The table at the version that was loaded last, without a request; if none was, the newest. Errors: as `load`."""
        return self.followed.loaded or self.followed.newest()

    def at(self, version: int) -> DeltaTable | None:
        """The table at a version, without a request if it is known. Errors: as `load`."""
        return self.followed.at(version) or self.load(version)

    @cached_property
    def _put_here(self) -> dict[str, bytes]:
        return {}

    @cached_property
    def _objects(self) -> ObjectFolder:
        """Kept, as its client keeps connections."""
        return ObjectFolder(uri=self.uri, storage_options=self.storage_options)

    def child(self, path: str) -> str:
        """The address of a path inside the table, in Spark's form."""
        return f"{self.uri.rstrip('/')}/{path}"


@dataclass
class LoadedTable:
    """A table that is loaded once and then follows its log: only new commits are read. The log of an object store is copied,
    if it has nothing that only delta-rs reads.

    If the log was restored or replaced, the commit of the known version differs, and the table is loaded again. Whoever needs
    it at the version of a moment has to see whether it still is.
    """

    location: TableLocation
    mark: Mark | None = field(default=None, init=False)
    """The commit of the version that is known, by which another log in the table's place is noticed."""
    loaded: DeltaTable | None = field(default=None, init=False)
    """The table at the version that was loaded last; None if none was."""
    loads: int = field(default=0, init=False)
    """How many times it was loaded anew: what was read of the log before may be of another one."""
    _copy: CopiedLog | None = field(default=None, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def newest(self) -> DeltaTable | None:
        """The table at its newest version; None if it does not exist. Errors: as `TableLocation.load`."""
        try:
            with self._lock:
                return self._newest()
        except OSError as error:
            raise self.location.cannot_be_read(error) from None

    def _newest(self) -> DeltaTable | None:
        if not self.location.is_local and (copy := self._copied()) is not None:
            at, self.loaded = copy.table.version(), copy.table
            self.mark = (at, copy.entries[at])
            return self.loaded
        known, table = self.mark, self.loaded
        if table is None or known is None or self._commit(known[0]) != known:
            self.loaded, known = self.location.load(), None
            self.loads += 1
        # Asking for one entry avoids listing the whole log, as delta-rs does to find newer versions.
        elif newer := self._commit(table.version() + 1):
            table.update_incremental()
            known = newer
        self.mark = self._mark(known)
        return self.loaded

    def _copied(self) -> CopiedLog | None:
        """The copy of the log as it is now; None if it is not copied."""
        if self._copy is not None and self.mark is not None and self._copy.follow():
            return self._copy
        if self._copy is None and self.mark is not None:
            return None  # it was loaded by delta-rs
        self.location.ask()
        where = self.location
        self._copy = CopiedLog.newest(where.uri, where.objects(), has_tail=where.has_tail)
        self.loaded = self.mark = None
        self.loads += 1
        return self._copy

    def at(self, version: int) -> DeltaTable | None:
        """The table at a version, without a request; None if it is not known."""
        if self.loaded is not None and self.loaded.version() == version:
            return self.loaded
        return None if self._copy is None else self._copy.at(version)

    @contextmanager
    def log(self, version: int) -> "Iterator[TableLocation]":
        """Where a version is read: in the copy of its log, which stays meanwhile, or in the table's own place."""
        copy = self._copy
        yield self.location if copy is None or not copy.has(version) else TableLocation(uri=str(copy.folder))

    def make_checkpoint(self, version: int) -> bool:
        """Write a checkpoint of a version from the copy; False if the newest is another, or not copied. Errors: `newest`."""
        if self._copy is None or (table := self.newest()) is None or self._copy is None or table.version() != version:
            return False
        self._copy.make_checkpoint()
        self.keep()
        return True

    def content(self, path: str) -> bytes | None:
        """What an entry of the log holds, if it is in the copy that was loaded."""
        return None if self._copy is None else self._copy.content(path)

    def put(self, version: int, tag: str, content: bytes) -> None:
        """Take note of an entry that this process has put, and of the tag that the store gave it."""
        if self._copy is not None:
            self._copy.known[entry_of(version)] = (tag, content)

    def keep(self) -> None:
        """Keep the end of the log as it was loaded last, so that the next run need not request each of its entries."""
        if self._copy is None or not self.location.has_tail:
            return
        try:
            self._copy.keep()
        except Exception as error:  # of as many kinds as there are stores; the table is as it should be without it
            why = said(error, self.location.storage_options)
            _log.info("%s: the end of its log was not kept: %s", self.location.uri, why)

    def _mark(self, known: Mark | None) -> Mark | None:
        """The commit of the loaded version, which is asked for unless it is known."""
        if self.loaded is None or (known is not None and known[0] == self.loaded.version()):
            return known
        return self._commit(self.loaded.version())

    def has_newer(self) -> bool:
        """Whether the log has a newer version than the one that was loaded."""
        return self.loaded is not None and self._commit(self.loaded.version() + 1) is not None

    def forget(self) -> None:
        """Load the table again next time, because it is unknown what happened to it."""
        self.mark = None

    def _commit(self, version: int) -> Mark | None:
        return self.location.commit_mark(version)


_ODD = re.compile(r"[\[\]|^\\]|%[0-9A-Fa-f]{2}")
"""What delta-rs 1.6 refuses in an address, some of it by a panic, or decodes."""

_PATTERN = re.compile(r"[*{}]")
"""What Spark takes for a pattern in an address, besides what is refused anyway."""


@dataclass(frozen=True, kw_only=True)
class Warehouse:
    """The folder (or bucket prefix) that holds `sources/`, `views/` and `_state/`."""

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)  # they may hold secrets

    @classmethod
    def at(cls, place: str, *, root: Path, storage_options: Mapping[str, str] | None = None) -> "Warehouse":
        """A warehouse at an `address`.

        Errors: `EnvironmentSetupError` for a path that delta-rs takes for another one, or cannot write to.
        """
        uri = address(place, root)
        if "://" in uri and (pattern := _PATTERN.search(uri)):
            raise EnvironmentSetupError(
                f"Spark cannot tell the files at {uri} one by one: it takes {pattern.group()!r} in an address for a pattern",
                hint="choose an address without *, { and }",
            )
        if odd := _ODD.search(uri):
            raise EnvironmentSetupError(
                f"delta-rs cannot write tables at {uri}: its path contains {odd.group()!r}",
                hint="choose a path without brackets, |, ^, backslashes, and percent signs before two hexadecimal digits",
            )
        return cls(uri=uri, storage_options=dict(storage_options or {}))

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine's disk."""
        return "://" not in self.uri

    @property
    def spark_settings(self) -> dict[str, str]:
        """What a Spark session has to know to reach it; nothing for a local disk."""
        return settings_of_spark(self.uri, self.storage_options)

    def table(self, path: str) -> TableLocation:
        """The table at a path such as `views/revenue`."""
        return TableLocation(uri=f"{self.uri}/{path}", storage_options=self.storage_options, has_tail=True)

    def objects(self, path: str, *, seconds: float | None = None) -> ObjectFolder:
        """The small objects below a path such as `_state/plans`; how long requests are repeated, if not as long as usual."""
        uri = f"{self.uri}/{path}".rstrip("/")
        return ObjectFolder(uri=uri, storage_options=self.storage_options, seconds=seconds)
