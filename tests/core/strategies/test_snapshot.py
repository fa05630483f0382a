"""What a view over Delta tables reads next: every file once, then every version once and in order, until it is live."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backfill_assets.core.epoch.ports import EVERYTHING, Commit, TableSize, planned
from backfill_assets.core.epoch.records import Plan
from backfill_assets.core.progress.order import order_of
from backfill_assets.core.progress.positions import OffsetRange, SnapshotPosition
from backfill_assets.core.progress.reads import ChangesRead, FullRead, SnapshotRead
from backfill_assets.core.strategies.full_refresh import FEWEST_BYTES
from backfill_assets.core.strategies.table_views import EMPTY_MS, MAX_EMPTY_VERSIONS, MAX_VERSIONS_READ, TablesDecider
from backfill_assets.errors import (
    DefinitionChangedError,
    UpstreamChangedError,
    UpstreamRefusedError,
    VersionsLostError,
)
from tests.support.settings import examples
from tests.support.tables_world import FILES, FINGERPRINT, PLENTY, Follower, Lake, Table

COMMITS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30)), max_size=12)


@settings(max_examples=examples(100))
@given(
    first=FILES,
    second=FILES,
    budgets=st.lists(st.integers(1, 60) | st.just(EVERYTHING), min_size=1, max_size=6),
    buckets=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    commits=st.lists(COMMITS, max_size=6),
)
def test_every_file_and_every_version_is_read_once_whatever_comes_between(
    first: tuple[int, ...],
    second: tuple[int, ...],
    budgets: list[int],
    buckets: list[int],
    commits: list[list[tuple[str, int]]],
) -> None:
    lake = Lake({"a": Table(first), "b": Table(second)})
    follower = Follower(lake, buckets=buckets[0])
    for at, batch in enumerate(commits):
        for name, rows in batch:
            lake.tables[name].commit(rows)
        follower.buckets = buckets[at % len(buckets)]  # another setting must not change the buckets of a life
        before = follower.decider.lag(follower.position)
        offsets = follower.decider.offsets(follower.position)
        follower.step(budgets[at % len(budgets)])
        after, now = follower.decider.lag(follower.position), follower.decider.offsets(follower.position)
        assert {name: before[name] + offsets[name] for name in lake.tables} == {
            name: after[name] + now[name] for name in lake.tables
        }, "what was waiting was read or is still waiting"
    follower.finish(budgets[0])
    assert follower.live
    follower.assert_all_read_once()
    assert follower.total == sum(first) + sum(second)
    assert sum(follower.decider.lag(follower.position).values()) == 0
    assert follower.decider.done(follower.position) == follower.total + sum(
        commit.rows for table in lake.tables.values() for commit in table.commits
    )


@given(files=FILES, budget=st.integers(1, 100))
def test_a_step_is_never_empty_while_files_are_left(files: tuple[int, ...], budget: int) -> None:
    follower = Follower(Lake({"a": Table(files)}))
    while not follower.position.backfilled:
        found = follower.step(budget)
        assert found is not None
        assert found.reads
    follower.assert_all_read_once()


@given(first=FILES, second=FILES, budgets=st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_a_table_that_waits_for_another_one_is_not_read_before_that_has_been(
    first: tuple[int, ...], second: tuple[int, ...], budgets: list[int]
) -> None:
    lake = Lake({"a": Table(first), "b": Table(second)})
    follower = Follower(lake, order=order_of(["b", "a"]))
    at = 0
    while not follower.position.tables["b"].backfilled:
        follower.step(budgets[at % len(budgets)])
        assert not any(bucket.next for bucket in follower.position.tables["a"].buckets.values())
        at += 1
    follower.finish(budgets[0])
    assert follower.live
    follower.assert_all_read_once()


def test_three_files_in_256_buckets_make_three_buckets() -> None:
    follower = Follower(Lake({"a": Table((5, 6, 7))}), buckets=256)
    assert sorted(follower.position.tables["a"].buckets) == [0, 1, 2]
    follower.finish(1)
    follower.assert_all_read_once()


def test_an_empty_table_is_live_at_once_and_so_is_nothing_else() -> None:
    empty = Follower(Lake({"a": Table()}))
    assert (empty.live, empty.total, empty.step()) == (True, 0, None)
    assert not Follower(Lake({"a": Table((1,))})).live


def test_a_file_without_rows_is_read_before_the_change_log() -> None:
    follower = Follower(Lake({"a": Table((0, 0))}))
    follower.lake.tables["a"].commit(3)
    follower.finish()
    follower.assert_all_read_once()


def test_one_huge_file_is_one_step_whatever_the_budget() -> None:
    follower = Follower(Lake({"a": Table((10**12,))}))
    found = follower.step(1)
    assert found is not None
    assert [read.rows for read in found.reads if isinstance(read, SnapshotRead)] == [10**12]
    assert found.live
    assert follower.step(1) is None


def test_the_last_file_and_the_newest_version_make_it_live_in_the_same_step() -> None:
    follower = Follower(Lake({"a": Table((4, 4))}))
    found = follower.step()
    assert found is not None
    assert found.live
    assert follower.lake.checked_keys == [{"a": 0}]


def test_versions_that_came_during_the_snapshot_are_read_before_it_is_live() -> None:
    follower = Follower(Lake({"a": Table((4, 4))}))
    follower.lake.tables["a"].commit(2)
    found = follower.step()
    assert found is not None
    assert not found.live
    found = follower.step()
    assert found is not None
    assert found.live
    assert follower.position.bound.max_lag is not None


def test_a_file_is_taken_from_every_bucket_in_turn() -> None:
    follower = Follower(Lake({"a": Table((1,) * 8)}), buckets=4)
    found = follower.step(4)
    assert found is not None
    (read,) = found.reads
    assert isinstance(read, SnapshotRead)
    assert read.ranges == {bucket: OffsetRange(start=0, end=1) for bucket in range(4)}


def test_maintenance_alone_is_passed_over_only_when_much_of_it_waits() -> None:
    follower = Follower(Lake({"a": Table((1,))}))
    follower.finish()
    for _ in range(MAX_EMPTY_VERSIONS - 1):
        follower.lake.tables["a"].commit(0)
    assert follower.step() is None
    follower.lake.tables["a"].commit(0)
    found = follower.step()
    assert found is not None
    assert found.reads == ()
    assert follower.position.tables["a"].version == MAX_EMPTY_VERSIONS
    assert follower.step() is None


def test_maintenance_that_is_old_is_passed_over_however_little_it_is_before_the_log_forgets_it() -> None:
    follower = Follower(Lake({"a": Table((1,))}))
    follower.finish()
    made = [Commit(version=at, commit_ms=EMPTY_MS + at - 2, rows=0, deletes=False, feed=True) for at in (1, 2)]
    follower.lake.tables["a"].commits.append(made[0])
    assert follower.step() is None
    follower.lake.tables["a"].commits.append(made[1])
    assert follower.step() is not None
    assert follower.position.tables["a"].version == 2


def test_a_bound_shrinks_by_the_table_that_was_followed_the_furthest() -> None:
    follower = Follower(Lake({"a": Table((1,)), "b": Table((1,))}))
    table = follower.lake.tables["a"]
    bounds = []
    for more, budget in ((4, PLENTY), (0, 2), (5, 2)):  # history, then two of four versions, then two of seven
        for _ in range(more):
            table.commit(1)
        follower.step(budget)
        bounds.append(follower.position.bound.max_lag)
    assert bounds == [None, 2000, 1000], "the second time half of the two seconds that were followed"


def test_a_tick_reads_few_waiting_versions_and_an_epoch_a_limited_number() -> None:
    follower = Follower(Lake({"a": Table((1,))}))
    follower.finish()
    for number in range(3 * MAX_VERSIONS_READ):
        follower.lake.tables["a"].commit(number % 2)
    follower.lake.looked_at.clear()
    assert follower.decider.waits(follower.position, live=True)
    assert follower.lake.looked_at["a"] <= MAX_EMPTY_VERSIONS
    follower.lake.looked_at.clear()
    assert follower.decider.lag(follower.position) == {"a": 3 * MAX_VERSIONS_READ // 2}
    assert follower.decider.next(follower.position, live=True, budget=PLENTY) is not None
    assert follower.lake.looked_at["a"] == 2 * MAX_VERSIONS_READ
    assert follower.finish() == 3
    follower.assert_all_read_once()


def test_an_epoch_of_everything_takes_all_versions_of_all_tables_however_many_and_however_they_are_read() -> None:
    follower = Follower(Lake({"a": Table((1,)), "b": Table((1,))}))
    follower.finish()
    for number in range(2 * MAX_VERSIONS_READ):
        follower.lake.tables["a"].commit(number % 3, feed=number < MAX_VERSIONS_READ)
    follower.lake.tables["b"].commit(1)
    found = follower.step(EVERYTHING)
    assert found is not None
    assert [(each.source, each.first, each.last) for each in found.reads if isinstance(each, ChangesRead)] == [
        ("a", 1, MAX_VERSIONS_READ),
        ("a", MAX_VERSIONS_READ + 1, 2 * MAX_VERSIONS_READ),
        ("b", 1, 1),
    ]
    assert follower.step() is None
    follower.assert_all_read_once()


def test_changes_that_outweigh_their_table_are_outweighed_however_many_versions_wait() -> None:
    table = Table((1,), size=TableSize(rows=1, bytes=FEWEST_BYTES))
    follower = Follower(Lake({"a": table}))
    follower.finish()
    for _ in range(2 * MAX_VERSIONS_READ):
        table.commit(1, deletes=True, size=FEWEST_BYTES)
    found = follower.step()
    assert found is not None
    (read,) = found.reads
    assert isinstance(read, FullRead)
    assert (read.first, read.last, read.rows) == (1, 2 * MAX_VERSIONS_READ, 2 * MAX_VERSIONS_READ)
    assert follower.step() is None


def test_versions_with_and_without_a_feed_are_never_read_together() -> None:
    follower = Follower(Lake({"a": Table((1,))}))
    for feed in (False, False, True, True, False):
        follower.lake.tables["a"].commit(1, feed=feed)
    steps = follower.finish()
    assert (steps, follower.versions) == (4, {"a": [1, 2, 3, 4, 5]})


@pytest.mark.parametrize("after_snapshot", [True, False])
def test_deletes_in_a_table_without_a_key_are_refused_by_version(after_snapshot: bool) -> None:
    follower = Follower(Lake({"a": Table((1, 1))}), keyed=False)
    follower.step(PLENTY if after_snapshot else 1)
    follower.lake.tables["a"].commit(5)
    follower.lake.tables["a"].commit(1, deletes=True)
    with pytest.raises(UpstreamRefusedError) as refused:
        follower.finish()
    assert refused.value.facts["version"] == 2


def grown_again(table: Table) -> list[Commit]:
    """The table was restored to its first version, and as many versions as before and one more were committed after
    that."""
    later = [replace(commit, commit_ms=commit.commit_ms + 77) for commit in table.commits]
    return [*later, replace(later[-1], version=len(later) + 1, commit_ms=later[-1].commit_ms + 1)]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        (lambda table: replace(table, table_id="second"), "is not the one"),
        (lambda table: replace(table, incarnation="life"), "reset, replaced, put back or dropped"),
        (lambda table: replace(table, commits=[]), "was restored to version"),
        (lambda table: replace(table, commits=grown_again(table)), "restored to an older version and written to again"),
    ],
)
def test_another_table_another_life_and_a_table_restored_are_refused(
    changed: Callable[[Table], Table], what: str
) -> None:
    follower = Follower(Lake({"a": Table((1,))}))
    follower.lake.tables["a"].commit(1)
    follower.finish()
    follower.lake.tables["a"] = changed(follower.lake.tables["a"])
    for look in (follower.step, lambda: follower.decider.lag(follower.position)):
        with pytest.raises(UpstreamChangedError, match=what):
            look()


@pytest.mark.parametrize("gone", [0, 2])
def test_what_is_gone_is_an_error_and_never_a_hole(gone: int) -> None:
    follower = Follower(Lake({"a": Table((1, 1))}))
    for _ in range(3):
        follower.lake.tables["a"].commit(1)
    follower.lake.tables["a"].lost.add(gone)
    with pytest.raises(VersionsLostError):
        follower.finish(1)
    assert follower.versions.get("a", []) in ([], [1])


def test_history_is_read_on_by_the_strategy_that_began_it_and_a_live_view_by_any() -> None:
    follower = Follower(Lake({"a": Table((5, 5))}))
    follower.step(5)

    def otherwise() -> TablesDecider:
        return replace(follower.decider, strategy="arrangement")

    with pytest.raises(DefinitionChangedError, match="now declared with 'arrangement'") as caught:
        otherwise().next(follower.position, live=follower.live, budget=PLENTY)
    assert caught.value.facts["changed"] == ["strategy"]
    follower.finish()
    follower.lake.tables["a"].commit(3)
    assert otherwise().next(follower.position, live=follower.live, budget=PLENTY) is not None


def test_a_table_that_was_recreated_between_plan_and_commit_is_detected() -> None:
    follower = Follower(Lake({"a": Table((5, 5))}))
    before, step = follower.position, follower.step(5)
    assert step is not None
    plan = Plan(
        target="views/large",
        incarnation="11111111",
        epoch=1,
        fingerprint=FINGERPRINT,
        reads=step.reads,
        before=before,
        after=step.after,
        live=step.live,
    )
    follower.decider.confirm(planned(plan, SnapshotPosition))
    follower.lake.tables["a"].table_id = "second"
    with pytest.raises(UpstreamChangedError):
        follower.decider.confirm(planned(plan, SnapshotPosition))
