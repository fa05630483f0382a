"""What a view with strategy `arrangement` reads: keys cut into ranges, and changes of keys that had been read when an
epoch began."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.epoch.ports import planned
from backfill_assets.core.epoch.records import Plan, fingerprint
from backfill_assets.core.progress.positions import BucketState, Key, KeyRange, SnapshotPosition, TablePosition
from backfill_assets.core.progress.reads import ChangesRead, KeyRead, Read
from backfill_assets.core.strategies.arrangement import ArrangementHistory, done_ranges
from backfill_assets.core.strategies.key_cuts import Span, by_files, by_sample
from backfill_assets.core.strategies.table_views import TablesDecider, TableUpstream
from backfill_assets.errors import VersionsLostError
from tests.support.keyed_world import Lake, Moving, Rows, inside, order

MAX_STEPS = 500


@dataclass
class View:
    """Follows the decider like the protocol and Spark: rows by sign, one by one, without knowledge of pairs."""

    lake: Lake
    buckets: int = 16
    rows: Counter[tuple[Key, int]] = field(default_factory=Counter)
    with_new_cursor: bool = False
    """A mutant: filters changes by what has been read after the epoch."""

    def __post_init__(self) -> None:
        begin = self.decider.begin()
        assert isinstance(begin.position, SnapshotPosition)
        self.position, self.live = begin.position, begin.live

    @property
    def decider(self) -> TablesDecider:
        return TablesDecider(
            view="large",
            upstreams=(TableUpstream(name="base", keyed=True),),
            fingerprint=fingerprint(query="SELECT *", key=[]),
            tables=self.lake,
            histories={"arrangement": ArrangementHistory(tables=self.lake, buckets=self.buckets)},
            strategy="arrangement",
            choose=lambda: "arrangement",
        )

    @property
    def at(self) -> TablePosition:
        return self.position.tables["base"]

    def step(self, budget: int, *, killed: bool = False) -> bool:
        """One epoch; with `killed`, everything except the commit. Returns whether there was anything to do."""
        found = self.decider.next(self.position, live=self.live, budget=budget)
        if found is None:
            return False
        assert isinstance(found.after, SnapshotPosition)
        rows = Counter(self.rows)
        for read in found.reads:
            for row, sign in self._read(read, found.after):
                rows[row] += sign
        if not killed:
            self.rows, self.position, self.live = +rows, found.after, found.live
            assert min(rows.values(), default=0) >= 0, "what was never there was taken away"
        return True

    def _read(self, read: Read, after: SnapshotPosition) -> Iterable[tuple[tuple[Key, int], int]]:
        match read:
            case KeyRead():
                held = self.lake.table.versions[read.version]
                yield from (((key, value), 1) for key, value in held.items() if inside(key, read.keys))
            case ChangesRead():
                assert len({version in self.lake.table.plain for version in range(read.first, read.last + 1)}) == 1
                within = done_ranges(after.tables["base"]) if self.with_new_cursor else read.within
                for version in range(read.first, read.last + 1):
                    yield from self._changes(version, within)
            case _:
                raise AssertionError(read)

    def _changes(self, version: int, within: Iterable[KeyRange] | None) -> Iterable[tuple[tuple[Key, int], int]]:
        for key, old, new in self.lake.table.changes(version):
            if within is None or inside(key, within):
                yield from (((key, value), sign) for value, sign in ((old, -1), (new, 1)) if value is not None)

    def exact(self) -> bool:
        """Whether it equals the recorded version, in the key ranges that have been read."""
        done = done_ranges(self.at)
        held = self.lake.table.versions[self.at.version]
        return self.rows == Counter({(key, value): 1 for key, value in held.items() if inside(key, done)})


PARTS = st.one_of(st.none(), st.sampled_from("abcdef"))
KEYS = st.tuples(PARTS, PARTS)
TABLES = st.dictionaries(KEYS, st.integers(0, 3), max_size=20)
BOUNDS = st.one_of(
    st.lists(KEYS, max_size=8, unique=True).map(lambda keys: tuple(sorted(keys, key=order))),
    st.lists(st.tuples(PARTS), max_size=5, unique=True).map(lambda keys: tuple(sorted(keys, key=order))),
)
EPOCHS = st.lists(
    st.tuples(st.lists(TABLES, max_size=3), st.integers(1, 15), st.booleans(), st.booleans()), min_size=1, max_size=10
)


@given(first=TABLES, bounds=BOUNDS, buckets=st.integers(1, 6), epochs=EPOCHS)
def test_after_every_epoch_the_view_is_the_newest_version_as_far_as_its_keys_were_read(
    first: Rows, bounds: tuple[Key, ...], buckets: int, epochs: list[tuple[list[Rows], int, bool, bool]]
) -> None:
    table = Moving([first], bounds)
    view = View(Lake(table), buckets)
    assert view.exact()
    for moved, budget, killed, plain in epochs:
        for rows in moved:
            if plain:  # append-only, without a change data feed
                table.plain.add(len(table.versions))
            table.versions.append({**rows, **table.versions[-1]} if plain else rows)
        before = view.at
        view.step(budget, killed=killed)
        view.buckets = buckets + 1  # another setting must not change the buckets of a life
        assert view.exact()
        assert all(view.at.buckets[at].next >= bucket.next for at, bucket in before.buckets.items())
        if not killed and not before.backfilled:
            assert sum(each.next for each in view.at.buckets.values()) > sum(
                each.next for each in before.buckets.values()
            )
            assert view.at.version == len(table.versions) - 1, "only the log since the last epoch is ever needed"
            assert not view.at.reads_pinned
    for _ in range(MAX_STEPS):
        if not view.step(5):
            break
    assert view.live
    assert view.rows == Counter(dict.fromkeys(table.versions[-1].items(), 1))
    assert view.decider.done(view.position) - view.at.changes == len(first)
    assert sum(view.decider.lag(view.position).values()) == 0


def test_filtering_by_the_cursor_after_the_epoch_counts_rows_twice() -> None:
    """The mutant differs by one row: it arrived between two epochs, in the range that the second one reads."""
    results = {}
    for with_new_cursor in (False, True):
        table = Moving([{("a",): 1, ("c",): 1, ("e",): 1}], (("b",), ("d",)))
        view = View(Lake(table), with_new_cursor=with_new_cursor)
        view.step(1)
        table.versions.append({**table.versions[-1], ("cc",): 1})
        view.step(1)
        results[with_new_cursor] = (view.exact(), view.rows[("cc",), 1])
    assert results == {False: (True, 1), True: (False, 2)}


@dataclass(frozen=True)
class Pair:
    """An update as in a stream: the row before and the row after."""

    old: Key
    new: Key


def by_rule(change: Pair, kept: tuple[bool, bool]) -> list[tuple[str, Key]]:
    """The pair after rewriting, row by row: a pair that only partly counts becomes a delete or an insert."""
    match kept:
        case (True, True):
            return [("delete", change.old), ("insert", change.new)]
        case (True, False):
            return [("delete", change.old)]
        case (False, True):
            return [("insert", change.new)]
        case _:
            return []


def state_keeps(table: TablePosition, key: Key) -> bool:
    """The rule for one row, bucket by bucket: completed buckets keep it, not started ones drop it, buckets in progress
    keep it up to the cursor."""
    start, ends = 0, [*table.bounds]
    for _, bucket in sorted(table.buckets.items()):
        stop = start + bucket.parts
        lowest, highest = (ends[start - 1] if start else None), (ends[stop - 1] if stop <= len(ends) else None)
        mine = (lowest is None or order(key) > order(lowest)) and (highest is None or order(key) <= order(highest))
        if mine:
            if bucket.next in {0, bucket.parts}:
                return bucket.next > 0
            return order(key) <= order(ends[start + bucket.next - 1])
        start = stop
    raise AssertionError("every key is of some bucket")


@given(data=st.data(), bounds=st.lists(KEYS, min_size=1, max_size=8, unique=True), pair=st.builds(Pair, KEYS, KEYS))
def test_the_filter_is_the_rule_for_any_cursors_and_partitions_pairs_into_deletes_and_inserts(
    data: st.DataObject, bounds: list[Key], pair: Pair
) -> None:
    ends = tuple(sorted(bounds, key=order))
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1).filter(lambda each: sum(each) <= len(ends) + 1))
    sizes = [*sizes, *[len(ends) + 1 - sum(sizes)] * (sum(sizes) <= len(ends))]
    table = TablePosition(
        table_id="base",
        pinned=0,
        version=0,
        commit_ms=0,
        buckets={at: BucketState(parts=size, next=data.draw(st.integers(0, size))) for at, size in enumerate(sizes)},
        bounds=ends,
        expected=(1,) * (len(ends) + 1),
    )
    done = done_ranges(table)
    single_rows = [(what, key) for what, key in (("delete", pair.old), ("insert", pair.new)) if inside(key, done)]
    kept = (state_keeps(table, pair.old), state_keeps(table, pair.new))
    assert single_rows == by_rule(pair, kept)


def test_ranges_are_read_in_the_order_of_the_key_and_sparse_ones_move_the_cursor() -> None:
    view = View(Lake(Moving([{("a",): 1, ("b",): 1, ("f",): 1}], (("a",), ("b",), ("c",), ("d",), ("e",)))), buckets=2)
    ends = []
    while not view.live:
        view.step(1)
        ends.append([(each.after, each.upto) for each in done_ranges(view.at)])
    assert ends == [[(None, ("a",))], [(None, ("e",))], [(None, None)]]


def test_what_is_left_of_a_history_by_key_are_the_rows_of_ranges_that_were_not_read() -> None:
    view = View(Lake(Moving([{(letter,): 1 for letter in "abcdef"}], (("b",), ("c",)))))
    left = [view.decider.lag(view.position)["base"]]
    while not view.live:
        view.step(1)
        left.append(view.decider.lag(view.position)["base"])
    assert left == [6, 4, 3, 0]


def test_changes_with_and_without_a_feed_that_wait_together_are_read_apart() -> None:
    table = Moving([{("a",): 1, ("c",): 1}], (("b",),))
    view = View(Lake(table))
    view.step(1)
    table.versions.append({("a",): 2, ("c",): 1})
    table.plain.add(len(table.versions))
    table.versions.append({("a",): 2, ("aa",): 1, ("c",): 1})
    found = view.decider.next(view.position, live=False, budget=1)
    assert found is not None
    changes = [(each.first, each.last) for each in found.reads if isinstance(each, ChangesRead)]
    assert changes == [(1, 1), (2, 2)]


def test_a_plan_whose_version_is_gone_is_superseded_unless_the_log_is_gone_too() -> None:
    table = Moving([{("a",): 1, ("c",): 1}], (("b",),))
    view = View(Lake(table))
    view.step(1)
    table.versions.append({("a",): 2, ("c",): 1})
    found = view.decider.next(view.position, live=False, budget=1)
    assert found is not None
    plan = Plan(
        target="views/large",
        incarnation="life",
        epoch=2,
        fingerprint={},
        reads=found.reads,
        before=view.position,
        after=found.after,
        live=False,
    )
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    assert view.decider.readable(planned(plan, SnapshotPosition))
    table.gone = {1}
    assert not view.decider.readable(planned(plan, SnapshotPosition))
    table.gone, table.lost = set(), {1}
    with pytest.raises(VersionsLostError):
        view.decider.readable(planned(plan, SnapshotPosition))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9), st.integers(0, 40)), max_size=30), st.integers(2, 20))
def test_files_make_near_even_ranges_of_whole_files_or_none(files: list[tuple[int, int, int]], ranges: int) -> None:
    spans = [Span(low=low, high=low + length, text=str(low + length), rows=rows) for low, length, rows in files]
    cut = by_files(spans, ranges=ranges, small=10)
    held = sorted((span for span in spans if span.rows), key=lambda span: span.low)
    total = sum(span.rows for span in held)
    if cut is None:
        overlap = any(after.low <= before.high for before, after in pairwise(held))
        assert overlap or any(span.rows > max(10, 2 * total // ranges) for span in held)
        return
    assert (sum(cut.rows), len(cut.rows)) == (total, len(cut.bounds) + 1 if total else 0)
    assert len(cut.rows) <= ranges
    ends = [int(str(end)) for (end,) in cut.bounds]
    counted = Counter(sum(span.high > end for end in ends) for span in held for _ in range(span.rows))
    assert [counted[at] for at in range(len(cut.rows))] == list(cut.rows)
    assert all(sum(span.low <= end < span.high for span in held) == 0 for end in ends), "no file is cut"


@given(st.lists(KEYS, max_size=60).map(lambda keys: sorted(keys, key=order)), st.integers(0, 1000), st.integers(1, 9))
def test_a_sample_makes_ranges_that_hold_all_rows_and_never_part_equal_keys(
    keys: list[Key], rows: int, ranges: int
) -> None:
    cut = by_sample(keys, rows, ranges=ranges)
    assert sum(cut.rows) == rows
    assert len(cut.rows) == (len(cut.bounds) + 1 if rows else 0)
    assert len(cut.rows) <= ranges
    assert list(cut.bounds) == sorted(set(cut.bounds), key=order)
    if keys and rows:
        share = -(-len(keys) // min(ranges, len(keys)))
        sizes = Counter(sum(order(key) > order(end) for end in cut.bounds) for key in keys)
        most_equal = max(Counter(keys).values())
        assert max(sizes.values()) < share + most_equal
