"""Faults of feeds that lack changes, of which files are read instead."""

from typing import Final

from tests.mutations.mutation import Mutation

__all__ = ["FEEDS"]

LOGGED: Final = "backfill_assets/adapters/delta/logged_changes.py"
ROWS: Final = "backfill_assets/adapters/compute/table_rows.py"
TOLD: Final = "tests/adapters/delta/test_incomplete_feeds.py"
SPARK: Final = "tests/e2e/tables/test_incomplete_feeds.py::test_spark_finds_just_what_changed"
LOGS: Final = "tests/adapters/delta/test_lesser_logs.py"
OTHERS: Final = f"{TOLD}::test_feeds_of_others_are_read"

FEEDS: tuple[Mutation, ...] = (
    Mutation(
        name="an updated row is one row of a change data feed",
        file=LOGGED,
        old='"numtargetrowsupdated": 2,',
        new='"numtargetrowsupdated": 1,',
        tests=("tests/adapters/delta/test_counted_feeds.py",),
    ),
    Mutation(
        name="a file that is removed twice goes once",
        file=ROWS,
        old="    if len(times) < 2:\n",
        new="    if True:\n",
        tests=(
            "tests/e2e/tables/test_restored_files.py::test_updates_before_and_after_a_restore_are_followed_though_their_feed_is_incomplete[parted]",
        ),
    ),
    Mutation(
        name="a feed that lacks changes is read",
        file=LOGGED,
        old="return () if _is_incomplete(actions) else (each",
        new="return (each",
        tests=(f"{TOLD}::test_files_are_read_instead_of_it",),
    ),
    Mutation(
        name="no feed of delta-rs is read",
        file=LOGGED,
        old='info.get("operation") == "UPDATE" and str',
        new="str",
        tests=(OTHERS,),
    ),
    Mutation(
        name="no feed of an update is read",
        file=LOGGED,
        old='"UPDATE" and str(info.get("engineInfo")).startswith("delta-rs")',
        new='"UPDATE"',
        tests=(OTHERS,),
    ),
    Mutation(
        name="the size of a feed that is not read counts",
        file=LOGGED,
        old="if feed := list(_feed(actions)):",
        new='if feed := [each["cdc"] for each in actions if "cdc" in each]:',
        tests=(OTHERS,),
    ),
    Mutation(
        name="rows of files that were replaced stay",
        file="backfill_assets/adapters/compute/selectable_rows.py",
        old="removed = finder.every(logged(changed.removed), wanted)",
        new="removed = wanted.empty_table()",
        tests=(f"{TOLD}::test_what_this_process_finds_in_these_files_is_what_changed",),
    ),
    Mutation(
        name="Spark does not read files that were replaced",
        file=ROWS,
        old="    if files.removed:\n",
        new="    if False:\n",
        tests=(f"{SPARK}[whole]",),
    ),
    Mutation(
        name="rows of replaced files that did not change are changes",
        file=ROWS,
        old="return netted_changes(rows) if rewritten else rows",
        new="return rows",
        tests=(f"{SPARK}[whole]",),
    ),
    Mutation(
        name="a feed that lacks changes is read beside the files that it is of",
        file=ROWS,
        old="""feed.where(~F.col("_commit_version").isin(incomplete))""",
        new="feed",
        tests=(f"{SPARK}[parted]",),
    ),
    Mutation(
        name="Delta's reader is asked for a feed that lacks changes",
        file=ROWS,
        old="    if not incomplete:\n        return feed\n",
        new="    return feed\n",
        tests=(f"{SPARK}[parted]",),
    ),
    Mutation(
        name="files of versions whose feed is complete are read, too",
        file=ROWS,
        old="removed = [file for each in versions if each.incomplete for file in each.removed]",
        new="removed = [file for each in versions for file in each.removed]",
        tests=(f"{SPARK}[parted]",),
    ),
    Mutation(
        name="replaced files are not counted",
        file=ROWS,
        old="(*files.added, *files.removed))",
        new="files.added)",
        tests=(f"{TOLD}::test_files_are_read_instead_of_it",),
    ),
    Mutation(
        name="feeds are not among the files with rows that changed",
        file="backfill_assets/adapters/compute/table_inputs.py",
        old="counts = [len(tuple(each.needed)) for each in versions]",
        new="counts = [len(each.added) for each in versions]",
        tests=(
            "tests/adapters/compute/test_files_read.py::"
            "test_files_that_are_read_instead_of_an_incomplete_feed_are_counted",
        ),
    ),
    Mutation(
        name="a file that is read twice has its rows once",
        file="backfill_assets/adapters/delta/footers.py",
        old="sum(rows[file.path] - file.deleted for file in unknown)",
        new="sum(rows.values()) - sum(file.deleted for file in unknown)",
        tests=(f"{LOGS}::test_a_file_that_is_read_several_times_has_its_rows_each_time",),
    ),
    Mutation(
        name="files that were only added are left to Spark's reader of the feed",
        file=LOGGED,
        old="return bool(self.feed) or (whole and not hides)",
        new="return bool(self.feed)",
        tests=(
            "tests/adapters/delta/test_table_changes.py::test_files_of_versions_that_came_with_more_columns_are_read_with_these",
        ),
    ),
    Mutation(
        name="a version that is gone has no columns to compare",
        file="backfill_assets/adapters/delta/upstream.py",
        old="            raise self._lost(number, masked(str(error), self.location.storage_options)) from None\n",
        new="            raise error\n",
        tests=(f"{LOGS}::test_columns_of_a_version_that_is_gone_are_not_taken_for_those_of_the_next",),
    ),
    Mutation(
        name="the newest entry that is known may have expired",
        file="backfill_assets/adapters/storage/copied_log.py",
        old="checkpoint = min(max(found.begins, self._checkpoint[0]), self.table.version())",
        new="checkpoint = max(found.begins, self._checkpoint[0])",
        tests=(
            "tests/adapters/storage/test_copied_log.py::"
            "test_another_table_in_its_place_is_noticed_however_far_its_log_has_expired",
        ),
    ),
)
