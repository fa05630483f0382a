"""The contents of a version of a Delta table, replayed from the actions in its log.

delta-rs returns a version's files without their deletion vectors; a reader of single files needs both. So the log is
replayed here as the Delta protocol specifies it ("Action Reconciliation"): the newest checkpoint at or below the
version (of one file, of several, or with sidecars), then the commits after it.
"""

import json
import re
from base64 import b85decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, overload
from urllib.parse import quote, unquote
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs

from backfill_assets.adapters.delta.checkpoint_files import NO_FILES, CheckpointFiles, actions_of
from backfill_assets.adapters.delta.commits import Actions, read_commit
from backfill_assets.adapters.storage.warehouse import Mark, TableLocation

__all__ = ["DataFile", "LogGapError", "LogReplay", "Version", "is_elsewhere", "is_plain", "is_plain_path", "replay"]

MAX_COMMITS_AHEAD = 100
"""A version that is further ahead is read from its checkpoint; most tables make one every ten commits."""

_LOG = "_delta_log"
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.([0-9a-fA-F-]{36}))?\.(parquet|json)")
_PLAIN_PATH = re.compile(r"(?:[\w.=-]+/)*(?![._])[\w.=-]+(?<!\._COPYING_)")
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_ENCODED_UUID = 20


_PLAIN_FEATURES = frozenset({"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
"""Reader features that do not affect how a file without a deletion vector is read."""


class LogGapError(Exception):
    """The log has neither a checkpoint nor all commits of a version."""


@dataclass(frozen=True)
class DataFile:
    """An `add` action of the log, or a `remove`."""

    action: Mapping[str, Any]

    @property
    def path(self) -> str:
        """The file's path, relative to the table (or an absolute address), encoded as a URI."""
        return str(self.action["path"])

    @property
    def deleted(self) -> int:
        """The number of the file's rows that its deletion vector hides."""
        vector = self.action.get("deletionVector")
        return int(vector["cardinality"]) if vector else 0

    @property
    def needed(self) -> tuple[str, ...]:
        """The paths of what is read of it: the file, and that of its deletion vector if this is stored in one."""
        vector = self.action.get("deletionVector")
        hidden = (
            None if not vector else vector["pathOrInlineDv"] if vector["storageType"] == "p" else _vector_path(vector)
        )
        return (self.path,) if hidden is None else (self.path, hidden)

    @property
    def stats(self) -> dict[str, Any]:
        """The statistics of the file in the log; fractions are decimals."""
        found: dict[str, Any] = json.loads(self.action.get("stats") or "{}", parse_float=Decimal)
        return found

    @property
    def size(self) -> int:
        """Its bytes, as the log says; 0 if it does not."""
        return int(self.action.get("size") or 0)

    @property
    def stated_rows(self) -> int | None:
        """The number of rows that a reader sees, if it is in the log."""
        records = self.stats.get("numRecords")
        return None if records is None else int(records) - self.deleted

    def absolute(self, table_uri: str) -> dict[str, Any]:
        """The action for a log in another place: file and deletion vector with full addresses, no statistics."""
        made = {
            "path": _absolute(table_uri, self.path),
            "partitionValues": dict(self.action.get("partitionValues") or {}),
            "size": self.size,
            "modificationTime": self.action.get("modificationTime") or 0,
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
    files: Sequence[DataFile]

    @property
    def is_plain(self) -> bool:
        """Whether its files contain all columns unchanged: no partitions, no mapped names, no feature that readers
        need."""
        protocol = self.protocol
        return is_plain(
            protocol.get("minReaderVersion"), protocol.get("readerFeatures"), self.metadata.get("partitionColumns")
        )


def is_plain(
    reader_version: int | None, reader_features: Iterable[str] | None, partition_columns: Sequence[str] | None
) -> bool:
    """Whether the files of a table with this protocol and these partition columns contain all columns unchanged."""
    simple = reader_version == 1 or (reader_version == 3 and set(reader_features or ()) <= _PLAIN_FEATURES)
    return simple and not partition_columns  # reader version 2 is column mapping


def replay(location: TableLocation, version: int) -> Version:
    """Read one version from the log as it is now. Errors: `LogGapError`."""
    return _replayed(location, version).version()


def replay_loaded(location: TableLocation, version: int) -> Version:
    """`replay`, without a request where the log was copied when it was loaded."""
    with location.followed.log(version) as log:
        return replay(log, version)


@dataclass
class _State:
    """A table while its log is replayed."""

    protocol: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    held: CheckpointFiles = NO_FILES
    """The files of the checkpoint, of which the paths in `gone` are removed or were added anew since."""
    gone: set[str] = field(default_factory=set)
    active: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The other files."""

    def apply(self, actions: Iterable[Mapping[str, Any]]) -> None:
        """Apply commits, in their order."""
        for action in actions:
            self.protocol = action.get("protocol") or self.protocol
            self.metadata = action.get("metaData") or self.metadata
            remove = action.get("remove")
            if action.get("add"):
                self._forget(action["add"]["path"])
                self.active[action["add"]["path"]] = action["add"]
            # A file that gets another deletion vector is removed and added in one commit, in either order.
            elif remove and _vector_id(self._added(remove["path"])) == _vector_id(remove):
                self._forget(remove["path"])

    def version(self) -> Version:
        """The state of the table after the actions so far."""
        paths = sorted(self.active)
        added = tuple(DataFile(self.active[path]) for path in paths)
        files = _Files(self.held, self.held.merged(self.gone, paths), added) if len(self.held) else added
        return Version(self.protocol, self.metadata, files)

    def _added(self, path: str) -> Mapping[str, Any] | None:
        """The action by which a file is there; None if it is not."""
        if path in self.active or path in self.gone:
            return self.active.get(path)
        at = self.held.find(path)
        return None if at is None else self.held.action(at)

    def _forget(self, path: str) -> None:
        self.active.pop(path, None)
        if self.held.find(path) is not None:
            self.gone.add(path)


@dataclass(frozen=True, eq=False)
class _Files(Sequence[DataFile]):
    """Files of a checkpoint and others, in the `order` of their paths; those of the checkpoint are made when they are asked
    for."""

    held: CheckpointFiles
    order: npt.NDArray[np.int64]
    added: tuple[DataFile, ...]

    @overload
    def __getitem__(self, at: int) -> DataFile: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[DataFile]: ...

    def __getitem__(self, at: int | slice) -> DataFile | Sequence[DataFile]:
        if isinstance(at, slice):
            return _Files(self.held, self.order[at], self.added)
        number = int(self.order[at])
        return self.added[-1 - number] if number < 0 else DataFile(self.held.action(number))

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[DataFile]:
        for number, action in zip(self.order, self.held.actions(self.order), strict=True):
            yield self.added[-1 - int(number)] if action is None else DataFile(action)


@dataclass
class LogReplay:
    """Versions of one table, each derived from the one that was read before it.

    Only the commits since then are read, if that version's entry in the log has not changed. Otherwise the whole
    version is replayed: if the log was created again, restored or cleaned up, for an older version, and for one that is
    far ahead.
    """

    location: TableLocation
    _state: _State = field(default_factory=_State, init=False)
    _at: int = field(default=-1, init=False)
    _mark: Mark | None = field(default=None, init=False)

    def version(self, number: int) -> Version:
        """Read one version. Errors: `LogGapError`."""
        with self.location.followed.log(number) as log:
            mark = log.commit_mark(number)
            commits = self._since(log, number)
            if commits is None:
                self._mark = None
                self._state = _replayed(log, number)
            else:
                self._state.apply(commits)
            self._at = number
            # If the log was created again meanwhile, the actions may come from either log, so this version is not kept.
            self._mark = mark if log.commit_mark(number) == mark else None
        return self._state.version()

    def _since(self, log: TableLocation, number: int) -> Actions | None:
        """The actions since the version that was read before; None if they are unknown or too many."""
        if self._mark is None or not 0 <= number - self._at <= MAX_COMMITS_AHEAD:
            return None
        try:
            found = list(_commits(log, self._at + 1, number))
        except LogGapError:
            return None
        return found if log.commit_mark(self._at) == self._mark else None


def _replayed(location: TableLocation, version: int) -> _State:
    files = location.files()
    start, parts = _newest_checkpoint(files, version)
    state, held = _State(), list[pa.Table]()
    for part in parts:
        try:
            state.apply(_checkpointed(files, part, held))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise location.cannot_be_read(error) from None
    state.held = CheckpointFiles.of(held)
    state.apply(_commits(location, start + 1, version))
    return state


def _commits(location: TableLocation, first: int, last: int) -> Iterator[dict[str, Any]]:
    for number in range(first, last + 1):
        # What was loaded before may be of another log than the checkpoint, and than the marks.
        commit = read_commit(location, number, again=True)
        if commit is None:
            raise LogGapError(f"version {number} is no longer in the log")
        yield from commit


def _newest_checkpoint(files: pafs.FileSystem, version: int) -> tuple[int, list[str]]:
    """The version and the files of the newest complete checkpoint that is not too new; (-1, []) if there is none."""
    found: dict[tuple[int, str], list[str]] = {}
    wanted: dict[tuple[int, str], int] = {}
    for info in files.get_file_info(pafs.FileSelector(_LOG, allow_not_found=True)):
        match = _CHECKPOINT.fullmatch(info.base_name)
        if match and int(match[1]) <= version and info.size:
            kind = (int(match[1]), match[4] or match[3] or "")
            found.setdefault(kind, []).append(f"{_LOG}/{info.base_name}")
            wanted[kind] = int(match[3] or 1)
    complete = [kind for kind, parts in found.items() if len(parts) == wanted[kind]]
    if not complete:
        return -1, []
    newest = max(complete)
    return newest[0], sorted(found[newest])


def _checkpointed(files: pafs.FileSystem, path: str, held: list[pa.Table]) -> Iterator[dict[str, Any]]:
    """The actions of a part of a checkpoint, but for those of files in Parquet, which are put into `held`."""
    with files.open_input_file(path) as stream:
        if path.endswith(".json"):
            lines = stream.read().splitlines()
            rows: list[Mapping[str, Any]] = [json.loads(line) for line in lines if line.strip()]
        else:
            rows = list(actions_of(stream, held))
    for row in rows:
        if row.get("sidecar"):
            # All lie in one folder, whether the path is a name, or the full address.
            name = unquote(str(row["sidecar"]["path"])).rpartition("/")[2]
            yield from _checkpointed(files, f"{_LOG}/_sidecars/{name}", held)
        else:
            yield {kind: action for kind, action in row.items() if action is not None}


def _vector_id(action: Mapping[str, Any] | None) -> str:
    vector = (action or {}).get("deletionVector")
    return f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}" if vector else ""


def is_elsewhere(path: str) -> bool:
    """Whether a path in a log is a full address, as in shallow clones, instead of a path in the table's folder."""
    return "://" in path or path.startswith(("file:", "/"))


def is_plain_path(path: str) -> bool:
    """Whether a path in a log is one below the table's folder that Spark takes for just this file: nothing in it is encoded,
    or a pattern, and the file's name is none that Spark passes over as hidden."""
    return _PLAIN_PATH.fullmatch(path) is not None


def _absolute(table_uri: str, path: str) -> str:
    if is_elsewhere(path):
        return path
    root = table_uri if "://" in table_uri else f"file://{quote(table_uri)}"  # paths in a log are encoded as URIs
    return f"{root.rstrip('/')}/{path}"


def _absolute_vector(table_uri: str, vector: Mapping[str, Any]) -> dict[str, Any]:
    """A deletion vector that is stored next to the table under an encoded UUID, with its full address instead."""
    made = {name: value for name, value in vector.items() if value is not None}
    path = _vector_path(vector)
    return made if path is None else {**made, "storageType": "p", "pathOrInlineDv": _absolute(table_uri, path)}


def _vector_path(vector: Mapping[str, Any]) -> str | None:
    """The path of a deletion vector's file, relative to its table; None if it is not stored next to the table."""
    if vector["storageType"] != "u":
        return None
    name = str(vector["pathOrInlineDv"])
    prefix, encoded = name[:-_ENCODED_UUID], name[-_ENCODED_UUID:]
    uuid = UUID(bytes=b85decode(encoded.translate(str.maketrans(_Z85, _B85))))
    folder = f"{prefix}/" if prefix else ""
    return f"{folder}deletion_vector_{uuid}.bin"
