"""Faults of following tables that others write, and of maintaining those that others read."""

from tests.mutations.mutation import Mutation

__all__ = ["FOLLOWED"]

UPSTREAM = "backfill_assets/adapters/delta/upstream.py"
REPLAY = "backfill_assets/adapters/delta/log_replay.py"
COMPUTE = "backfill_assets/adapters/compute/table_compute.py"
READERS = "backfill_assets/app/dependents.py"
MAINTAINED = "backfill_assets/app/lifecycle.py"
LOGS = "tests/adapters/delta/test_log_replay.py"
CHANGES = "tests/adapters/delta/test_table_changes.py"
LOST = "tests/adapters/compute/test_lost_files.py"
CHAINS = "tests/e2e/tables/test_view_chains.py"
BUSY = "tests/e2e/kills/test_survival.py::test_maintaining_a_busy_table_is_not_stopped_by_an_epoch_in_between"
TAKEOVER = "tests/e2e/kills/test_takeover.py::test_what_a_dead_run_has_staged_goes"

FOLLOWED: tuple[Mutation, ...] = (
    Mutation(
        name="an empty file of a writer that died is a checkpoint",
        file=REPLAY,
        old=" and info.size:",
        new=":",
        tests=(f"{LOGS}::test_an_empty_file_of_a_writer_that_died_is_no_checkpoint",),
    ),
    Mutation(
        name="parts of a checkpoint have to say the same of files",
        file="backfill_assets/adapters/delta/checkpoint_files.py",
        old=', promote_options="permissive"',
        new="",
        tests=(f"{LOGS}::test_parts_of_a_checkpoint_need_not_say_the_same_of_files",),
    ),
    Mutation(
        name="a file of which rows are hidden is taken for one that is gone",
        file=UPSTREAM,
        old="not in gone - again for",
        new="not in gone for",
        tests=(f"{CHANGES}::test_a_file_of_which_rows_are_hidden_in_the_same_commit_is_kept",),
    ),
    Mutation(
        name="files are read by paths that Spark takes for others",
        file=UPSTREAM,
        old="not all(map(is_plain_path, paths)) or not",
        new="not",
        tests=(f"{CHANGES}::test_files_with_names_that_spark_takes_for_something_else_are_left_to_deltas_own_reader",),
    ),
    Mutation(
        name="files with other names of columns are read as they are",
        file=UPSTREAM,
        old="        if not is_plain(protocol.",
        new="        if False and not is_plain(protocol.",
        tests=(f"{CHANGES}::test_files_of_partitions_or_with_other_names_of_columns_are_left_to_deltas_own_reader",),
    ),
    Mutation(
        name="a lost file of captured rows is an error of computing",
        file=COMPUTE,
        old="isinstance(read, ChangesRead | SpoolRead):\n                self",
        new="isinstance(read, ChangesRead):\n                self",
        tests=(f"{LOST}::test_groups_may_have_read_all_rows_again_and_rows_only_what_changed",),
    ),
    Mutation(
        name="a lost file of groups that changed is an error of computing",
        file=COMPUTE,
        old="isinstance(read, ChangesRead | SpoolRead):\n                self",
        new="isinstance(read, SpoolRead):\n                self",
        tests=(f"{LOST}::test_groups_may_have_read_all_rows_again_and_rows_only_what_changed",),
    ),
    Mutation(
        name="a key of which two rows went is taken for one row",
        file="backfill_assets/adapters/compute/consolidated.py",
        old='"__came > 1 OR __went < -1"',
        new='"__came > 1"',
        tests=("tests/e2e/tables/test_primary_key.py::test_a_key_of_which_two_rows_went_was_not_unique",),
    ),
    Mutation(
        name="maps are equal only in one order of their entries",
        file="backfill_assets/adapters/sql/map_columns.py",
        old="        return F.array_sort(F.map_entries(inner if _has_map(kind.valueType) else value))",
        new="        return F.map_entries(inner if _has_map(kind.valueType) else value)",
        tests=("tests/e2e/tables/test_map_columns.py::test_rows_are_grouped_by_maps_with_null_values",),
    ),
    Mutation(
        name="a log expires though its newest version does not say the positions",
        file=READERS,
        old="    if look.at != look.version or not",
        new="    if not",
        tests=(f"{CHAINS}::test_a_log_does_not_expire_under_a_view_that_has_still_to_read_it",),
    ),
    Mutation(
        name="a table waits for a view that comes later in the same run",
        file=READERS,
        old="    if lease is None or lease.run_id == run_id or not",
        new="    if lease is None or not",
        tests=(
            f"{CHAINS}::test_a_parent_that_yields_to_its_views_ends_early_while_one_is_behind_its_bound_and_at_work",
        ),
    ),
    Mutation(
        name="maintaining ends with an error because of an epoch in between",
        file=MAINTAINED,
        old="        if table.output.look().life != look.life:\n            raise\n",
        new="        raise\n",
        tests=(BUSY,),
    ),
    Mutation(
        name="a table that was dropped meanwhile is maintained",
        file=MAINTAINED,
        old="        if table.output.look().life != look.life:\n            raise\n",
        new="",
        tests=(BUSY,),
    ),
    Mutation(
        name="what a dead run has left stays where there is nothing new to read",
        file="backfill_assets/app/refresh.py",
        old="        if taken_over and heartbeat.tidy_due:",
        new="        if False:",
        tests=(TAKEOVER,),
    ),
    Mutation(
        name="what a dead run has left stays",
        file="backfill_assets/app/refresh.py",
        old="        heartbeat.tidy_due = taken_over",
        new="        heartbeat.tidy_due = False",
        tests=(TAKEOVER,),
    ),
)
