"""The newest part of a table's log, copied from an object store to this machine, where delta-rs loads it.

delta-rs requests each entry of a log twice to load it, lists the log to find newer ones, and requests these three times. As
entries do not change, each is requested once here, all at the same time; one that this process has put is not requested at
all. One list shows what is new, and whether the log is still the one that was copied. The end of a log that this project
writes is kept as one object (`log_tail`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from backfill_assets.adapters.runtime.temporary_folders import temporary_folder
from backfill_assets.adapters.storage.log_tail import PATH, Tagged, Tail
from backfill_assets.adapters.storage.object_store import ObjectFolder, Stored, tag_of

__all__ = ["CopiedLog", "CopiedTable", "entry_of"]

LOG = "_delta_log"
LARGE = 256 * 2**20
"""A checkpoint with more bytes is read by delta-rs in the store, in parts."""
RECENT = 5
"""As many entries are in a tail even if a checkpoint has come since: how long epochs take is learned of them."""
COMPARED = 20
"""So many entries before the newest are looked at again with those that are new: the list costs the same. A writer that puts
no commits conditionally, such as Spark with Delta's log store for one driver, may replace one that is there."""
MANY = 500
"""After as many entries a copy is given up for a new one, which begins at a newer checkpoint."""

_HINT = f"{LOG}/_last_checkpoint"
_ENTRY = re.compile(rf"{LOG}/(\d{{20}})\.json")
_CHECKPOINT = re.compile(rf"{LOG}/(\d{{20}})\.checkpoint(\..+)")
_WHOLE = ".parquet"
_HINTED = re.compile(rb'"version"\s*:\s*(\d{1,18})(?!\d)')


def entry_of(version: int) -> str:
    """The path of a version's entry in the log, inside the table's folder."""
    return f"{LOG}/{version:020d}.json"


class CopiedTable(DeltaTable):
    """A version of a table that was loaded from a copy of its log. It can be read of, but not written to."""

    def __init__(self, folder: Path, place: str, version: int | None = None) -> None:
        super().__init__(folder, version=version)
        self.place = place

    @property
    def table_uri(self) -> str:
        """Where the table is, not its copy."""
        return self.place


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What a list of a log shows: entries and checkpoints of one file, by version; whether there are other checkpoints."""

    entries: Mapping[int, Stored]
    checkpoints: Mapping[int, Stored]
    others: bool

    @classmethod
    def of(cls, listed: Mapping[str, Stored]) -> Self:
        entries, checkpoints, others = {}, {}, False
        for path, stored in listed.items():
            if entry := _ENTRY.fullmatch(path):
                entries[int(entry[1])] = stored
            elif checkpoint := _CHECKPOINT.fullmatch(path):
                others |= checkpoint[2] != _WHOLE
                checkpoints[int(checkpoint[1])] = stored
        return cls(entries=entries, checkpoints=checkpoints, others=others)

    @property
    def begins(self) -> int:
        """The version of the newest checkpoint; -1 if there is none."""
        return max(self.checkpoints, default=-1)

    @property
    def needed(self) -> list[int]:
        """The versions whose entries are loaded. The newest always is: what a table's last epoch was is read of it."""
        return self.since(self.begins) or [number for number in self.entries if number == self.begins]

    @property
    def is_copied(self) -> bool:
        """Whether it is a log that can be copied."""
        fits = self.begins < 0 or self.checkpoints[self.begins].size <= LARGE
        return bool(self.needed) and not self.others and fits and self.is_whole_since(self.begins)

    def since(self, version: int) -> list[int]:
        """The versions after one."""
        return sorted(number for number in self.entries if number > version)

    def is_whole_since(self, version: int) -> bool:
        """Whether there is no gap between a version and the newest."""
        found = self.since(version)
        return found == [*range(version + 1, version + 1 + len(found))]


@dataclass(eq=False, kw_only=True)
class CopiedLog:
    """A copy of one table's log: its newest checkpoint and the entries after it. `newest` makes one."""

    place: str
    objects: ObjectFolder
    known: dict[str, Tagged] = field(default_factory=dict)
    """Objects that need not be requested where the store lists them with these tags: this process has put them, or they were
    in the log's tail."""
    entries: dict[int, Stored] = field(default_factory=dict, init=False)
    """What the store said of each entry that is loaded."""
    table: CopiedTable = field(init=False)
    folder: Path = field(init=False)
    _checkpoint: tuple[int, str | None] = field(default=(-1, None), init=False)
    """The version of the checkpoint, and its tag."""
    _newer: int = field(default=-1, init=False)
    """The version of the newest checkpoint that the store has shown since."""
    _kept: int = field(default=-1, init=False)
    """The version at which the log's tail was read or put."""

    def __post_init__(self) -> None:
        self.folder = temporary_folder(self)
        (self.folder / LOG).mkdir()

    @classmethod
    def newest(cls, place: str, objects: ObjectFolder, *, has_tail: bool = False) -> Self | None:
        """Copy the log of a table at its newest version; None if it has none, or one that only delta-rs reads.

        Args:
            place: The table's address.
            objects: The table's folder.
            has_tail: Whether the log may have a tail.
        """
        tail = Tail.of(objects.get(PATH)) if has_tail else None
        start = _hinted(objects) if tail is None else tail.begins - RECENT
        found = _Found.of(objects.listed(LOG, after=f"{LOG}/{start:020d}" if start >= 0 else None))
        if not found.is_copied:  # a tail may be of a log that was restored since
            return None if tail is None else cls.newest(place, objects)
        copy = cls(place=place, objects=objects, known={} if tail is None else {**tail.objects})
        return copy if copy._load(found) else None

    def _load(self, found: _Found) -> bool:
        older = {number for number in found.entries if self._is_known(entry_of(number), found.entries[number])}
        entries = {number: found.entries[number] for number in sorted({*found.needed, *older})}
        wanted = {entry_of(number): stored for number, stored in entries.items()}
        if found.begins >= 0:
            wanted[_checkpoint_of(found.begins)] = found.checkpoints[found.begins]
            self._checkpoint = (found.begins, found.checkpoints[found.begins].tag)
        was_known = all(self._is_known(path, stored) for path, stored in wanted.items())
        if not self._copied(wanted):
            return False
        try:
            self.table = CopiedTable(self.folder, self.place)
        except DeltaError:  # a checkpoint with sidecars, or without content: delta-rs may read it in its place
            return False
        self.entries = entries
        self._kept = self.table.version() if was_known else -1
        return True

    def follow(self) -> bool:
        """Load what is new in the log. False if the log is another one than was copied, or has many more entries than a newer
        checkpoint: then it has to be copied anew."""
        at = self.table.version()
        first = max(0, at - COMPARED)
        found = _Found.of(self.objects.listed(LOG, after=f"{LOG}/{first:020d}"))
        if not self._holds(found, first) or not found.is_whole_since(at):
            return False
        new = found.since(at)
        self._newer = max(self._newer, found.begins)
        if len(self.entries) + len(new) > MANY and self._newer > self._checkpoint[0]:
            return False
        if new:
            if not self._copied({entry_of(number): found.entries[number] for number in new}):
                return False
            self.entries.update({number: found.entries[number] for number in new})
            self.table.update_incremental()
        return True

    def at(self, version: int) -> CopiedTable | None:
        """A version of the table, without a request; None if it is not among those of which all is copied."""
        return CopiedTable(self.folder, self.place, version) if self.has(version) else None

    def has(self, version: int) -> bool:
        """Whether all of a version is copied."""
        return max(0, self._checkpoint[0]) <= version <= self.table.version()

    def _holds(self, found: _Found, first: int) -> bool:
        """Whether a log still holds the entries that are loaded, from a version on. Those before a checkpoint may expire, but
        for the newest: without it, nothing tells this log from another one."""
        checkpoint = min(max(found.begins, self._checkpoint[0]), self.table.version())
        for number, stored in self.entries.items():
            there = found.entries.get(number)
            expired = there is None and number < checkpoint
            if number >= first and not expired and there != stored:
                return False
        return True

    def make_checkpoint(self) -> None:
        """Write a checkpoint of the version that is loaded: it is made here, and put by two requests."""
        self.table.create_checkpoint()
        path = _checkpoint_of(self.table.version())
        put = self.objects.put(path, (self.folder / path).read_bytes())
        self._checkpoint = (self.table.version(), tag_of(put["e_tag"]))
        if (hint := self.folder / _HINT).exists():  # not if another process has made the checkpoint, and it was copied
            self.objects.put(_HINT, hint.read_bytes())

    def keep(self) -> None:
        """Put the end of the log as one object, unless it is there as it is now, or is large."""
        version, (begins, tag) = self.table.version(), self._checkpoint
        if self._kept == version:
            return
        first = min(begins, version - RECENT)
        tags = {entry_of(number): stored.tag for number, stored in self.entries.items() if number > first}
        tags |= {_checkpoint_of(begins): tag} if begins >= 0 else {}
        contents = {path: (tag, (self.folder / path).read_bytes()) for path, tag in tags.items() if tag is not None}
        tail = Tail(begins=begins, objects=contents)
        if tail.is_small:
            self.objects.put(PATH, tail.stored())
            self._kept = version

    def content(self, path: str) -> bytes | None:
        """What an entry of the log holds; None if it was not copied."""
        match = _ENTRY.fullmatch(path)
        return (self.folder / path).read_bytes() if match and int(match[1]) in self.entries else None

    def _is_known(self, path: str, stored: Stored) -> bool:
        """Whether an object is the one whose content is known, as the store's tag of it says."""
        return path in self.known and self.known[path][0] == stored.tag

    def _copied(self, wanted: Mapping[str, Stored]) -> bool:
        """Copy objects, of which those are requested that are not known; returns whether all of them were there."""
        unknown = [path for path, stored in wanted.items() if not self._is_known(path, stored)]
        found: dict[str, bytes | None] = {path: content for path, (_, content) in self.known.items() if path in wanted}
        found |= dict(zip(unknown, self.objects.get_all(unknown), strict=True))
        for path in wanted:
            if (content := found[path]) is None:
                return False
            (self.folder / path).write_bytes(content)
        self.known.clear()
        return True


def _checkpoint_of(version: int) -> str:
    return f"{LOG}/{version:020d}.checkpoint{_WHOLE}"


def _hinted(objects: ObjectFolder) -> int:
    """The version of a checkpoint from which a log may be listed; -1 if there is none."""
    found = _HINTED.search(objects.get(_HINT) or b"")
    return int(found[1]) if found else -1
