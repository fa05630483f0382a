"""Strategy `rearranged`: versions are captured once and in order, and drained in order, whatever the log forgets."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.audit import contiguous
from backfill_assets.core.epoch.ports import EVERYTHING, Commit
from backfill_assets.core.epoch.staged_folders import StagedFolder, sweepable
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.progress.reads import (
    CaptureRead,
    ChangesRead,
    FullRead,
    HashRead,
    KeyRead,
    LookupRead,
    SkipRead,
    SnapshotRead,
    SpoolRead,
)
from backfill_assets.errors import SpoolFullError, UpstreamChangedError, UpstreamRefusedError, VersionsLostError
from tests.support.spool_world import ROW, Forgetful, Spooling, busy
from tests.support.tables_world import FILES, Table


@given(
    files=st.tuples(FILES, FILES),
    budgets=st.lists(st.integers(1, 60) | st.just(EVERYTHING), min_size=1, max_size=6),
    commits=st.lists(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30)), max_size=6), max_size=8),
    feeds=st.lists(st.booleans(), min_size=1, max_size=5),
    at_once=st.booleans(),
)
def test_every_file_and_version_counts_once_though_the_log_forgets_each_as_soon_as_it_is_captured(
    files: tuple[tuple[int, ...], ...],
    budgets: list[int],
    commits: list[list[tuple[str, int]]],
    feeds: list[bool],
    at_once: bool,
) -> None:
    follower = Spooling(Forgetful(dict(zip("ab", map(Table, files), strict=True))), at_once=at_once)
    for at, batch in enumerate(commits):
        for name, rows in batch:
            follower.lake.tables[name].commit(rows, feed=feeds[at % len(feeds)])
        before, offsets = follower.decider.lag(follower.position), follower.decider.offsets(follower.position)
        follower.step(budgets[at % len(budgets)])
        after, now = follower.decider.lag(follower.position), follower.decider.offsets(follower.position)
        assert {name: before[name] + offsets[name] for name in before} == {
            name: after[name] + now[name] for name in after
        }
    follower.finish(budgets[0])
    assert follower.live
    assert sum(follower.decider.lag(follower.position).values()) == 0


def test_freshness_is_that_of_captured_versions_while_files_are_read() -> None:
    follower = busy(3, 0)
    for number in range(1, 3):
        follower.lake.tables["a"].commit(5)
        follower.step(10)
        table = follower.position.tables["a"]
        assert (follower.position.lag_ms, table.version, table.held) == (0, 0, (number, 1000 * number))


def test_the_drain_goes_by_segments_and_what_comes_meanwhile_is_captured_behind_them() -> None:
    follower = busy(2, 3)
    kinds = []
    for at in range(6):
        follower.step(10)
        kinds.append([
            (read.kind, read.first) for read in follower_reads(follower) if not isinstance(read, SnapshotRead)
        ])
        if at in {0, 2}:
            follower.lake.tables["a"].commit(10)
    assert kinds == [
        [("capture", 1), ("capture", 2), ("capture", 3)],
        [("capture", 4)],
        [("spool", 1)],
        [("spool", 2), ("capture", 5)],
        [("spool", 3)],
        [("spool", 4)],
    ]
    follower.finish(10)


def follower_reads(follower: Spooling) -> list[SnapshotRead | ChangesRead | CaptureRead | SpoolRead | FullRead]:
    plan = follower.entries[-1].plan
    assert plan is not None
    found = [read for read in plan.table_reads if not isinstance(read, KeyRead | LookupRead | HashRead | SkipRead)]
    assert found == plan.table_reads, "nothing is read by key"
    return found


def test_the_epoch_that_drains_the_rest_captures_nothing_so_a_busy_upstream_cannot_keep_it_from_ending() -> None:
    follower = busy(2, 4)
    for _ in range(10):
        follower.step(20)
        follower.lake.tables["a"].commit(10)
    assert follower.position.tables["a"].spool is None
    assert follower.live or follower.step(20) is not None


def test_an_epoch_of_everything_that_drains_the_spool_goes_on_in_the_change_log() -> None:
    follower = Spooling(Forgetful({"a": Table((10, 10)), "b": Table((10,)), "c": Table((10,))}))
    follower.step(10)
    follower.lake.tables["a"].commit(10)
    follower.lake.tables["b"].commit(0)  # captured, but nothing of it is in the spool
    follower.step(10)
    follower.step()
    for name, rows in (("a", 0), ("b", 5), ("c", 5)):
        follower.lake.tables[name].commit(rows)
    follower.step(EVERYTHING)
    reads = [read for read in follower_reads(follower) if isinstance(read, SpoolRead | ChangesRead)]
    assert [(read.kind, read.source, read.first) for read in reads] == [
        ("spool", "a", 1),
        ("changes", "a", 2),
        ("changes", "b", 2),
        ("changes", "c", 1),
    ]
    assert follower.live
    follower.finish()


def test_deletes_behind_the_spool_of_a_table_without_a_key_are_refused() -> None:
    follower = busy(2, 1, keyed=False)
    follower.step(10)
    follower.step(10)
    follower.lake.tables["a"].commit(1, deletes=True)
    with pytest.raises(UpstreamRefusedError):
        follower.step(EVERYTHING)


def test_a_small_budget_does_not_make_a_segment_of_every_version() -> None:
    follower = busy(3, 100)
    follower.step(1)
    captures = [read for read in follower_reads(follower) if isinstance(read, CaptureRead)]
    assert (captures[0].first, captures[-1].last) == (1, 100)
    assert len(captures) <= 20
    follower.finish(1)


@pytest.mark.parametrize(
    "commits", [[(5, True), (0, False)], [(0, True), (5, False)], [(5, True), (0, False), (5, True)]]
)
def test_a_feed_that_is_turned_on_or_off_by_a_version_without_rows_makes_no_segment_and_no_hole(
    commits: list[tuple[int, bool]],
) -> None:
    follower = busy(3, 0)
    for rows, feed in commits:
        follower.lake.tables["a"].commit(rows, feed=feed)
    follower.step(10)
    spool = follower.position.tables["a"].spool
    assert spool is not None
    assert [each.rows for each in spool.segments] == [5] * (len(spool.segments))
    assert follower.captured == {"a": list(range(1, len(commits) + 1))}
    follower.finish(10)


def test_without_changes_the_spool_is_never_used() -> None:
    follower = busy(2, 0)
    follower.finish(10)
    assert (follower.captured, follower.live) == ({}, True)


def test_an_empty_table_is_live_at_once_and_goes_on_from_the_log() -> None:
    follower = Spooling(Forgetful({"a": Table()}))
    assert follower.live
    follower.lake.tables["a"].commit(3)
    follower.finish()
    assert follower.captured == {}


def test_what_aggregates_captured_is_drained_in_one_epoch() -> None:
    follower = busy(2, 5, at_once=True)
    follower.step(1)
    follower.step(1)
    found = follower.step(1)
    assert found is not None
    assert [(read.kind, read.rows) for read in found.reads if isinstance(read, SpoolRead)] == [("spool", 50)]


def test_a_full_spool_is_an_error_and_continues_where_it_stopped_once_it_may_be_larger() -> None:
    follower = busy(4, 3, limit=25 * ROW)
    follower.step(10)
    assert follower.captured == {"a": [1, 2]}
    with pytest.raises(
        SpoolFullError, match="at most 250 bytes, found 200, and version 3 of table 'a' needs 100 more"
    ) as full:
        follower.step(10)
    assert "BACKFILL_SPOOL_BYTES" in full.value.hint
    assert len(follower.records) == 2, "nothing was planned"
    follower.limit = 10**6
    follower.finish(10)


def test_while_it_is_drained_a_spool_gets_room_by_itself() -> None:
    follower = busy(2, 2, limit=25 * ROW)
    follower.step(10)
    for _ in range(4):
        follower.lake.tables["a"].commit(10)
    follower.finish(10)
    assert follower.live


def test_deletes_in_a_table_without_a_key_are_refused_before_they_are_captured() -> None:
    follower = busy(2, 1, keyed=False)
    follower.lake.tables["a"].commit(1, deletes=True)
    with pytest.raises(UpstreamRefusedError) as refused:
        follower.step(10)
    assert refused.value.facts["version"] == 2


def test_a_version_that_was_forgotten_before_it_was_captured_is_an_error_and_never_a_hole() -> None:
    follower = busy(2, 2)
    assert isinstance(follower.lake, Forgetful)
    follower.lake.cleaned = {"a": 1}
    with pytest.raises(VersionsLostError):
        follower.step(10)


@pytest.mark.parametrize(("kept", "newest"), [(2, 3), (2, 6), (4, 6)])
def test_a_table_restored_behind_what_was_captured_is_refused_before_anything_of_it_is_captured(
    kept: int, newest: int
) -> None:
    follower = busy(3, 5)
    follower.step(10)
    assert (follower.position.tables["a"].version, follower.position.tables["a"].held[0]) == (0, 5)
    commits = follower.lake.tables["a"].commits
    del commits[kept:]
    commits.extend(
        Commit(version=at, commit_ms=77_000 + at, rows=9, deletes=False, feed=True)
        for at in range(kept + 1, newest + 1)
    )
    with pytest.raises(UpstreamChangedError, match="restored to"):
        follower.step(10)


@pytest.mark.parametrize("which", [CaptureRead, SpoolRead])
def test_a_version_that_was_not_captured_or_not_drained_is_found_by_the_audit(
    which: type[CaptureRead | SpoolRead],
) -> None:
    follower = busy(2, 3)
    follower.finish(10)
    assert contiguous(follower.records, follower.entries) == []
    at = next(
        at
        for at, each in enumerate(follower.entries)
        if each.plan and any(isinstance(r, which) for r in each.plan.reads)
    )
    plan = follower.entries[at].plan
    assert plan is not None
    less = plan.model_copy(update={"reads": tuple(read for read in plan.reads if not isinstance(read, which))})
    follower.entries[at] = replace(follower.entries[at], plan=less)
    (violation, *_) = contiguous(follower.records, follower.entries)
    assert "but the plan read" in violation


def test_a_spool_that_is_given_up_before_it_is_drained_is_found_by_the_audit() -> None:
    follower = busy(2, 3)
    follower.step(10)
    before = follower.records[-1]
    position = follower.position.tables["a"].model_copy(update={"spool": None})
    after = before.model_copy(
        update={"epoch": before.epoch + 1, "position": follower.position.model_copy(update={"tables": {"a": position}})}
    )
    assert any("is missing" in each for each in contiguous([before, after], []))


def test_positions_name_what_they_need_of_the_spool_and_are_read_back() -> None:
    follower = busy(2, 2)
    assert follower.position.spooled == ["a/snapshot"]
    follower.step(10)
    assert follower.position.spooled == ["a/1", "a/2", "a/snapshot"]
    assert SnapshotPosition.model_validate_json(follower.position.model_dump_json()) == follower.position
    follower.step(10)
    assert follower.position.backfilled
    assert follower.position.spooled == ["a/1", "a/2", "a/snapshot"], "it is still to be proved"
    follower.step(10)
    assert follower.position.spooled == ["a/2"]
    follower.finish(10)
    assert follower.position.spooled == []


def test_of_the_pinned_version_nothing_is_needed_once_its_files_are_read_and_of_the_log_nothing_that_is_captured() -> (
    None
):
    follower = busy(2, 2)
    found = []
    for _ in range(3):
        follower.step(10)
        table = follower.position.tables["a"]
        found.append((table.reads_pinned, table.version, table.held[0]))
    assert found == [(True, 0, 2), (False, 0, 2), (False, 1, 2)]


def test_folders_of_the_spool_go_when_nothing_names_them_and_never_while_their_epoch_may_be_in_the_making() -> None:
    life, earlier = "0123456789ab", "ba9876543210"
    won, lost, making, dead = (
        StagedFolder(incarnation=incarnation, epoch=epoch, attempt=attempt)
        for incarnation, epoch, attempt in (
            (life, 2, "aaaaaaaa"),
            (life, 2, "bbbbbbbb"),
            (life, 4, "cccccccc"),
            (earlier, 9, "dddddddd"),
        )
    )
    needed = {won.name}
    found = [sweepable(each, incarnation=life, epoch=3, needed=needed) for each in (won, lost, making, dead)]
    assert found == [False, True, False, True]
    assert sweepable(won, incarnation=life, epoch=3, needed=())
