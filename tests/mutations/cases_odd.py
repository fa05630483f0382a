"""Faults with values that Python does not have, and with addresses that others take for something else."""

from tests.mutations.mutation import Mutation

__all__ = ["ODD"]

VALUES = "tests/e2e/damage/test_odd_values.py::test_what_is_wrong_with_odd_values_is_told_over_spark_connect"
NAMES = "tests/e2e/damage/test_odd_values.py::test_rows_are_named_as_spark_writes_them_where_python_has_no_such_value"
PATHS = "tests/e2e/tables/test_odd_paths.py::test_just_the_named_files_are_read_and_each_once"
PLACES = "tests/adapters/storage/test_upstream_location.py"
NAMED = "backfill_assets/adapters/sql/named_rows.py"

ODD: tuple[Mutation, ...] = (
    Mutation(
        name="rows with a date after the year 9999 cannot be named",
        file=NAMED,
        old="    except (ValueError, OverflowError):",
        new="    except UnicodeDecodeError:",
        tests=(NAMES,),
    ),
    Mutation(
        name="a text that is not UTF-8 is named as nobody can read it",
        file=NAMED,
        old="""    if kind == "string":
        return f"IF(""",
        new="""    if kind == "none":
        return f"IF(""",
        tests=(VALUES,),
    ),
    Mutation(
        name="a keyed scan takes bounds that are no text",
        file="backfill_assets/adapters/compute/key_ranges.py",
        old="""IS NOT FALSE" for each in key if each.type == "STRING"]""",
        new="""IS NOT FALSE" for each in key if each.type == "NONE"]""",
        tests=(VALUES,),
    ),
    Mutation(
        name="an address is taken for a pattern",
        file="backfill_assets/adapters/compute/parquet_files.py",
        old="""_OF_PATTERNS.sub(r"\\\\\\g<0>", path)""",
        new="path",
        tests=(PATHS,),
    ),
    Mutation(
        name="a warehouse may be where delta-rs fails",
        file="backfill_assets/adapters/storage/warehouse.py",
        old="        if odd := _ODD.search(uri):",
        new="        if odd := _ODD.match(uri):",
        tests=(PLACES,),
    ),
    Mutation(
        name="a table may be where delta-rs looks elsewhere",
        file="backfill_assets/adapters/storage/upstream_location.py",
        old="    if odd := _DECODED.search(place.uri):",
        new="    if odd := _DECODED.match(place.uri):",
        tests=(PLACES,),
    ),
    Mutation(
        name="a column of an upstream is taken for that of the change feed",
        file="backfill_assets/adapters/delta/upstream.py",
        old="each.name.lower() == CHANGE.name",
        new="each.name == CHANGE.name",
        tests=(
            "tests/e2e/tables/test_snapshot_refusals.py::"
            "test_a_table_that_cannot_be_followed_is_refused_before_anything_is_written",
        ),
    ),
)
