"""Faults in reading Kafka: what a source ingests, what a view reads of it, and what happens to records."""

from tests.mutations.mutation import Mutation

__all__ = ["KAFKA"]

KILLED = "tests/e2e/kills/test_kill.py::test_a_killed_run_is_resumed_with_at_most_one_epoch_redone"
INGEST = "backfill_assets/core/strategies/ingest.py"
SOURCE = "backfill_assets/core/strategies/source.py"
COMPUTE = "backfill_assets/adapters/compute/source_compute.py"
TRUNCATION = "backfill_assets/core/strategies/truncation.py"
LOGS = "tests/core/strategies/test_truncation.py::"
HISTORIES = "tests/core/strategies/test_truncation_histories.py::"
RESTORED = (
    "tests/e2e/kafka/test_truncated_logs.py::test_a_log_restored_and_filled_again_is_refused_and_a_restart_is_not"
)
RECORDS = "tests/e2e/kafka/test_records.py::test_a_bad_record_has_its_reason_and_raw_value_and_nothing_else"

KAFKA: tuple[Mutation, ...] = (
    Mutation(
        name="a leader that moves is a missing broker",
        file="backfill_assets/adapters/kafka/connector.py",
        old="while (moving := [key for key, each in found.items() if _moves(each)])",
        new="while (moving := [key for key, each in found.items() if _moves(each)][:0])",
        tests=("tests/adapters/kafka/test_kafka_offers.py::test_a_partition_whose_leader_moves_is_asked_for_again",),
    ),
    Mutation(
        name="consumers of batches that were read are kept for minutes",
        file="backfill_assets/adapters/runtime/spark_conf.py",
        old='.timeout": "5s"',
        new='.timeout": "5m"',
        tests=(
            "tests/e2e/kafka/test_kept_consumers.py::"
            "test_consumers_of_batches_that_were_read_are_closed_within_seconds",
        ),
    ),
    # Ingest
    Mutation(
        name="a partition that joins later is ingested from its end",
        file=INGEST,
        old="joined = {partition: 0 for partition in offer.partitions if partition not in position.next}",
        new="joined = {at: held.end for at, held in offer.partitions.items() if at not in position.next}",
        tests=(
            "tests/core/strategies/test_ingest.py::test_a_partition_that_joins_later_is_read_from_its_very_first_offset",
            "tests/e2e/kafka/test_kafka_realities.py::"
            "test_partitions_that_join_are_read_from_their_first_record_while_backfilling_and_while_live",
        ),
    ),
    Mutation(
        name="offsets that retention took are skipped in silence",
        file=INGEST,
        old="known = {**position.next, **joined}",
        new="""known = {
        partition: max(offset, offer.partitions[partition].start) for partition, offset in {**position.next, **joined}.items()
    }""",
        tests=(
            "tests/core/strategies/test_ingest.py::test_offsets_that_retention_removed_before_they_were_read_are_an_error_never_a_gap",
            "tests/e2e/kafka/test_kafka_realities.py::"
            "test_what_retention_took_is_read_from_bronze_or_named_but_never_skipped",
        ),
    ),
    Mutation(
        name="a recreated topic is taken for the old one",
        file=INGEST,
        old="if known is not None and found is not None and known != found:",
        new="if known is not None and found is not None and known != found and position.topic != offer.topic:",
        tests=(
            "tests/core/strategies/test_ingest.py::test_a_recreated_topic_is_refused_even_where_its_offsets_fit",
            "tests/e2e/kafka/test_kafka_realities.py::test_a_topic_that_was_recreated_is_never_taken_for_the_old_one",
        ),
    ),
    Mutation(
        name="a start beyond the end of the topic is taken",
        file=INGEST,
        old="if not held.start <= start <= held.end:",
        new="if not held.start <= start:",
        tests=(
            "tests/core/strategies/test_ingest.py::test_a_start_beyond_the_end_is_refused",
            "tests/e2e/kafka/test_kafka_starts.py::"
            "test_a_start_that_the_topic_does_not_have_is_refused_and_nothing_is_created",
        ),
    ),
    Mutation(
        name="views over a source of new records have no history",
        file=INGEST,
        old="history=dict(starts),",
        new="history=dict(begin),",
        tests=("tests/core/strategies/test_ingest.py::test_the_start_is_resolved_once_when_the_source_is_created",),
    ),
    # A log that lost its end
    Mutation(
        name="a source that is created remembers no record below its start",
        file=INGEST,
        old="position = self._marked(begin_ingest(offer, starts, keep_history=self.keep_history), offer)",
        new="position = begin_ingest(offer, starts, keep_history=self.keep_history)",
        tests=(f"{LOGS}test_a_source_that_has_read_nothing_yet_knows_a_record_below_its_start",),
    ),
    Mutation(
        name="other leaders are not asked where their log began",
        file=TRUNCATION,
        old="            if now[partition] > epoch and partition in self._held",
        new="            if now[partition] > epoch + 9 and partition in self._held",
        tests=(f"{HISTORIES}test_a_run_fails_exactly_if_something_that_was_read_was_replaced", RESTORED),
    ),
    Mutation(
        name="remembered records are not compared",
        file=TRUNCATION,
        old="if each.digest != self.mark.witnesses[partition].digest",
        new='if each.digest == ""',
        tests=(f"{LOGS}test_a_cluster_restored_with_its_metadata_reuses_epochs_and_is_detected_by_its_records",),
    ),
    Mutation(
        name="an epoch that went back is taken for a usual one",
        file=TRUNCATION,
        old="for partition in went_back - seen if",
        new="for partition in went_back & seen if",
        tests=(f"{LOGS}test_an_epoch_that_went_back_is_refused_unless_the_last_record_is_still_there",),
    ),
    Mutation(
        name="a position keeps the mark that it began with",
        file=TRUNCATION,
        old="epochs={**before.epochs, **offer.epochs},",
        new="epochs={**offer.epochs, **before.epochs},",
        tests=(f"{HISTORIES}test_a_run_fails_exactly_if_something_that_was_read_was_replaced",),
    ),
    Mutation(
        name="what was read is held against the log only where it is idle",
        file=INGEST,
        old="if planned is not None or log.elected:",
        new="if planned is None and log.elected:",
        tests=(f"{LOGS}test_a_cluster_restored_with_its_metadata_reuses_epochs_and_is_detected_by_its_records",),
    ),
    Mutation(
        name="a plan is redone whatever its offsets hold by now",
        file=INGEST,
        old=" and not planned.replaced()",
        new="",
        tests=(f"{LOGS}test_a_plan_is_not_redone_over_a_log_that_lost_what_was_read_before",),
    ),
    Mutation(
        name="views forget what they read ahead of their source",
        file=SOURCE,
        old='return after.model_copy(update={"log": narrowed(log, ahead)})',
        new='return after.model_copy(update={"log": narrowed(log, ())})',
        tests=(f"{LOGS}test_history_that_a_view_read_ahead_of_its_source_and_that_is_gone_is_named",),
    ),
    Mutation(
        name="views read history that their source never read",
        file=SOURCE,
        old="            check_log(consumed_log(source.name, bronze.position, topic, self.upstreams))\n",
        new="",
        tests=(f"{LOGS}test_a_new_view_does_not_read_history_that_its_source_never_read",),
    ),
    Mutation(
        name="a consumer is assigned and does not seek",
        file="backfill_assets/adapters/kafka/log.py",
        old="if start.leader_epoch is not None:",
        new="if start.leader_epoch is None:",
        tests=(RESTORED,),
    ),
    # Strategy `source`
    Mutation(
        name="the first live row of each range is left out",
        file=SOURCE,
        old="from_bronze[partition] = OffsetRange(start=state.next, end=state.next + share)",
        new="from_bronze[partition] = OffsetRange(start=state.next + 1, end=state.next + share)",
        tests=(
            "tests/core/strategies/test_source.py::"
            "test_history_is_read_from_kafka_without_waiting_for_bronze_and_live_rows_below_it_are_dropped",
            "tests/core/test_simulation.py",
        ),
    ),
    Mutation(
        name="history counts as read further than it was",
        file=SOURCE,
        old="partitions[partition] = state.read_history(reach.end)",
        new="partitions[partition] = state.read_history(wanted.end)",
        tests=("tests/core/test_simulation.py",),
    ),
    Mutation(
        name="a compacted topic is read from Kafka beyond the seam with bronze",
        file=SOURCE,
        old="        end = min(end, ingested.begin[partition])",
        new="        end = min(end, ingested.next[partition])",
        tests=(
            "tests/core/strategies/test_source_reads.py::"
            "test_a_compacted_topic_with_bronze_new_is_read_from_kafka_up_to_where_bronze_begins",
        ),
    ),
    Mutation(
        name="history that nobody holds any more is skipped",
        file=SOURCE,
        old="    if held is None or lost:\n        earliest",
        new="    if held is None:\n        earliest",
        tests=(
            "tests/core/strategies/test_source_reads.py::test_history_that_nobody_has_any_more_is_an_error_never_a_gap",
            "tests/e2e/kafka/test_kafka_realities.py::"
            "test_what_retention_took_is_read_from_bronze_or_named_but_never_skipped",
        ),
    ),
    Mutation(
        name="live rows leave history nothing of the budget",
        file=SOURCE,
        old="for_live = min(live, max(budget - history, budget // 2))",
        new="for_live = min(live, budget)",
        tests=("tests/core/strategies/test_shares.py",),
    ),
    Mutation(
        name="a source that was reset under a view is read on",
        file=SOURCE,
        old="if same_life and not went_back:",
        new="if not went_back:",
        tests=(
            "tests/core/strategies/test_source_reads.py::test_a_source_that_was_reset_under_a_view_is_refused_by_its_incarnation",
            "tests/e2e/kafka/test_kafka_records.py::"
            "test_an_empty_topic_gives_live_tables_and_a_reset_source_stops_its_views",
        ),
    ),
    # Kafka
    Mutation(
        name="a silent broker's answer is taken for an offset",
        file="backfill_assets/adapters/kafka/connector.py",
        old="if each.offset < least):",
        new="if each.offset < NO_SUCH_OFFSET and least < 0):",
        tests=("tests/adapters/kafka/test_kafka_offers.py",),
    ),
    Mutation(
        name="records of aborted transactions are read",
        file=COMPUTE,
        old="""        .option("kafka.isolation.level", read.isolation)\n""",
        new="",
        tests=(
            "tests/e2e/kafka/test_kafka_realities.py::"
            "test_only_committed_records_count_and_a_marker_at_the_end_hangs_nothing",
            KILLED,
        ),
    ),
    Mutation(
        name="bad records are dropped",
        file="backfill_assets/adapters/sql/kafka_records.py",
        old="""return judged.selectExpr(*metadata, *values, f"__error AS {ERROR}", raw_value)""",
        new="""return judged.selectExpr(*metadata, *values, f"__error AS {ERROR}", raw_value).where("_error IS NULL")""",
        tests=(RECORDS, "tests/e2e/kafka/test_first_path.py::test_history_and_new_events_reach_the_view_each_once"),
    ),
    Mutation(
        name="a record that does not fit its schema passes with nulls",
        file="backfill_assets/adapters/sql/kafka_records.py",
        old="""{frame}.end = 1 AND {frame}.broken IS NULL AND size({frame}.record) = 1\"""",
        new="""{frame}.end = 1 AND size({frame}.record) = 1\"""",
        tests=(RECORDS,),
    ),
    Mutation(
        name="a mere time of day is completed with today's date",
        file="backfill_assets/adapters/sql/kafka_records.py",
        old="""        doubts.append(f"({value} >= date_sub(current_date(), 2) AND {_HAS_TIME_OF_DAY})")""",
        new="        pass",
        tests=(
            "tests/e2e/kafka/test_records.py::"
            "test_a_mere_time_of_day_is_bad_where_no_other_column_calls_for_a_second_look",
        ),
    ),
    Mutation(
        name="views read records that did not parse",
        file="backfill_assets/query/rowwise.py",
        old="""good = f" WHERE {ERROR} IS NULL" if scope.records and scope.column(ERROR) else \"\"""",
        new="""good = " WHERE TRUE" if scope.records and scope.column(ERROR) else \"\"""",
        tests=(
            "tests/query/test_rowwise.py::test_the_sql_keeps_the_users_text_reads_good_records_and_adds_the_hidden_key",
            "tests/e2e/tables/test_apply.py::test_good_records_come_with_the_hidden_key",
        ),
    ),
    Mutation(
        name="the proof of a topic reads what was aborted",
        file="backfill_assets/adapters/kafka/log.py",
        old='"isolation.level": self._isolation,',
        new='"isolation.level": "read_uncommitted",',
        tests=("tests/adapters/kafka/test_kafka_log.py::test_a_consumer_sees_what_spark_sees",),
    ),
    Mutation(
        name="another log begins beyond what was read",
        file="backfill_assets/adapters/kafka/log.py",
        old="min(begins[partition], read[partition][0] - 1)",
        new="begins[partition]",
        tests=("tests/adapters/kafka/test_kafka_log.py::test_another_log_is_known_below_the_position_that_was_read",),
    ),
    Mutation(
        name="records that were written again later are the same",
        file="backfill_assets/adapters/kafka/log.py",
        old="(str(commit_ms).encode(), message.key(), message.value())",
        new="(message.key(), message.value())",
        tests=("tests/adapters/kafka/test_kafka_log.py::test_records_that_differ_in_any_part_have_other_digests",),
    ),
)
