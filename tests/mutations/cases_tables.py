"""Faults in how views over Delta tables read: history by each strategy, the change log, the choice of a strategy."""

from tests.mutations.mutation import Mutation

__all__ = ["OVER_TABLES"]

SOURCE = "backfill_assets/core/strategies/source.py"
CHANGE_LOG = "backfill_assets/core/strategies/change_log.py"
IN_PARTS = "tests/core/strategies/test_change_log.py"
TABLES = "backfill_assets/core/strategies/table_views.py"
SNAPSHOT = "backfill_assets/core/strategies/snapshot.py"
ONCE = "backfill_assets/core/strategies/snapshot_once.py"
ARRANGEMENT = "backfill_assets/core/strategies/arrangement.py"
REARRANGED = "backfill_assets/core/strategies/rearranged.py"
SNAPSHOT_TESTS = "tests/core/strategies/test_snapshot.py"
EVERY_FILE = f"{SNAPSHOT_TESTS}::test_every_file_and_every_version_is_read_once_whatever_comes_between"
EVERY_KEY = (
    "tests/core/strategies/test_arrangement.py::"
    "test_after_every_epoch_the_view_is_the_newest_version_as_far_as_its_keys_were_read"
)
DUPLICATE = "tests/core/strategies/test_arrangement.py::test_filtering_by_the_cursor_after_the_epoch_counts_rows_twice"
EVERY_SEGMENT = (
    "tests/core/strategies/test_rearranged.py::"
    "test_every_file_and_version_counts_once_though_the_log_forgets_each_as_soon_as_it_is_captured"
)
KEYS_ON_SPARK = (
    "tests/e2e/tables/test_arrangement.py::"
    "test_the_view_is_its_query_after_every_epoch_whatever_moves_and_is_vacuumed_between"
)
EVERYTHING = (
    f"{SNAPSHOT_TESTS}::"
    "test_an_epoch_of_everything_takes_all_versions_of_all_tables_however_many_and_however_they_are_read"
)
DRAINED = (
    "tests/core/strategies/test_rearranged.py::"
    "test_an_epoch_of_everything_that_drains_the_spool_goes_on_in_the_change_log"
)
CONTRACT = "tests/e2e/kills/test_contract.py::test_the_view_is_its_query_after_every_epoch_and_progress_never_goes_back"

OVER_TABLES: tuple[Mutation, ...] = (
    # The order of several histories
    Mutation(
        name="one read goes over a version that reshaped its table",
        file=CHANGE_LOG,
        old=" and not commit.reshapes\n",
        new="\n",
        tests=(IN_PARTS, "tests/e2e/tables/test_columns_that_go.py"),
    ),
    Mutation(
        name="a column that went does not reshape its table",
        file="backfill_assets/adapters/delta/upstream.py",
        old="return bool(gone)",
        new="return bool(set(gone) & now.keys())",
        tests=("tests/adapters/delta/test_table_changes.py",),
    ),
    Mutation(
        name="the order of sources is ignored",
        file=SOURCE,
        old="        unfinished = [name for name, each in position.sources.items() if not each.backfilled]",
        new="        unfinished: list[str] = []",
        tests=(
            "tests/core/progress/test_backfill_order.py::"
            "test_a_source_that_waits_is_not_read_before_or_after_a_restart_and_nothing_is_lost",
        ),
    ),
    Mutation(
        name="the order of tables is ignored",
        file=TABLES,
        old="        unfinished = [name for name, table in position.tables.items() if not table.backfilled]",
        new="        unfinished: list[str] = []",
        tests=(f"{SNAPSHOT_TESTS}::test_a_table_that_waits_for_another_one_is_not_read_before_that_has_been",),
    ),
    # Strategy `snapshot`
    Mutation(
        name="files are dealt to two buckets",
        file=SNAPSHOT,
        old="return range(bucket, files, buckets)",
        new="return range(bucket, files, max(1, buckets - 1))",
        tests=(EVERY_FILE,),
    ),
    Mutation(
        name="a bucket that is resumed reads its last file again",
        file=SNAPSHOT,
        old="number: OffsetRange(start=table.buckets[number].next, end=bucket.next)",
        new="number: OffsetRange(start=max(0, table.buckets[number].next - 1), end=bucket.next)",
        tests=(EVERY_FILE, "tests/core/test_audit_tables.py"),
    ),
    Mutation(
        name="another setting of buckets moves the files of a life",
        file=SNAPSHOT,
        old="buckets=len(table.buckets),",
        new="buckets=self.buckets,",
        tests=(EVERY_FILE,),
    ),
    Mutation(
        name="a view is live before it has what came while its files were read",
        file=TABLES,
        old="live=live or (caught_up and history.finished(after))",
        new="live=live or history.finished(after)",
        tests=(
            f"{SNAPSHOT_TESTS}::test_versions_that_came_during_the_snapshot_are_read_before_it_is_live",
            "tests/e2e/tables/test_snapshot_once.py::"
            "test_nothing_is_visible_before_all_of_it_and_each_epoch_of_the_log_is_equal",
        ),
    ),
    # The change log of tables
    Mutation(
        name="the first of the versions that wait is left out",
        file=CHANGE_LOG,
        old="first=part[0].version,",
        new="first=part[0].version + 1,",
        tests=(EVERY_FILE, "tests/core/test_audit_tables.py"),
    ),
    Mutation(
        name="versions with and without a change data feed are read alike",
        file=CHANGE_LOG,
        old="commit.feed == part[0].feed and",
        new="",
        tests=(f"{SNAPSHOT_TESTS}::test_versions_with_and_without_a_feed_are_never_read_together",),
    ),
    Mutation(
        name="deletes are followed in a view without a key",
        file=TABLES,
        old="            self._check_followable(each, waiting[each.name])\n",
        new="            pass\n",
        tests=(
            f"{SNAPSHOT_TESTS}::test_deletes_in_a_table_without_a_key_are_refused_by_version",
            "tests/e2e/tables/test_snapshot_refusals.py::test_an_append_only_table_needs_no_feed_until_it_has_neither",
        ),
    ),
    Mutation(
        name="a table that was restored to an older version and written to again is read on",
        file="backfill_assets/core/strategies/same_table.py",
        old="if stated not in {None, commit_ms}:",
        new="if stated is not None and stated < commit_ms:",
        tests=(
            f"{SNAPSHOT_TESTS}::test_another_table_another_life_and_a_table_restored_are_refused",
            "tests/core/strategies/test_rearranged.py",
        ),
    ),
    Mutation(
        name="a table restored to before what was captured is read on",
        file="backfill_assets/core/strategies/same_table.py",
        old="version, commit_ms = position.held  #",
        new="version, commit_ms = position.version, position.commit_ms  #",
        tests=(
            "tests/core/strategies/test_rearranged.py::"
            "test_a_table_restored_behind_what_was_captured_is_refused_before_anything_of_it_is_captured",
        ),
    ),
    Mutation(
        name="missing versions are skipped by the plan",
        file=TABLES,
        old="""                if isinstance(read, KeyRead | FullRead):
                    return False
                raise""",
        new="                return False",
        tests=(
            "tests/core/strategies/test_arrangement.py::"
            "test_a_plan_whose_version_is_gone_is_superseded_unless_the_log_is_gone_too",
        ),
    ),
    Mutation(
        name="all waiting versions are read for one epoch",
        file=TABLES,
        old="min(offers[name].version, version + most)",
        new="offers[name].version",
        tests=(f"{SNAPSHOT_TESTS}::test_a_tick_reads_few_waiting_versions_and_an_epoch_a_limited_number",),
    ),
    Mutation(
        name="a table is read in full at a version that is not the newest",
        file=TABLES,
        old="every = self._looked_at(position, offers, most=EVERYTHING)",
        new="every = waiting",
        tests=(f"{SNAPSHOT_TESTS}::test_changes_that_outweigh_their_table_are_outweighed_however_many_versions_wait",),
    ),
    Mutation(
        name="a tick begins with the first table however short its time was before",
        file="backfill_assets/defs/sensors.py",
        old="at = names.index(first) if first in names else 0",
        new="at = 0",
        tests=(
            "tests/e2e/dagster/test_sensors.py::"
            "test_a_tick_without_time_for_all_tables_leaves_the_rest_to_the_next_one",
        ),
    ),
    Mutation(
        name="many versions of mere maintenance are never passed over",
        file=TABLES,
        old="if live and empty and not again and not self._worth_passing(position, waiting):",
        new="if live and empty and not again:",
        tests=(f"{SNAPSHOT_TESTS}::test_maintenance_alone_is_passed_over_only_when_much_of_it_waits",),
    ),
    # Strategy `snapshot_once`
    Mutation(
        name="a part of the snapshot that is read at once can be seen",
        file=ONCE,
        old="replace(turn, names=sorted(position.tables), budget=EVERYTHING)",
        new="replace(turn, names=sorted(position.tables))",
        tests=(
            "tests/core/strategies/test_snapshot_once.py::test_one_step_reads_every_file_of_every_table_and_the_log_follows",
            "tests/e2e/tables/test_snapshot_once.py::"
            "test_nothing_is_visible_before_all_of_it_and_each_epoch_of_the_log_is_equal",
        ),
    ),
    Mutation(
        name="of several tables only those whose turn it is are read at once",
        file=ONCE,
        old="replace(turn, names=sorted(position.tables), budget=EVERYTHING)",
        new="replace(turn, names=turn.names[:1], budget=EVERYTHING)",
        tests=(
            "tests/core/strategies/test_snapshot_once.py::test_one_step_reads_every_file_of_every_table_and_the_log_follows",
            "tests/e2e/tables/test_snapshot_once.py::test_several_tables_and_groups_are_read_at_once_too",
        ),
    ),
    Mutation(
        name="the lag of a snapshot that is read at once is bounded in time",
        file=ONCE,
        old="    bound: LagBound = field(default_factory=CountBound)\n",
        new="",
        tests=(
            "tests/core/strategies/test_snapshot_once.py::test_the_lag_is_counted_in_commits_and_the_bound_goes_down_by_each",
        ),
    ),
    Mutation(
        name="a snapshot that is read at once is resumed at an outdated version",
        file=ONCE,
        old="resumable: bool = False",
        new="resumable: bool = True",
        tests=(
            "tests/core/strategies/test_snapshot_once.py::test_history_that_was_planned_is_not_read_as_planned_by_another_run_and_the_log_is",
            "tests/e2e/kills/test_contract.py::"
            "test_an_epoch_that_is_killed_at_step_after_step_is_committed_once[snapshot_once]",
            "tests/e2e/tables/test_snapshot_once.py::"
            "test_a_creation_that_is_killed_at_any_step_starts_over_over_what_is_newest_and_leaves_nothing",
        ),
    ),
    # Strategy `arrangement`
    Mutation(
        name="changes of keys that were not read are let through",
        file=ARRANGEMENT,
        old="None if table.backfilled else within)",
        new="None)",
        tests=(DUPLICATE, KEYS_ON_SPARK),
    ),
    Mutation(
        name="key ranges are read at the version before the changes",
        file=ARRANGEMENT,
        old="            table = tables[name]\n",
        new="            table = position.tables[name]\n",
        tests=(DUPLICATE, f"{CONTRACT}[arrangement]"),
    ),
    Mutation(
        name="a key range begins where the one before it did",
        file=ARRANGEMENT,
        old="KeyRange(after=ends[run.start],",
        new="KeyRange(after=ends[max(0, run.start - 1)],",
        tests=(DUPLICATE, KEYS_ON_SPARK),
    ),
    Mutation(
        name="changes are put off while key ranges are read",
        file=ARRANGEMENT,
        old="        return [*keys, *changes], position",
        new="        return keys or changes, position",
        tests=(DUPLICATE, f"{CONTRACT}[arrangement]"),
    ),
    Mutation(
        name="changes are filtered by keys that other buckets have still to read",
        file=ARRANGEMENT,
        old="range(start, start + table.buckets[at].next) for at, start",
        new="range(start, start + table.buckets[at].parts) for at, start",
        tests=(
            "tests/core/strategies/test_arrangement.py::"
            "test_the_filter_is_the_rule_for_any_cursors_and_partitions_pairs_into_deletes_and_inserts",
            EVERY_KEY,
        ),
    ),
    # Strategy `rearranged`
    Mutation(
        name="the spool is drained from its newest segment on",
        file=REARRANGED,
        old="else _first_of(spool.segments, shares.get(index, 0))",
        new="else _first_of(spool.segments[::-1], shares.get(index, 0))",
        tests=(
            "tests/core/strategies/test_rearranged.py",
            "tests/e2e/tables/test_rearranged.py::"
            "test_it_finishes_exact_though_log_and_files_are_cleaned_away_behind_it",
        ),
    ),
    Mutation(
        name="segments that were not drained count as drained",
        file=REARRANGED,
        old="(taken[-1].last, taken[-1].commit_ms) if left else (spool.captured, spool.commit_ms)",
        new="(spool.captured, spool.commit_ms)",
        tests=(EVERY_SEGMENT,),
    ),
    Mutation(
        name="versions are captured again with every epoch",
        file=REARRANGED,
        old="self.tables.commits(name, table.spool.captured, offers[name].version)",
        new="self.tables.commits(name, table.version, offers[name].version)",
        tests=(
            EVERY_SEGMENT,
            "tests/e2e/tables/test_rearranged.py::"
            "test_it_finishes_exact_though_log_and_files_are_cleaned_away_behind_it",
        ),
    ),
    Mutation(
        name="a version is captured for which the spool has no room",
        file=REARRANGED,
        old="if commit.bytes and room < 0:",
        new="if commit.bytes and room + commit.bytes < 0:",
        tests=(
            "tests/core/strategies/test_rearranged.py::"
            "test_a_full_spool_is_an_error_and_continues_where_it_stopped_once_it_may_be_larger",
        ),
    ),
    Mutation(
        name="the epoch that drains the rest continues to capture",
        file=REARRANGED,
        old="        if self.finished(after):\n            tables",
        new="        if self.finished(position):\n            tables",
        tests=("tests/core/strategies/test_rearranged.py",),
    ),
    # Everything that exists, if fewer changes were refused
    Mutation(
        name="an epoch of everything looks at no more versions than any other",
        file=TABLES,
        old="most=EVERYTHING if budget == EVERYTHING else MAX_VERSIONS_READ)",
        new="most=MAX_VERSIONS_READ)",
        tests=(EVERYTHING,),
    ),
    Mutation(
        name="an epoch of everything ends where a change data feed was turned on or off",
        file=TABLES,
        old="parts = split_reads(commits) if budget == EVERYTHING else",
        new="parts = split_reads(commits)[:1] if budget == EVERYTHING else",
        tests=(EVERYTHING,),
    ),
    Mutation(
        name="an epoch of everything ends with what is in the spool",
        file=TABLES,
        old="if budget == EVERYTHING and position.backfilled:",
        new="if budget < 0 and position.backfilled:",
        tests=(DRAINED,),
    ),
    Mutation(
        name="what follows the spool in the same epoch leaves out versions of mere maintenance",
        file=TABLES,
        old="reads.extend(changes if rows or each.name in behind else ())",
        new="reads.extend(changes if rows else ())",
        tests=(DRAINED,),
    ),
    Mutation(
        name="the audit takes versions that were captured without rows for unread",
        file="backfill_assets/core/audit.py",
        old="else [since, spool.captured]",
        new="else [since]",
        tests=(DRAINED,),
    ),
)
