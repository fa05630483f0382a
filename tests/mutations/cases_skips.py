"""Faults around rows that cannot be computed: which are named, and which are left out, and from when on."""

from tests.mutations.mutation import Mutation

__all__ = ["SKIPS"]

LIST = "backfill_assets/core/epoch/skips.py"
KEYS = "backfill_assets/core/strategies/table_skips.py"
SOURCE = "backfill_assets/core/strategies/source.py"
TABLES = "backfill_assets/core/strategies/table_views.py"
AUDIT = "backfill_assets/core/audit.py"
CULPRITS = "backfill_assets/core/epoch/culprits.py"
COMPUTE = "backfill_assets/adapters/compute/source_compute.py"
PURE = "tests/core/epoch/test_skips.py"
MODEL = "tests/core/strategies/test_table_skips.py::test_the_view_is_its_query_over_all_rows_but_those_left_out"
SEARCH = "tests/core/epoch/test_culprits.py"
RECORDS = "tests/e2e/kafka/test_poison.py"
ROWS = "tests/e2e/tables/test_poison_rows.py"
CAUGHT = "tests/e2e/damage/test_skips_catch.py"

SKIPS: tuple[Mutation, ...] = (
    Mutation(
        name="changes are followed though a row is taken back with them",
        file=KEYS,
        old="    positions = [each for each in (plan.before, plan.after) if isinstance(each, SnapshotPosition)]",
        new="    positions = [each for each in (plan.after,) if isinstance(each, SnapshotPosition)]",
        tests=(f"{ROWS}::test_a_row_that_is_taken_back_comes_though_others_changed_meanwhile",),
    ),
    # Records
    Mutation(
        name="a record that was read can still be left out",
        file=LIST,
        old="ahead = {offset for offset in wanted.get(partition, ()) if offset >= end}",
        new="ahead = set(wanted.get(partition, ()))",
        tests=(
            f"{PURE}::test_what_was_read_keeps_its_list_and_all_else_follows_what_is_wanted",
            "tests/core/test_simulation.py",
        ),
    ),
    Mutation(
        name="a record that was left out is forgotten when nobody wants it left out any more",
        file=LIST,
        old="past = {offset for offset in held.get(partition, ()) if offset < end}",
        new="past = {offset for offset in held.get(partition, ()) if offset < end and offset in wanted.get(partition, ())}",
        tests=(
            f"{PURE}::test_what_was_left_out_stays_so_until_a_reset_takes_the_list_as_it_is_then",
            f"{PURE}::test_what_was_read_keeps_its_list_and_all_else_follows_what_is_wanted",
        ),
    ),
    Mutation(
        name="a plan that cannot be computed is redone whatever is to be left out",
        file=SOURCE,
        old="        if left_out_of(self._with_skips(plan.before)) != left_out_of(plan.after):\n            return False\n",
        new="",
        tests=(f"{PURE}::test_a_poison_record_stops_a_view_until_it_is_left_out_and_all_others_are_there",),
    ),
    Mutation(
        name="the list is taken and nothing is left out",
        file=COMPUTE,
        old="if name in left_out else every",
        new="if name not in sources else every",
        tests=(f"{RECORDS}::test_poison_records_are_named_left_out_and_shown_and_all_others_are_proved",),
    ),
    Mutation(
        name="a proof believes what is wanted and not what the commit says",
        file="backfill_assets/app/proof_rows.py",
        old="        left_out=left_out_of(case.record.position),",
        new="        left_out={},",
        tests=(f"{CAUGHT}::test_a_sound_view_passes_every_check_and_each_says_what_is_left_out",),
    ),
    Mutation(
        name="an epoch may change the list of what was read",
        file=AUDIT,
        old="        *_skip_violations(before.position, after.position),\n",
        new="",
        tests=("tests/core/test_audit.py::test_what_was_read_and_is_left_out_only_afterwards_or_no_more_is_named",),
    ),
    # Rows of tables
    Mutation(
        name="a row that was in the view stays when its key is left out",
        file=KEYS,
        old="        out = tuple(key for key in now.skipped if key not in was.skipped) if was.rows else ()",
        new="        out = ()",
        tests=(
            f"{PURE}::test_while_history_is_read_a_key_may_have_been_read_already",
            MODEL,
            f"{ROWS}::test_a_row_that_was_sound_before_goes_and_one_that_was_corrected_since_comes_back_at_once",
        ),
    ),
    Mutation(
        name="a row that is taken back comes as it was before the epoch",
        file="backfill_assets/adapters/compute/table_inputs.py",
        old="""(plan.after, read.back, "insert")""",
        new="""(plan.before, read.back, "insert")""",
        tests=(
            f"{ROWS}::test_a_row_that_was_sound_before_goes_and_one_that_was_corrected_since_comes_back_at_once",
            f"{ROWS}::test_a_row_that_is_taken_back_comes_though_others_changed_meanwhile",
        ),
    ),
    Mutation(
        name="changes of a key that is taken back count in addition to its row",
        file=KEYS,
        old="[plan.after] if plan.replaces else [plan.before, plan.after]",
        new="[plan.after]",
        tests=(
            f"{PURE}::test_everything_else_is_read_without_the_keys_of_either_list",
            MODEL,
            f"{ROWS}::test_a_row_that_was_sound_before_goes_and_one_that_was_corrected_since_comes_back_at_once",
        ),
    ),
    Mutation(
        name="a live view does not see that its list changed",
        file=TABLES,
        old="        if skip_reads(position, leaving_out(position, self.skips())):\n            return True\n",
        new="",
        tests=(
            f"{PURE}::test_keys_that_go_are_read_where_the_view_stands_and_those_that_come_back_where_the_epoch_ends",
            MODEL,
        ),
    ),
    Mutation(
        name="an epoch may change which keys are left out without reading their rows",
        file=AUDIT,
        old="        if due != skips:\n",
        new="        if skips and due != skips:\n",
        tests=(
            "tests/core/test_audit_tables.py::test_a_list_of_keys_that_changed_without_their_rows_being_read_is_named",
        ),
    ),
    Mutation(
        name="proofs expect the rows of keys that are left out",
        file="backfill_assets/adapters/compute/recorded_rows.py",
        old="    return rows if skipped or not left_out else",
        new="    return rows if True else",
        tests=(f"{CAUGHT}::test_a_sound_view_passes_every_check_and_each_says_what_is_left_out",),
    ),
    # The search
    Mutation(
        name="only the first half of what fails is searched",
        file=CULPRITS,
        old="suspected += [(middle, end), (start, middle)]",
        new="suspected += [(start, middle)]",
        tests=(f"{SEARCH}::test_all_bad_rows_are_found_and_no_other",),
    ),
    Mutation(
        name="the number of a record is counted from the beginning of each partition",
        file=CULPRITS,
        old="            number += len(each)\n",
        new="",
        tests=(f"{SEARCH}::test_offsets_are_numbered_over_reads_and_partitions",),
    ),
    Mutation(
        name="any error of Spark is taken for one of values, and running it again is not advised",
        file="backfill_assets/adapters/compute/spark_errors.py",
        old="    return _OF_VALUES.fullmatch(state) is not None",
        new="    return state is not None",
        tests=("tests/adapters/compute/test_poison_errors.py",),
    ),
    Mutation(
        name="rows that the view does not leave out are taken back",
        file="backfill_assets/app/skipping.py",
        old="        _check_wanted(name, skips, wanted)\n",
        new="",
        tests=("tests/e2e/kafka/test_poison.py::test_live_rows_can_be_left_out_too_but_not_after_they_were_read",),
    ),
    Mutation(
        name="a source leaves records out",
        file="backfill_assets/app/skipping.py",
        old="    if isinstance(declared, KafkaSource):",
        new="    if False:",
        tests=("tests/e2e/kafka/test_poison.py::test_live_rows_can_be_left_out_too_but_not_after_they_were_read",),
    ),
    Mutation(
        name="a record that was read is left out too late",
        file="backfill_assets/app/skipping.py",
        old="if is_consumed(position, skip) and skip.words not in out:",
        new="if False:",
        tests=("tests/e2e/kafka/test_poison.py::test_live_rows_can_be_left_out_too_but_not_after_they_were_read",),
    ),
    Mutation(
        name="a partition that a source does not have is named",
        file="backfill_assets/app/skipping.py",
        old="        if skip.partition not in known:",
        new="        if False:",
        tests=("tests/e2e/kafka/test_poison.py::test_live_rows_can_be_left_out_too_but_not_after_they_were_read",),
    ),
    Mutation(
        name="rows beyond the limit are left out, one call after another",
        file="backfill_assets/app/skipping.py",
        old="    _check_few(name, wanted.union(skips))\n",
        new="    _check_few(name, skips)\n",
        tests=(f"{ROWS}::test_what_cannot_be_named_or_is_named_wrongly_is_refused",),
    ),
    Mutation(
        name="a sound row is named because its group alone could not be computed of it",
        file="backfill_assets/adapters/compute/poison_search.py",
        old="    if isinstance(query, AggregateQuery):",
        new="    if False:",
        tests=(f"{ROWS}::test_an_aggregate_leaves_keys_out_that_its_columns_do_not_hold",),
    ),
    Mutation(
        name="all poison rows are said to be named though some are not",
        file="backfill_assets/adapters/compute/poison_search.py",
        old="complete=complete and len(few) == len(found)",
        new="complete=complete",
        tests=(f"{ROWS}::test_more_poison_rows_than_are_named_are_told_though_their_keys_share_numbers",),
    ),
)
