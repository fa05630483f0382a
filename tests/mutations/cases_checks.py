"""Faults in the five checks, and in what people touch: operations, Dagster's assets and sensors, the command line."""

from tests.mutations.mutation import Mutation

__all__ = ["CHECKS"]

AUDIT = "backfill_assets/core/audit.py"
PROOFS = "backfill_assets/app/table_checks.py"
PROOF_ROWS = "backfill_assets/app/proof_rows.py"
VERIFY = "backfill_assets/adapters/proof/rows.py"
PURE = "tests/core/test_audit.py"
DAMAGE = "tests/e2e/damage/test_checks_catch.py"
DAMAGED = "tests/e2e/damage/test_checks_catch.py::test_a_damaged_data_file_is_caught_by_just_the_checks_that_can_see_it"
NEW_DAMAGE = (
    "tests/e2e/damage/test_checks_catch.py::"
    "test_what_was_proved_before_is_left_to_the_full_proof_and_new_damage_is_seen_by_both"
)
COMPACTED = "tests/e2e/damage/test_checks_catch_tables.py::test_rows_that_a_compaction_lost_or_doubled"
LEFT_OUT = "tests/e2e/damage/test_checks_catch.py::test_an_epoch_that_was_left_out_is_named"
DAGSTER = "tests/e2e/dagster/test_dagster.py"
RUN_AND_CHECK = f"{DAGSTER}::test_a_run_materializes_and_checks_and_the_next_one_has_nothing_to_say"

CHECKS: tuple[Mutation, ...] = (
    # for all checks
    Mutation(
        name="a check that cannot be made has passed",
        file="backfill_assets/defs/checks.py",
        old='return Outcome(passed=False, summary=f"could not',
        new='return Outcome(passed=True, summary=f"could not',
        tests=(f"{DAGSTER}::test_a_check_that_cannot_be_made_has_not_passed_and_does_not_prevent_others",),
    ),
    Mutation(
        name="what was proved of an earlier life counts",
        file=PROOFS,
        old="if passed is None or record is None or passed.incarnation != record.incarnation:",
        new="if passed is None or record is None:",
        tests=(f"{DAMAGE}::test_what_was_proved_of_an_earlier_life_is_proved_again",),
    ),
    # positions_contiguous
    Mutation(
        name="an epoch that was left out is contiguous",
        file=AUDIT,
        old="if after.epoch != before.epoch + 1:",
        new="if after.epoch <= before.epoch:",
        tests=(f"{PURE}::test_a_missing_epoch_is_named", LEFT_OUT),
    ),
    Mutation(
        name="an epoch may read again what was read before",
        file=AUDIT,
        old="        if each.start != start:\n",
        new="        if each.start > start:\n",
        tests=("tests/core/test_audit_tables.py",),
    ),
    Mutation(
        name="a phase that goes back is no violation",
        file=AUDIT,
        old="        *_phase_violations(before.position, after.position),\n",
        new="",
        tests=(f"{PURE}::test_a_partition_of_a_view_that_goes_back_a_phase_is_named",),
    ),
    Mutation(
        name="only the newest epoch is checked for gaps",
        file=PROOFS,
        old="violations = contiguous(records, _entries(case, records[0].epoch))",
        new="violations = contiguous(records[-1:], _entries(case, records[0].epoch))",
        tests=(LEFT_OUT,),
    ),
    # ledger_matches_table
    Mutation(
        name="a plan that was altered is no violation",
        file=AUDIT,
        old="if entry.found_hash != entry.plan_hash:",
        new="if not entry.found_hash:",
        tests=(f"{PURE}::test_a_plan_that_was_altered_is_named",),
    ),
    Mutation(
        name="a plan that is missing in the ledger is not noticed",
        file=AUDIT,
        old="if record.epoch > 0 and (planned or record.epoch > unplanned):",
        new="if record.epoch > 0 and planned:",
        tests=(
            f"{PURE}::test_a_plan_that_is_missing_in_the_ledger_is_named",
            "tests/e2e/damage/test_checks_catch.py::test_a_plan_that_was_deleted_or_altered_is_named",
        ),
    ),
    Mutation(
        name="a plan is believed what it was entered as",
        file="backfill_assets/adapters/state/ledger.py",
        old="""else Plan.hash_of(plan)""",
        new="""else stored["plan_hash"]""",
        tests=("tests/e2e/damage/test_checks_catch_tables.py::test_a_plan_of_the_ledger_that_was_altered",),
    ),
    # unique_key
    Mutation(
        name="a duplicate key is unique",
        file="backfill_assets/adapters/compute/changes.py",
        old='counted.where("__rows > 1")',
        new='counted.where("__rows > 2")',
        tests=(
            "tests/e2e/tables/test_snapshot_refusals.py::"
            "test_a_key_that_is_not_unique_is_refused_at_the_snapshot_and_when_it_comes_later",
            DAMAGED,
        ),
    ),
    Mutation(
        name="keys of a view over tables are checked in its first version",
        file="backfill_assets/adapters/proof/tables.py",
        old="duplicate_keys(rows_at(spark, view, version), key, branch",
        new="duplicate_keys(rows_at(spark, view, min(version, 0)), key, branch",
        tests=(COMPACTED,),
    ),
    # rows_conserved
    Mutation(
        name="rows that are missing are accounted for",
        file=AUDIT,
        old="if records and records[-1].rows_total != rows_in_table:",
        new="if records and records[-1].rows_total < rows_in_table:",
        tests=(f"{PURE}::test_a_table_with_other_rows_than_were_written_is_named", f"{DAMAGED}[orders-missing]"),
    ),
    Mutation(
        name="a total that does not add up is no violation",
        file=AUDIT,
        old="if after.rows_total != before.rows_total + net:",
        new="if after.rows_total < before.rows_total + net:",
        tests=(f"{PURE}::test_a_total_that_does_not_add_up_is_named",),
    ),
    Mutation(
        name="an epoch may read more than its offsets",
        file=AUDIT,
        old="if after.rows_read > offered or (",
        new="if (",
        tests=(f"{PURE}::test_an_epoch_that_wrote_more_than_it_read_or_read_more_than_its_offsets_is_named",),
    ),
    Mutation(
        name="the log is believed how many rows the files hold",
        file=PROOFS,
        old="held = footer_rows(location) if case.last is None else stated_rows(",
        new="held = stated_rows(",
        tests=(
            "tests/e2e/damage/test_reads_again.py::"
            "test_a_check_names_rows_that_are_missing_and_files_that_cannot_be_read",
        ),
    ),
    Mutation(
        name="files of which the log does not say how many rows they have count for none",
        file=VERIFY,
        old="held_rows(table, version.files) or 0",
        new="sum(each.stated_rows or 0 for each in version.files)",
        tests=(f"{DAMAGE}::test_rows_of_a_file_are_counted_of_which_the_log_does_not_say_how_many_it_has",),
    ),
    # exactly_once
    Mutation(
        name="nothing is left to prove",
        file=PROOF_ROWS,
        old="before: Ranges = consumed(case.last.record.position) if case.last and not everything else {}",
        new="before: Ranges = consumed(case.record.position)",
        tests=(DAMAGED,),
    ),
    Mutation(
        name="the proof since the last one begins a row late",
        file=PROOF_ROWS,
        old="OffsetRange(start=before[key].end if key in before else each.start, end=each.end)",
        new="OffsetRange(start=before[key].end + 1 if key in before else each.start, end=each.end)",
        tests=(NEW_DAMAGE,),
    ),
    Mutation(
        name="unexpected rows are not a violation",
        file=VERIFY,
        old="""F.when((F.col(EXPECTED_ROWS) == 0) & F.expr(forgiven), 0)""",
        new="""F.when(F.col("__expected") == 0, 0)""",
        tests=(DAMAGED,),
    ),
    Mutation(
        name="rows that are missing are no violation",
        file=VERIFY,
        old="F.sum(F.greatest(balance, F.lit(0))).alias(",
        new="F.sum(F.least(balance, F.lit(0))).alias(",
        tests=(DAMAGED, COMPACTED),
    ),
    Mutation(
        name="what nobody holds any more counts as held by bronze",
        file=AUDIT,
        old="known = min(max(each.start, begin), seam)",
        new="known = each.start",
        tests=(
            f"{PURE}::test_each_offset_is_proved_by_kafka_else_by_bronze_else_named_as_lost",
            "tests/e2e/kafka/test_kafka_realities.py::"
            "test_what_retention_took_is_read_from_bronze_or_named_but_never_skipped",
        ),
    ),
    Mutation(
        name="records are proved by a topic that was recreated",
        file=PROOF_ROWS,
        old="return found if found.topic_id == position.topic_id else replace(found, partitions={})",
        new="return found if found.topic == position.topic else replace(found, partitions={})",
        tests=(
            "tests/e2e/kafka/test_kafka_realities.py::test_a_topic_that_was_recreated_is_never_taken_for_the_old_one",
        ),
    ),
    # All checks
    Mutation(
        name="an external write fails no check",
        file=PROOFS,
        old="if look.external is not None:",
        new="if look.external is not None and look.external < look.at:",
        tests=("tests/e2e/damage/test_checks_catch.py::test_an_external_append_fails_every_check_with_its_version",),
    ),
    Mutation(
        name="a check that failed counts as passed the next time",
        file=PROOFS,
        old="    if outcome.passed:\n",
        new="    if check in CHECKS:\n",
        tests=(NEW_DAMAGE,),
    ),
    Mutation(
        name="to verify proves only what is new",
        file="backfill_assets/defs/checks.py",
        old="""return run.tags.get(CHEAP_TAG) != "since_last_pass" and not run.asset_selection""",
        new="""return run.tags.get(CHEAP_TAG) == "all" and not run.asset_selection""",
        tests=(RUN_AND_CHECK,),
    ),
)
