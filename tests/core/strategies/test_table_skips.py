"""A view over a table whose rows become invalid and valid again at random, and whose operator leaves keys out and takes
them back: after every epoch, it equals its query over all rows except those with keys on the list."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from backfill_assets.core.epoch.ports import planned
from backfill_assets.core.epoch.records import Plan
from backfill_assets.core.epoch.skips import KeySkip
from backfill_assets.core.progress.positions import NamedKey, SnapshotPosition, TablePosition
from backfill_assets.core.progress.reads import ChangesRead, SkipRead, SnapshotRead, TableRead
from backfill_assets.core.strategies.snapshot import files_of
from backfill_assets.core.strategies.table_skips import keys_left_out
from tests.support.settings import examples
from tests.support.tables_world import Follower, Lake, Table

KEYS = range(6)
POISON = 0
BUCKETS = 2

Rows = dict[int, int]
Event = tuple[int, int, int]
"""A key, its value, and 1 for an inserted row or -1 for a deleted one."""

FILES = st.lists(st.lists(st.sampled_from(KEYS), max_size=3), max_size=4)
WRITES = st.dictionaries(st.sampled_from(KEYS), st.none() | st.integers(POISON, 2), max_size=3)
ACTIONS = st.lists(st.one_of(WRITES, st.sampled_from(KEYS), st.just("step"), st.just("step")), max_size=25)


def named(key: int) -> NamedKey:
    return (("id", str(key)),)


def skip_of(key: int) -> KeySkip:
    return KeySkip(source="t", key=named(key))


@dataclass
class Spoilt:
    """The table by version, and the view after each epoch. Of `files`, each key counts where it occurs first."""

    files: list[list[int]]
    versions: list[Rows] = field(default_factory=list)
    events: list[list[Event]] = field(default_factory=list)
    view: Counter[tuple[int, int]] = field(default_factory=Counter)
    failures: int = 0

    def __post_init__(self) -> None:
        seen: set[int] = set()
        for held in self.files:
            held[:] = [key for key in dict.fromkeys(held) if key not in seen]
            seen.update(held)
        self.versions, self.events = [{key: (key + 1) % 3 for key in seen}], [[]]
        self.world = Follower(
            Lake({"t": Table(files=tuple(map(len, self.files)))}), buckets=BUCKETS, full_refresh=False
        )

    def write(self, changes: dict[int, int | None]) -> None:
        before, after, events = self.versions[-1], dict(self.versions[-1]), []
        for key, value in changes.items():
            if key in before:
                events.append((key, before[key], -1))
                del after[key]
            if value is not None:
                events.append((key, value, 1))
                after[key] = value
        self.versions.append(after)
        self.events.append(events)
        self.world.lake.tables["t"].commit(len(events), deletes=True)

    def toggle(self, key: int) -> None:
        self.world.skips ^= {skip_of(key)}

    def step(self) -> bool:
        """One epoch; if its rows cannot be computed, their keys are left out, and it is planned again."""
        world = self.world
        found = world.decider.next(world.position, live=world.live, budget=2)
        assert world.decider.waits(world.position, live=world.live) == (found is not None)
        if found is None:
            return False
        assert isinstance(found.after, SnapshotPosition)
        plan = Plan(
            target="views/v",
            incarnation="1" * 12,
            epoch=1,
            fingerprint={},
            reads=found.reads,
            before=world.position,
            after=found.after,
            live=found.live,
        )
        events = [event for read in plan.table_reads for event in self.read(plan, read)]
        poison = {key for key, value, _ in events if value == POISON}
        if poison:
            self.failures += 1
            world.skips |= set(map(skip_of, poison))
            assert not world.decider.readable(planned(plan, SnapshotPosition)), "it is superseded"
            return True
        for key, value, sign in events:
            self.view[key, value] += sign
        world.position, world.live = found.after, found.live
        self.check(found.after.tables["t"])
        return True

    def read(self, plan: Plan, read: TableRead) -> Iterator[Event]:
        left_out = keys_left_out(plan, "t")
        match read:
            case SnapshotRead():
                keys = self.in_files({bucket: (each.start, each.end) for bucket, each in read.ranges.items()})
                rows = [(key, self.versions[0][key], 1) for key in keys]
            case ChangesRead():
                rows = [event for version in range(read.first, read.last + 1) for event in self.events[version]]
            case SkipRead():
                assert isinstance(plan.before, SnapshotPosition)
                assert isinstance(plan.after, SnapshotPosition)
                before, after = (each.tables["t"] for each in (plan.before, plan.after))
                assert (read.before, read.after) == (before.version, after.version)
                yield from ((key, value, -1) for key, value in self.stood_for(before) if named(key) in read.out)
                yield from ((key, value, 1) for key, value in self.stood_for(after) if named(key) in read.back)
                return
            case _:
                raise AssertionError(read)
        yield from (row for row in rows if named(row[0]) not in left_out)

    def stood_for(self, position: TablePosition) -> list[tuple[int, int]]:
        """The rows that have been read at a position, left out or not."""
        rows = self.versions[position.version]
        if position.backfilled:
            return list(rows.items())
        return [
            (key, rows[key]) for key in self.in_files({at: (0, each.next) for at, each in position.buckets.items()})
        ]

    def in_files(self, places: dict[int, tuple[int, int]]) -> list[int]:
        buckets = min(BUCKETS, len(self.files))
        return [
            key
            for bucket, (start, end) in places.items()
            for file in files_of(len(self.files), bucket, buckets)[start:end]
            for key in self.files[file]
        ]

    def check(self, position: TablePosition) -> None:
        expected = Counter(row for row in self.stood_for(position) if named(row[0]) not in position.skipped)
        assert +self.view == expected
        assert not -self.view, "nothing is taken away that was not there"


@given(files=FILES, actions=ACTIONS)
@settings(max_examples=examples(150))
def test_the_view_is_its_query_over_all_rows_but_those_left_out(files: list[list[int]], actions: list[object]) -> None:
    spoilt = Spoilt([list(each) for each in files])
    for action in actions:
        match action:
            case dict():
                spoilt.write(action)
            case int():
                spoilt.toggle(action)
            case _:
                spoilt.step()
    for _ in range(100):
        if not spoilt.step():
            break
    sound = {skip_of(key) for key in KEYS if spoilt.versions[-1].get(key) != POISON}
    spoilt.world.skips -= sound
    while spoilt.step():
        pass
    assert spoilt.view == Counter({row: 1 for row in spoilt.versions[-1].items() if row[1] != POISON} or {})
