"""The newest part of a table's log, copied from an object store to this machine, where delta-rs loads it.

delta-rs requests each entry of a log twice to load it, lists the log to find newer ones, and requests these three times. As
entries do not change, each is requested once here, all at the same time; one that this process has put is not requested at
all. One list shows what is new, and whether the log is still the one that was copied.
"""

import re
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from deltalake import DeltaTable

from backfill_assets.adapters.storage.object_store import ObjectFolder, Stored

__all__ = ["CopiedLog", "CopiedTable", "entry_of"]

LOG = "_delta_log"
LARGE = 256 * 2**20
"""A checkpoint with more bytes is read by delta-rs in the store, in parts."""
MANY = 500
"""After as many entries a copy is given up for a new one, which begins at a newer checkpoint."""

_HINT = f"{LOG}/_last_checkpoint"
_ENTRY = re.compile(rf"{LOG}/(\d{{20}})\.json")
_CHECKPOINT = re.compile(rf"{LOG}/(\d{{20}})\.checkpoint(\..+)")
_WHOLE = ".parquet"
_HINTED = re.compile(rb'"version"\s*:\s*(\d+)')


def entry_of(version: int) -> str:
    """The path of a version's entry in the log, inside the table's folder."""
    return f"{LOG}/{version:020d}.json"


class CopiedTable(DeltaTable):
    """A version of a table that was loaded from a copy of its log. It can be read of, but not written to."""

    def __init__(self, folder: Path, place: str) -> None:
        super().__init__(folder)
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


@dataclass(eq=False)
class CopiedLog:
    """A copy of one table's log: its newest checkpoint and the entries after it. `newest` makes one."""

    place: str
    objects: ObjectFolder
    folder: Path
    entries: dict[int, Stored] = field(default_factory=dict)
    """What the store said of each entry that was copied."""
    put: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    """Entries that this process has put and that were not looked for yet: the tag that the store gave each, its content."""
    table: CopiedTable = field(init=False)

    @classmethod
    def newest(cls, place: str, objects: ObjectFolder) -> Self | None:
        """Copy the log of a table at its newest version; None if it has none, or one that only delta-rs reads.

        Args:
            place: The table's address.
            objects: The table's folder.
        """
        hint = _HINTED.search(objects.get(_HINT) or b"")
        found = _Found.of(objects.listed(LOG, after=f"{LOG}/{int(hint[1]):020d}" if hint else None))
        begins = max(found.checkpoints, default=-1)
        wanted = [number for number in sorted(found.entries) if number > begins]
        if found.others or not found.entries or wanted != [*range(begins + 1, begins + 1 + len(wanted))]:
            return None
        if begins >= 0 and found.checkpoints[begins].size > LARGE:
            return None
        # The newest entry is always needed: what a table's last epoch was is read of it.
        entries = wanted or ([begins] if begins in found.entries else [])
        copy = cls(place=place, objects=objects, folder=Path(tempfile.mkdtemp(prefix="backfill-log-")))
        weakref.finalize(copy, shutil.rmtree, copy.folder, ignore_errors=True)
        (copy.folder / LOG).mkdir()
        checkpoint = [f"{LOG}/{begins:020d}.checkpoint{_WHOLE}"] if begins >= 0 else []
        if not entries or not copy._copied([*checkpoint, *map(entry_of, entries)]):
            return None
        copy.entries = {number: found.entries[number] for number in entries}
        copy.table = CopiedTable(copy.folder, place)
        return copy

    def follow(self) -> bool:
        """Load what is new in the log. False if the log is another one than was copied, or has many more entries: then it has
        to be copied anew."""
        at = self.table.version()
        found = _Found.of(self.objects.listed(LOG, after=f"{LOG}/{at:020d}"))
        new = sorted(number for number in found.entries if number > at)
        if found.entries.get(at) != self.entries[at] or new != [*range(at + 1, at + 1 + len(new))]:
            return False
        if len(self.entries) + len(new) > MANY:
            return False
        if not new:
            return True
        known = {number for number in new if self._is_put_here(number, found.entries[number])}
        for number in known:
            (self.folder / entry_of(number)).write_bytes(self.put[number][1])
        if not self._copied(entry_of(number) for number in new if number not in known):
            return False
        self.put.clear()
        self.entries.update({number: found.entries[number] for number in new})
        self.table.update_incremental()
        return True

    def content(self, path: str) -> bytes | None:
        """What an entry of the log holds; None if it was not copied."""
        match = _ENTRY.fullmatch(path)
        return (self.folder / path).read_bytes() if match and int(match[1]) in self.entries else None

    def _is_put_here(self, number: int, stored: Stored) -> bool:
        """Whether an entry is the object that this process has put, as the store's tag of it says."""
        return number in self.put and self.put[number][0] == stored.tag

    def _copied(self, paths: Iterable[str]) -> bool:
        """Copy objects; returns whether all of them were there."""
        wanted = list(paths)
        for path, content in zip(wanted, self.objects.get_all(wanted), strict=True):
            if content is None:
                return False
            (self.folder / path).write_bytes(content)
        return True
