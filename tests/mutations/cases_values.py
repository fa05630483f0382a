"""Faults in handling single values: offsets of many partitions, the text of a record, float keys."""

from tests.mutations.mutation import Mutation

__all__ = ["VALUES"]

OFFSETS = "backfill_assets/adapters/sql/offset_ranges.py"
FILES = "backfill_assets/core/progress/bronze_files.py"
RECORDS = "backfill_assets/adapters/sql/kafka_records.py"
SAME_KEY = "backfill_assets/adapters/delta/same_key.py"
IN_PROCESS = (
    "tests/e2e/kafka/test_many_partitions.py::"
    "test_ranges_of_ten_thousand_partitions_are_read_and_left_out_exactly_in_process"
)
OF_FILES = "tests/core/progress/test_bronze_files.py"
WIDE = "tests/e2e/tables/test_wide_keys.py"
BAD = "tests/e2e/kafka/test_records.py::test_a_bad_record_has_its_reason_and_raw_value_and_nothing_else"
AS_PYTHON = "tests/e2e/kafka/test_records_as_json.py"
FLOATS = "tests/e2e/tables/test_float_keys.py"
OWN_FORM = f"{FLOATS}::test_hidden_float_keys_have_one_form_too"

VALUES: tuple[Mutation, ...] = (
    # Offsets of many partitions
    Mutation(
        name="what no range is wanted of is read from its first partition on",
        file=OFFSETS,
        old="for number in range(max(wanted) + 1)]",
        new="for number in range(min(wanted), max(wanted) + 1)]",
        tests=(IN_PROCESS,),
    ),
    Mutation(
        name="what was proved of one part counts for all",
        file="backfill_assets/adapters/proof/rows.py",
        old="""here = "TRUE" if proof.branch_column is None else""",
        new="""here = "TRUE" if branch >= 0 else""",
        tests=("tests/e2e/kafka/test_many_partitions.py::test_ranges_of_one_part_leave_out_no_row_of_another",),
    ),
    Mutation(
        name="a file that ends where a range begins is not opened",
        file=FILES,
        old="bisect_right(starts, high)",
        new="bisect_right(starts, high - 1)",
        tests=(OF_FILES,),
    ),
    Mutation(
        name="a file is opened for offsets of partitions that it does not hold",
        file=FILES,
        old="any(end > low and first <= partition <= last for",
        new="any(end > low and first <= partition for",
        tests=(OF_FILES,),
    ),
    Mutation(
        name="key ranges are one deep expression",
        file="backfill_assets/adapters/compute/key_ranges.py",
        old="conditions = [reduce(or_, conditions[at : at + 2]) for at in range(0, len(conditions), 2)]",
        new="conditions = [reduce(or_, conditions)]",
        tests=(f"{WIDE}::test_rows_of_many_key_ranges_are_read_exactly_over_spark_connect",),
    ),
    # The text of a record
    Mutation(
        name="a record may go on in the frame that it is read in",
        file=RECORDS,
        old="AND {_stands_alone()} AND NOT {_HALF_PAIR}",
        new="AND NOT {_HALF_PAIR}",
        tests=(AS_PYTHON,),
    ),
    Mutation(
        name="text in single quotes is JSON",
        file=RECORDS,
        old="""    "allowSingleQuotes": "false",\n""",
        new="",
        tests=(AS_PYTHON, BAD),
    ),
    Mutation(
        name="half of a surrogate pair is a question mark",
        file=RECORDS,
        old="AND NOT {_HALF_PAIR} AND NOT",
        new="AND NOT",
        tests=(AS_PYTHON, BAD),
    ),
    Mutation(
        name="an escaped time of day is completed with today's date",
        file=RECORDS,
        old=r"(T[0-9]|T?[0-9]{{0,2}}\\|[0-9]{{1,2}}:)",
        new=r"(T[0-9]|[0-9]{{1,2}}:)",
        tests=(BAD,),
    ),
    # Float keys
    Mutation(
        name="NaN of other bits is another key to delta-rs",
        file=SAME_KEY,
        old="WHEN isnan({value}) THEN {nan} ",
        new="",
        tests=("tests/adapters/delta/test_same_key.py",),
    ),
    Mutation(
        name="keys keep the sign of zero",
        file="backfill_assets/adapters/sql/floats.py",
        old=" WHEN {value} = {zero} THEN {zero}",
        new="",
        tests=(OWN_FORM,),
    ),
    Mutation(
        name="floats inside of keys are left as they come",
        file="backfill_assets/adapters/sql/floats.py",
        old="return _of_struct(value, kind)",
        new="return value",
        tests=(f"{FLOATS}::test_floats_inside_of_a_key_have_one_form_too",),
    ),
    Mutation(
        name="sums that were never made are compared by ten digits",
        file="backfill_assets/adapters/proof/tables.py",
        old="rounded = not isinstance(query, RowwiseQuery)",
        new="rounded = True",
        tests=(
            "tests/e2e/damage/test_rows_compare.py::test_the_last_bit_of_a_float_counts_where_nothing_was_added_up",
        ),
    ),
    Mutation(
        name="a row without partition or offset was proved before",
        file="backfill_assets/adapters/proof/rows.py",
        old="""return f"coalesce({' OR '.join(inside) or 'FALSE'}, FALSE)\"""",
        new="""return f"({' OR '.join(inside) or 'FALSE'})\"""",
        tests=("tests/e2e/kafka/test_many_partitions.py::test_a_row_without_partition_or_offset_is_in_no_range",),
    ),
    Mutation(
        name="records that Kafka loses while they are read are left out",
        file="backfill_assets/adapters/compute/source_compute.py",
        old=""".option("failOnDataLoss", "true")""",
        new=""".option("failOnDataLoss", "false")""",
        tests=(
            "tests/e2e/kafka/test_kafka_realities.py::"
            "test_records_that_are_lost_between_plan_and_reading_fail_the_epoch",
        ),
    ),
    Mutation(
        name="rows with the leading value of a range's start are left out",
        file="backfill_assets/adapters/compute/key_ranges.py",
        old="(column > start if len(each.after) == 1 else column >= start)",
        new="(column > start)",
        tests=(
            "tests/e2e/tables/test_arrangement.py::test_rows_on_both_sides_of_an_end_within_a_leading_value_are_read",
        ),
    ),
    Mutation(
        name="rows with a null key are in no range",
        file="backfill_assets/adapters/compute/key_ranges.py",
        old="(column.isNull() | (column <= _value(leading, each.upto[0])))",
        new="(column <= _value(leading, each.upto[0]))",
        tests=(
            "tests/e2e/tables/test_arrangement.py::test_rows_on_both_sides_of_an_end_within_a_leading_value_are_read",
        ),
    ),
)
