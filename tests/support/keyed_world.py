"""A table in memory whose keys can be read by ranges, at each of its versions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from backfill_assets.core.epoch.ports import Commit, KeyRanges, KeysLeftOut, TableSize, UpstreamState
from backfill_assets.core.epoch.records import UpstreamColumns
from backfill_assets.core.progress.positions import Key, KeyRange
from backfill_assets.core.progress.reads import ChangesRead, KeyRead, TableRead
from backfill_assets.errors import VersionsLostError

__all__ = ["Lake", "Moving", "Rows", "inside", "order"]

Rows = dict[Key, int]
"""A table at one version: the value of each key."""


def order(key: Key) -> tuple[tuple[bool, str], ...]:
    """Lexicographic, null first."""
    return tuple((part is not None, part or "") for part in key)


def inside(key: Key, ranges: Iterable[KeyRange]) -> bool:
    """Whether a key is in one of the ranges; their bounds may have only the first columns."""
    return any(
        (each.after is None or order(key[: len(each.after)]) > order(each.after))
        and (each.upto is None or order(key[: len(each.upto)]) <= order(each.upto))
        for each in ranges
    )


@dataclass
class Moving:
    """A Delta table in memory: all its versions, and its key ranges when they are requested."""

    versions: list[Rows]
    bounds: tuple[Key, ...] = ()
    plain: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)

    def changes(self, version: int) -> list[tuple[Key, int | None, int | None]]:
        """Each changed key with its value before and after; None if it did not exist."""
        before, after = self.versions[version - 1], self.versions[version]
        return [
            (key, before.get(key), after.get(key))
            for key in sorted({*before, *after}, key=order)
            if before.get(key) != after.get(key)
        ]


@dataclass
class Lake:
    """`ports.KeyedTables` over one table in memory, called "base"."""

    table: Moving

    def columns(self) -> UpstreamColumns:
        return {}

    def table_now(self, name: str) -> UpstreamState:
        newest = len(self.table.versions) - 1
        return UpstreamState(table_id=name, version=newest, commit_ms=1000 * newest)

    def files(self, name: str, version: int) -> Sequence[int]:
        raise AssertionError(f"files of {name} at version {version} are not asked for")

    def commits(self, name: str, after: int, until: int) -> Sequence[Commit]:
        assert name == "base"
        return [
            Commit(
                version=number,
                commit_ms=1000 * number,
                rows=len(self.table.changes(number)),
                deletes=any(old is not None for _, old, _ in self.table.changes(number)),
                feed=number not in self.table.plain,
            )
            for number in range(after + 1, until + 1)
        ]

    def key_ranges(self, name: str, version: int) -> KeyRanges:
        assert name == "base"
        rows, bounds = self.table.versions[version], self.table.bounds
        if not rows:
            return KeyRanges(bounds=(), rows=())
        ends = (None, *bounds, None)
        ranges = [KeyRange(after=after, upto=upto) for after, upto in pairwise(ends)]
        return KeyRanges(bounds=bounds, rows=tuple(sum(inside(key, [each]) for key in rows) for each in ranges))

    def size(self, name: str) -> TableSize:
        raise AssertionError(f"the size of {name} is not asked for")

    def commit_timestamp(self, name: str, version: int) -> int | None:
        assert name == "base"
        return None if version in self.table.gone else 1000 * version

    def check_readable(self, read: TableRead) -> None:
        if isinstance(read, KeyRead) and read.version in self.table.gone:
            raise VersionsLostError("gone", hint="none", version=read.version)
        if isinstance(read, ChangesRead) and self.table.lost & set(range(read.first, read.last + 1)):
            raise VersionsLostError("gone", hint="none", version=read.first)

    def check_keys(self, versions: Mapping[str, int], left_out: KeysLeftOut) -> None:
        pass
