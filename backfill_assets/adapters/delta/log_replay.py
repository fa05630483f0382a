"""What a version of a Delta table is made of, action by action, as its log states it.

delta-rs gives a version's files, but not the deletion vectors that belong to them; a reader of single files needs both.
So the log is replayed here, as the Delta protocol describes it ("Action Reconciliation"): the newest checkpoint at or
below the version (of one file, of several, or with sidecars), then the commits after it.
"""

import json
import re
from base64 import b85decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from backfill_assets.adapters.delta.commits import Actions, read_commit
from backfill_assets.adapters.storage.warehouse import Mark, TableLocation

__all__ = ["DataFile", "LogGoneError", "LogReplay", "Version", "is_elsewhere", "is_plain", "replay"]

MOST_CARRIED = 100
"""A version so many commits ahead is read from its checkpoint, which most tables make every ten."""

_LOG = "_delta_log"
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.([0-9a-f-]{36}))?\.(parquet|json)")
_COLUMNS = ("add", "protocol", "metaData", "sidecar")
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_ENCODED_UUID = 20


_PLAIN_FEATURES = frozenset({"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
"""What a table may ask of its readers without saying anything of how a file without deletion vector is read."""


class LogGoneError(Exception):
    """The log holds neither a checkpoint nor all commits that a version is made of."""


@dataclass(frozen=True)
class DataFile:
    """An `add` action of the log."""

    action: Mapping[str, Any]

    @property
    def path(self) -> str:
        """Where the file lies, relative to the table (or an absolute address), encoded as a URI."""
        return str(self.action["path"])

    @property
    def deleted(self) -> int:
        """How many of the file's rows its deletion vector hides."""
        vector = self.action.get("deletionVector")
        return int(vector["cardinality"]) if vector else 0

    @property
    def stats(self) -> dict[str, Any]:
        """What the log states of the file's rows; numbers that are not whole as decimals."""
        found: dict[str, Any] = json.loads(self.action.get("stats") or "{}", parse_float=Decimal)
        return found

    @property
    def stated_rows(self) -> int | None:
        """Rows that a reader sees, if the log states them."""
        records = self.stats.get("numRecords")
        return None if records is None else int(records) - self.deleted

    def absolute(self, table_uri: str) -> dict[str, Any]:
        """The action for a log that lies elsewhere: file and deletion vector by their full addresses, no statistics."""
        made = {
            "path": _absolute(table_uri, self.path),
            "partitionValues": dict(self.action.get("partitionValues") or {}),
            "size": self.action["size"],
            "modificationTime": self.action["modificationTime"],
            "dataChange": True,
        }
        vector = self.action.get("deletionVector")
        if vector:
            made["deletionVector"] = _absolute_vector(table_uri, vector)
        return made


@dataclass(frozen=True)
class Version:
    """One version: its protocol and metadata, and its data files sorted by path."""

    protocol: Mapping[str, Any]
    metadata: Mapping[str, Any]
    files: tuple[DataFile, ...]

    @property
    def is_plain(self) -> bool:
        """Whether its files hold all columns as they are: no partitions, no mapped names, nothing that reading needs."""
        protocol = self.protocol
        return is_plain(
            protocol.get("minReaderVersion"), protocol.get("readerFeatures"), self.metadata.get("partitionColumns")
        )


def is_plain(
    reader_version: int | None, reader_features: Iterable[str] | None, partition_columns: Sequence[str] | None
) -> bool:
    """Whether files of a table with such a protocol, and so partitioned, hold all columns as they are."""
    simple = reader_version == 1 or (reader_version == 3 and set(reader_features or ()) <= _PLAIN_FEATURES)
    return simple and not partition_columns  # reader version 2 is column mapping


def replay(files: pafs.FileSystem, version: int) -> Version:
    """Read one version from the log. Errors: `LogGoneError`."""
    return _replayed(files, version).version()


@dataclass
class _State:
    """A table while its log is replayed."""

    protocol: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    active: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def apply(self, actions: Iterable[Mapping[str, Any]]) -> None:
        """Do what commits do, in their order."""
        active = self.active
        for action in actions:
            self.protocol = action.get("protocol") or self.protocol
            self.metadata = action.get("metaData") or self.metadata
            remove = action.get("remove")
            if action.get("add"):
                active[action["add"]["path"]] = action["add"]
            # A file that gets another deletion vector is removed and added in one commit, in either order.
            elif remove and _vector_id(active.get(remove["path"])) == _vector_id(remove):
                active.pop(remove["path"], None)

    def version(self) -> Version:
        """The table as it is now."""
        files = tuple(DataFile(self.active[path]) for path in sorted(self.active))
        return Version(self.protocol, self.metadata, files)


@dataclass
class LogReplay:
    """Versions of one table, each carried forward from the one that was read before it.

    Only commits that came since are read, as long as the log still has that one as it was: a log that was created again, put
    back or cleaned up, an older version, and one far ahead are read as `replay` does.
    """

    location: TableLocation
    _state: _State = field(default_factory=_State, init=False)
    _at: int = field(default=-1, init=False)
    _mark: Mark | None = field(default=None, init=False)

    def version(self, number: int) -> Version:
        """Read one version. Errors: `LogGoneError`."""
        files = self.location.files()
        mark = self.location.commit_mark(number)
        commits = self._since(files, number)
        if commits is None:
            self._state = _replayed(files, number)
        else:
            self._state.apply(commits)
        self._at = number
        # What was read while a log was created again may be of either log: nothing is carried forward from there.
        self._mark = mark if self.location.commit_mark(number) == mark else None
        return self._state.version()

    def _since(self, files: pafs.FileSystem, number: int) -> Actions | None:
        """What was done after the version that was read before; None where that is not known, or too much."""
        if self._mark is None or not 0 <= number - self._at <= MOST_CARRIED:
            return None
        try:
            found = list(_commits(files, self._at + 1, number))
        except LogGoneError:
            return None
        return found if self.location.commit_mark(self._at) == self._mark else None


def _replayed(files: pafs.FileSystem, version: int) -> _State:
    start, parts = _newest_checkpoint(files, version)
    state = _State()
    for part in parts:
        state.apply(_checkpointed(files, part))
    state.apply(_commits(files, start + 1, version))
    return state


def _commits(files: pafs.FileSystem, first: int, last: int) -> Iterator[dict[str, Any]]:
    for number in range(first, last + 1):
        commit = read_commit(files, number)
        if commit is None:
            raise LogGoneError(f"version {number} is no longer in the log")
        yield from commit


def _newest_checkpoint(files: pafs.FileSystem, version: int) -> tuple[int, list[str]]:
    """The version and the files of the newest complete checkpoint that is not too new; (-1, []) without one."""
    found: dict[tuple[int, str], list[str]] = {}
    wanted: dict[tuple[int, str], int] = {}
    for info in files.get_file_info(pafs.FileSelector(_LOG, allow_not_found=True)):
        match = _CHECKPOINT.fullmatch(info.base_name)
        if match and int(match[1]) <= version:
            kind = (int(match[1]), match[4] or match[3] or "")
            found.setdefault(kind, []).append(f"{_LOG}/{info.base_name}")
            wanted[kind] = int(match[3] or 1)
    complete = [kind for kind, parts in found.items() if len(parts) == wanted[kind]]
    if not complete:
        return -1, []
    newest = max(complete)
    return newest[0], sorted(found[newest])


def _checkpointed(files: pafs.FileSystem, path: str) -> Iterator[dict[str, Any]]:
    with files.open_input_file(path) as stream:
        if path.endswith(".json"):
            rows: Iterable[dict[str, Any]] = [json.loads(line) for line in stream.read().splitlines() if line]
        else:
            reader = pq.ParquetFile(stream)
            there = [name for name in _COLUMNS if name in reader.schema_arrow.names]
            rows = reader.read(columns=there).to_pylist(maps_as_pydicts="strict")
    for row in rows:
        if row.get("sidecar"):
            name = str(row["sidecar"]["path"])
            yield from _checkpointed(files, name if "/" in name else f"{_LOG}/_sidecars/{name}")
        else:
            yield {kind: action for kind, action in row.items() if action is not None}


def _vector_id(action: Mapping[str, Any] | None) -> str:
    vector = (action or {}).get("deletionVector")
    return f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}" if vector else ""


def is_elsewhere(path: str) -> bool:
    """Whether a path in a log is an address of its own, as a shallow clone has them, and none below the table's folder."""
    return "://" in path or path.startswith(("file:", "/"))


def _absolute(table_uri: str, path: str) -> str:
    if is_elsewhere(path):
        return path
    root = table_uri if "://" in table_uri else f"file://{quote(table_uri)}"  # paths in a log are encoded as URIs
    return f"{root.rstrip('/')}/{path}"


def _absolute_vector(table_uri: str, vector: Mapping[str, Any]) -> dict[str, Any]:
    """A deletion vector that is named by an encoded UUID beside the table, named by its full address."""
    made = {name: value for name, value in vector.items() if value is not None}
    if vector["storageType"] != "u":
        return made
    name = str(vector["pathOrInlineDv"])
    prefix, encoded = name[:-_ENCODED_UUID], name[-_ENCODED_UUID:]
    uuid = UUID(bytes=b85decode(encoded.translate(str.maketrans(_Z85, _B85))))
    folder = f"{prefix}/" if prefix else ""
    return {
        **made,
        "storageType": "p",
        "pathOrInlineDv": _absolute(table_uri, f"{folder}deletion_vector_{uuid}.bin"),
    }
