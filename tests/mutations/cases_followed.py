"""Faults of following tables that others write, of keeping those that others read, and of what runs leave to each other."""

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
PASSES = "tests/e2e/damage/test_checks_since.py::test_a_pass_of_another_epoch_or_of_a_later_version_does_not_count"
COMPACTED = "tests/e2e/kafka/test_kafka_compaction.py"

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
    Mutation(
        name="captured rows that a dead run has drained stay",
        file="backfill_assets/app/refresh.py",
        old="(look.record.epoch == 0 or _drained(table, look))",
        new="look.record.epoch == 0",
        tests=("tests/e2e/kills/test_takeover.py::test_captured_rows_that_a_dead_run_has_drained_go",),
    ),
    Mutation(
        name="groups take captured rows one by one",
        file="backfill_assets/app/wiring/deciding.py",
        old="at_once=is_aggregate(view.text)",
        new="at_once=False",
        tests=(
            "tests/app/test_wiring.py::test_groups_take_all_captured_rows_at_once_as_they_may_need_the_newest_version",
        ),
    ),
    Mutation(
        name="a pass at a version that is not looked at counts",
        file="backfill_assets/app/table_checks.py",
        old="    if passed.version > look.version:",
        new="    if False:",
        tests=(PASSES,),
    ),
    Mutation(
        name="a pass of another epoch counts",
        file="backfill_assets/app/table_checks.py",
        old="or (found.incarnation, found.epoch) != (passed.incarnation, passed.epoch)",
        new="",
        tests=(PASSES,),
    ),
    Mutation(
        name="parts of a key are taken for files",
        file="backfill_assets/adapters/proof/tables.py",
        old="        found = {name: all_pinned(each) for name, each in found.items()}\n",
        new="        pass\n",
        tests=(
            "tests/e2e/tables/test_hashed_history.py::"
            "test_a_check_reads_all_files_of_a_table_of_which_fewer_parts_are_taken",
        ),
    ),
    Mutation(
        name="a view that was put back is replaced again at once",
        file="backfill_assets/defs/jobs.py",
        old="        if config.undo or config.forget:\n            return\n",
        new="",
        tests=(
            "tests/e2e/dagster/test_dagster.py::test_a_job_puts_a_view_back_or_forgets_what_it_was_and_builds_nothing",
        ),
    ),
    Mutation(
        name="the broker gets another port at each start",
        file="backfill_assets/adapters/local/servers.py",
        old="last=state.ports.get(_KAFKA)",
        new="last=None",
        tests=("tests/adapters/local/test_servers.py::test_servers_are_asked_for_the_ports_that_they_had",),
    ),
    Mutation(
        name="what ran before ends with what does not start",
        file="backfill_assets/adapters/local/servers.py",
        old="            _stop(folder, spared=before)",
        new="            _stop(folder)",
        tests=(
            "tests/adapters/local/test_servers.py::test_what_runs_already_stays_when_another_server_does_not_start",
        ),
    ),
    Mutation(
        name="what a call has started goes on though another server does not start",
        file="backfill_assets/adapters/local/servers.py",
        old="            _stop(folder, spared=before)\n",
        new="",
        tests=(
            "tests/adapters/local/test_servers.py::"
            "test_what_a_call_has_started_ends_again_when_another_server_does_not_start",
        ),
    ),
    Mutation(
        name="the local broker forgets history after a week",
        file="backfill_assets/adapters/local/broker.py",
        old="log.retention.ms=-1",
        new="log.retention.ms=604800000",
        tests=(
            "tests/e2e/kafka/test_kafka_starts.py::test_the_local_broker_keeps_history_until_a_topic_says_otherwise",
        ),
    ),
    Mutation(
        name="logs grow for ever",
        file="backfill_assets/app/heartbeat.py",
        old="            expire_log(self.workspace, self.table)\n",
        new="",
        tests=(f"{CHAINS}::test_runs_shorten_the_log_of_a_table_and_forget_its_old_plans",),
    ),
    Mutation(
        name="plans are kept for ever",
        file="backfill_assets/app/heartbeat.py",
        old="            self.workspace.state.ledger().prune(record)\n",
        new="",
        tests=(f"{CHAINS}::test_runs_shorten_the_log_of_a_table_and_forget_its_old_plans",),
    ),
    Mutation(
        name="groups are wrong because a compacted topic has lost records",
        file="backfill_assets/app/proof_rows.py",
        old='    return each.subset and any(read.kind == "kafka" for read in each.reads)',
        new="    return False",
        tests=(COMPACTED,),
    ),
    Mutation(
        name="rows are too many because a compacted topic has lost records",
        file="backfill_assets/adapters/proof/rows.py",
        old='        forgiven=f"NOT {_inside(proof, proof.proved)}" if proof.subset else "FALSE",',
        new='        forgiven="FALSE",',
        tests=(COMPACTED,),
    ),
    Mutation(
        name="sums of floats have to be the same to the last digit",
        file="backfill_assets/adapters/proof/since.py",
        old=", rounded=True)",
        new=")",
        tests=("tests/e2e/damage/test_checks_since.py::test_the_last_digit_of_a_sum_of_floats_is_no_violation",),
    ),
    Mutation(
        name="what was refused and staged stays once it was corrected",
        file="backfill_assets/core/epoch/protocol.py",
        old="    parts.ledger.left_behind = True  # what was refused may have been staged\n",
        new="",
        tests=("tests/core/epoch/test_corrected_plans.py",),
    ),
    Mutation(
        name="samples of a compacted topic do not count",
        file="backfill_assets/app/proof_samples.py",
        old="    return [Sampled(sample=each, columns=source.bronze_columns, counted=counted) for each in samples]",
        new="    return [Sampled(sample=each, columns=source.bronze_columns, counted=None) for each in samples]",
        tests=(
            "tests/e2e/damage/test_second_reader.py::"
            "test_records_read_again_are_in_the_source_and_in_its_views_as_they_are",
        ),
    ),
)
