"""Faults in what epochs commit, in where a view over sources reads, and in what declarations and checks distinguish."""

from tests.mutations.mutation import Mutation

__all__ = ["EPOCHS"]

COMMIT = "backfill_assets/core/epoch/commit.py"
PROTOCOL = "backfill_assets/core/epoch/protocol.py"
SOURCE = "backfill_assets/core/strategies/source.py"
AUDIT = "backfill_assets/core/audit.py"
FINGERPRINTS = "backfill_assets/declare/fingerprints.py"
COMMITS = "tests/core/epoch/test_epoch_commits.py"
SPOOLED = f"{COMMITS}::test_parts_of_the_spool_stay_in_the_folder_of_the_attempt_that_captured_them"
LOST = "tests/core/epoch/test_lives.py::test_a_lost_ledger_is_an_error_that_names_both_sides"
REFUSED = (
    "tests/core/epoch/test_corrected_plans.py::"
    "test_a_plan_whose_rows_were_refused_is_superseded_once_something_came_that_may_correct_them"
)
READS = "tests/core/strategies/test_source_reads.py"
LEVEL = (
    "tests/core/strategies/test_source.py::"
    "test_a_view_is_live_when_no_row_of_bronze_waits_and_a_partition_that_joined_is_behind_until_it_is_read"
)
MEANS = "tests/declare/test_declarations.py::test_a_declaration_that_means_something_else_has_another_fingerprint"

EPOCHS: tuple[Mutation, ...] = (
    # What an epoch commits
    Mutation(
        name="all parts of a spool lie with the newest attempt",
        file=PROTOCOL,
        old="spooled={part: plan.spooled.get(part, mine)",
        new="spooled={part: mine",
        tests=(SPOOLED,),
    ),
    Mutation(
        name="a plan forgets where parts of the spool lie",
        file=PROTOCOL,
        old="        spooled=last.spooled,\n",
        new="",
        tests=(SPOOLED,),
    ),
    Mutation(
        name="rows that replace all others are added to them",
        file=PROTOCOL,
        old="deleted = last.rows_total if staged.replaces else staged.rows_deleted",
        new="deleted = staged.rows_deleted",
        tests=(f"{COMMITS}::test_rows_that_replace_all_others_are_all_that_the_table_holds",),
    ),
    Mutation(
        name="Spark is used for an epoch that reads nothing",
        file=PROTOCOL,
        old="    if not plan.reads:\n        return Staged()\n",
        new="",
        tests=(f"{COMMITS}::test_an_epoch_that_reads_nothing_does_not_use_spark",),
    ),
    Mutation(
        name="a run fails because its table was reset meanwhile",
        file=PROTOCOL,
        old="        if found.life != look.life:\n",
        new="        if found.life != look.life and found.version < 0:\n",
        tests=(f"{COMMITS}::test_a_run_whose_table_was_reset_while_it_computed_is_fenced_and_has_not_failed",),
    ),
    Mutation(
        name="a run fails because a rival committed its epoch and swept",
        file=COMMIT,
        old="        _settled(parts.output.look(), record, look, [])\n        raise",
        new="        raise",
        tests=(f"{COMMITS}::test_a_run_whose_staged_files_a_rival_swept_after_it_committed_the_epoch_is_fenced",),
    ),
    Mutation(
        name="positions are not restated if maintenance comes in between",
        file="backfill_assets/core/epoch/records.py",
        old="if record.epoch == mine.epoch and mine.kind is CommitKind.EPOCH:",
        new="if record.epoch == mine.epoch:",
        tests=(f"{COMMITS}::test_positions_are_restated_although_maintenance_comes_in_between",),
    ),
    Mutation(
        name="a part that comes to a declaration changes nothing",
        file="backfill_assets/core/epoch/records.py",
        old="    names = {*built_with, *declared} - {SELECT}",
        new="    names = {*built_with} - {SELECT}",
        tests=(f"{COMMITS}::test_parts_that_come_to_a_declaration_or_go_from_it_have_changed",),
    ),
    Mutation(
        name="a ledger that was lost after one epoch is not missed",
        file=PROTOCOL,
        old="if newest is None and last.epoch > 0:",
        new="if newest is None and last.epoch > 1:",
        tests=(LOST,),
    ),
    Mutation(
        name="rows that were refused are planned again though nothing came",
        file=PROTOCOL,
        old="if step is None or step.reads == refused.reads:",
        new="if step is None:",
        tests=(REFUSED,),
    ),
    # Views over sources
    Mutation(
        name="history is read beyond what Kafka holds",
        file=SOURCE,
        old="end = min(wanted.end, held.end)",
        new="end = wanted.end",
        tests=(f"{READS}::test_history_is_read_from_kafka_no_further_than_kafka_goes",),
    ),
    Mutation(
        name="a plan is carried out though Kafka has lost its end",
        file="backfill_assets/core/strategies/ingest.py",
        old="        and each.end <= offer.partitions[partition].end\n",
        new="",
        tests=(f"{READS}::test_kafka_holds_a_range_if_it_has_its_first_and_last_offset",),
    ),
    Mutation(
        name="a source that was restored to before a partition joined is read on",
        file=SOURCE,
        old="bronze.position.next.get(partition, -1) < state.live",
        new="bronze.position.next.get(partition, state.live) < state.live",
        tests=(f"{READS}::test_a_source_that_was_restored_to_before_a_partition_joined_is_refused",),
    ),
    Mutation(
        name="a view is begun over a topic that was recreated",
        file=SOURCE,
        old="            check_topic(source.name, bronze.position, topic)\n            check_log",
        new="            check_log",
        tests=(f"{READS}::test_a_view_over_a_topic_that_was_recreated_is_not_begun",),
    ),
    Mutation(
        name="history of a partition that the topic lost is left out",
        file=SOURCE,
        old="        if partition not in topic.partitions:\n            raise",
        new="        if partition not in topic.partitions:\n            continue\n        if start < 0:\n            raise",
        tests=(f"{READS}::test_a_view_over_a_topic_that_lost_a_partition_is_not_begun",),
    ),
    Mutation(
        name="a view is live though rows of bronze wait",
        file=SOURCE,
        old="s.phase is not Phase.FINISHED or s.next >= s.live",
        new="s.phase is not Phase.FINISHED or s.next >= s.start",
        tests=(LEVEL,),
    ),
    Mutation(
        name="a partition that joined is not behind",
        file=SOURCE,
        old="""lags[f"{name}/{partition}"] = bronze.next[partition] - bronze.begin[partition]""",
        new="""lags[f"{name}/{partition}"] = 0""",
        tests=(LEVEL,),
    ),
    Mutation(
        name="an order holds only between neighbours",
        file="backfill_assets/core/progress/order.py",
        old="closed[name] = frozenset(direct).union(*(closed[each] for each in direct))",
        new="closed[name] = frozenset(direct)",
        tests=(
            "tests/core/progress/test_backfill_order.py::test_what_comes_after_a_name_comes_after_all_that_it_waits_for",
        ),
    ),
    # What is distinguished
    Mutation(
        name="more rows of a table may be counted than were planned",
        file=AUDIT,
        old="if plan is not None and counted != stated:",
        new="if plan is not None and counted < stated:",
        tests=(
            "tests/core/test_audit_tables.py::test_steps_of_a_snapshot_and_its_change_log_that_are_not_sound_are_named",
        ),
    ),
    Mutation(
        name="as many rows may be written as there were offsets",
        file=AUDIT,
        old="copies * after.rows_read",
        new="copies * offered",
        tests=(
            "tests/core/test_audit.py::test_an_epoch_that_wrote_more_than_it_read_or_read_more_than_its_offsets_is_named",
        ),
    ),
    Mutation(
        name="a view does not depend on the columns of its sources",
        file=FINGERPRINTS,
        old="""                schema=[(name, parts["schema"]) for name, parts in upstreams],\n""",
        new="",
        tests=(MEANS,),
    ),
    Mutation(
        name="a view does not depend on the keys of its tables",
        file=FINGERPRINTS,
        old="key=[own, keys],",
        new="key=[own],",
        tests=(MEANS,),
    ),
    Mutation(
        name="a view does not depend on the key that it names itself",
        file=FINGERPRINTS,
        old="key=[own, keys],",
        new="key=[keys],",
        tests=(MEANS,),
    ),
)
