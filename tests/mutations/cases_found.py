"""Faults in how few changes are followed by rows that are found in this process."""

from typing import Final

from tests.mutations.mutation import Mutation

__all__ = ["FOUND"]

COMPARED: Final = "backfill_assets/adapters/compute/parts_that_differ.py"
DIFFER: Final = "tests/e2e/tables/test_parts_that_differ.py"
BY_DAYS: Final = "tests/e2e/tables/test_computed_keys.py::test_few_changes_are_followed_by_the_days_that_they_touch"

ROWS: Final = "backfill_assets/adapters/delta/found_rows.py"
READER: Final = "backfill_assets/adapters/delta/arrow_reader.py"
CHOSEN: Final = "backfill_assets/adapters/delta/files_to_search.py"
PARTS: Final = "backfill_assets/adapters/compute/selectable_rows.py"
CHANGES: Final = "backfill_assets/adapters/compute/relational_changes.py"
STEPS: Final = "backfill_assets/query/steps.py"
USED: Final = "backfill_assets/query/used_columns.py"

REAL: Final = "tests/adapters/delta/test_found_rows.py"
NETTED: Final = "tests/adapters/compute/test_selectable_rows.py"
EPOCHS: Final = "tests/e2e/tables/test_found_rows.py"
BESIDE: Final = "tests/e2e/tables/test_rows_beside_plans.py"
NAMES: Final = "tests/query/test_used_columns.py"

FOUND: Final = (
    Mutation(
        name="a text with blanks behind it is beyond the bounds of the same without",
        file=ROWS,
        old='fewer(apart((each, f"{each}!")',
        new="fewer(apart((each, each)",
        tests=(REAL,),
    ),
    Mutation(
        name="files without nulls alone are searched for null",
        file=ROWS,
        old="        if self.values.null_count:\n            return None\n        plain = plain_values(self.values)\n",
        new="        plain = plain_values(self.values.drop_null())\n",
        tests=(REAL,),
    ),
    Mutation(
        name="null is no value that is found",
        file=ROWS,
        old="value_set=self.values.cast(values.type), skip_nulls=False)",
        new="value_set=self.values.cast(values.type), skip_nulls=True)",
        tests=(REAL,),
    ),
    Mutation(
        name="null is not found among texts",
        file=ROWS,
        old="found.fill_null(bool(self.values.null_count))",
        new="found.fill_null(False)",
        tests=(REAL,),
    ),
    Mutation(
        name="a column that a file does not have is not searched for null",
        file=ROWS,
        old="return _selected(opened, number, names) if sought.values.null_count else iter(())",
        new="return iter(())",
        tests=(REAL,),
    ),
    Mutation(
        name="texts with blanks behind them are other values",
        file=ROWS,
        old='pc.utf8_rtrim(values.cast(pa.large_string()), characters=" ")',
        new="values.cast(pa.large_string())",
        tests=(REAL,),
    ),
    Mutation(
        name="the log is not asked how many rows a searched file has",
        file=ROWS,
        old="if file.rows is not None and found != file.rows:",
        new="if file.rows is not None and found > file.rows:",
        tests=(REAL,),
    ),
    Mutation(
        name="a file in the place of another one is searched",
        file=READER,
        old="if self._sized and source.size()",
        new="if not self._sized and source.size()",
        tests=(
            "tests/adapters/delta/test_found_rows.py",
            "tests/e2e/tables/test_found_rows.py::test_a_file_that_was_written_over_is_no_answer",
        ),
    ),
    Mutation(
        name="days of the Julian calendar are read as they are stored",
        file=ROWS,
        old="if is_old or not _is_like(opened.schema_arrow, schema):",
        new="if not _is_like(opened.schema_arrow, schema):",
        tests=(REAL,),
    ),
    Mutation(
        name="rows of one search are taken for those of another",
        file=ROWS,
        old="known = (file.path, column, sought, tuple(schema.names))",
        new="known = (file.path, column, tuple(schema.names))",
        tests=(
            "tests/adapters/delta/test_found_rows.py",
            "tests/e2e/tables/test_found_rows.py::test_few_changes_are_followed_without_a_scan_of_the_tables",
        ),
    ),
    Mutation(
        name="rows that a deletion vector hides are found",
        file=CHOSEN,
        old="if each.deleted or is_elsewhere(each.path):",
        new="if is_elsewhere(each.path):",
        tests=("tests/e2e/tables/test_found_rows.py::test_tables_that_only_spark_reads_as_they_are_are_scanned",),
    ),
    Mutation(
        name="partitioned files are searched for columns that they do not have",
        file=CHOSEN,
        old="    if not version.is_plain:",
        new="    if not version.files:",
        tests=(REAL,),
    ),
    Mutation(
        name="rows of other parts of a union are found",
        file=STEPS,
        old="if linearity.parts[each] == linearity.parts[at])",
        new="if linearity.parts[each] >= linearity.parts[at])",
        tests=("tests/query/test_steps.py",),
    ),
    Mutation(
        name="of rows that come twice and go once none is left",
        file=PARTS,
        old="np.repeat(first, np.maximum(each, 0))",
        new="first[each > 1]",
        tests=(NETTED,),
    ),
    Mutation(
        name="Spark gets the rows before an empty batch alone",
        file=PARTS,
        old="_given(spark, rows.combine_chunks())",
        new="_given(spark, rows)",
        tests=(f"{EPOCHS}::test_rows_that_are_here_come_to_spark_in_whatever_parts_they_are",),
    ),
    Mutation(
        name="rows that go join with nothing",
        file=CHANGES,
        old="{number: [local.come, local.go]}",
        new="{number: [local.come]}",
        tests=("tests/e2e/tables/test_found_rows.py::test_few_changes_are_followed_without_a_scan_of_the_tables",),
    ),
    Mutation(
        name="places are restricted by rows of one in which the query is not linear",
        file=STEPS,
        old="for key in partners.classes if at in linearity.linear else ():",
        new="for key in partners.classes:",
        tests=("tests/query/test_steps.py",),
    ),
    Mutation(
        name="rows of a place are restricted by a key of others",
        file=STEPS,
        old="            if at in held and others:",
        new="            if others:",
        tests=("tests/query/test_steps.py",),
    ),
    Mutation(
        name="a star takes no columns",
        file=USED,
        old="star.token_type == TokenType.STAR and before.token_type not in _VALUES",
        new="star.token_type == TokenType.PARAMETER and before.token_type not in _VALUES",
        tests=(NAMES,),
    ),
    Mutation(
        name="every star is that of a count",
        file=USED,
        old='return texts == ["count", "(", "*", ")"]',
        new='return "*" in texts',
        tests=(NAMES,),
    ),
    Mutation(
        name="NATURAL and PIVOT take no columns",
        file=USED,
        old="token.token_type in _OF_ALL",
        new="token.token_type in frozenset()",
        tests=(NAMES,),
    ),
    Mutation(
        name="a column with another case is not used",
        file=USED,
        old="each.lower() in words",
        new="each in words",
        tests=(NAMES,),
    ),
    Mutation(
        name="texts of a fixed length are read without their blanks",
        file=CHOSEN,
        old='if field["name"].lower() in wanted and _FIXED.search(json.dumps(field)):',
        new='if field["name"].lower() not in wanted and _FIXED.search(json.dumps(field)):',
        tests=(f"{EPOCHS}::test_texts_of_a_fixed_length_have_the_blanks_that_spark_adds",),
    ),
    Mutation(
        name="fields of structs with names of another case are null",
        file=ROWS,
        old="return _is_like(there, wanted)",
        new="return True",
        tests=(REAL,),
    ),
    Mutation(
        name="a block of texts ends where its last one does",
        file=ROWS,
        old='return fewer(apart((each, f"{each}!") for each in values), MOST_VALUES)',
        new='return apart((low, f"{high}!") for low, high in blocks(values, MOST_VALUES))',
        tests=("tests/adapters/delta/test_found_rows.py::test_spans_hold_each_text_with_any_blanks_behind_it",),
    ),
    Mutation(
        name="rows are selected of texts that a writer held as views",
        file=ROWS,
        old="            rows = _selectable(pa.Table.from_batches([batch]))",
        new="            rows = pa.Table.from_batches([batch])",
        tests=(
            "tests/adapters/delta/test_found_rows.py::test_texts_that_a_writer_held_as_views_are_found_like_others",
        ),
    ),
    Mutation(
        name="nanoseconds are cut off, which Spark refuses",
        file=ROWS,
        old='(pa.types.is_timestamp(there) and there.unit == "ns")',
        new='(pa.types.is_timestamp(there) and there.unit == "s")',
        tests=(REAL,),
    ),
    Mutation(
        name="of many changed rows those of a key are not brought together",
        file=PARTS,
        old="return max(len(self.come), len(self.go)) <= _ROWS_OF_TASK",
        new="return min(len(self.come), len(self.go)) <= _ROWS_OF_TASK",
        tests=(NETTED,),
    ),
    Mutation(
        name="many rows are part of a plan",
        file=PARTS,
        old="if len(rows) <= _ROWS_OF_PLAN:",
        new="if len(rows) >= _ROWS_OF_PLAN:",
        tests=(BESIDE,),
    ),
    Mutation(
        name="many rows are broadcast though there is no room",
        file=PARTS,
        old='return frame.hint("broadcast") if fit else frame',
        new='return frame.hint("broadcast")',
        tests=(BESIDE,),
    ),
    Mutation(
        name="what is kept is forgotten where a text names it",
        file="backfill_assets/adapters/sql/sql_over.py",
        old='each.where("TRUE")',
        new="each",
        tests=(BESIDE,),
    ),
    Mutation(
        name="parts of a view that differ are told by the number of their rows",
        file=COMPARED,
        old=" for at, each in enumerate(_COUNTED)]",
        new=" for at, each in enumerate(_COUNTED[:1])]",
        tests=(DIFFER,),
    ),
    Mutation(
        name="rows are divided into other parts than those that are told to differ",
        file=COMPARED,
        old="pmod(xxhash64({_values(self.columns)})",
        new="pmod(xxhash64({_values(self.columns[1:])})",
        tests=(DIFFER,),
    ),
    Mutation(
        name="a value that moves to where a null was is no difference",
        file=COMPARED,
        old="IF({quoted(name)} IS NULL, '1', '0')",
        new="IF({quoted(name)} IS NULL, '0', '0')",
        tests=(DIFFER,),
    ),
    Mutation(
        name="a view of which most rows differ is compared row by row",
        file=COMPARED,
        old="few = 2 * count <= parts",
        new="few = count <= parts",
        tests=(DIFFER,),
    ),
    Mutation(
        name="only columns that a query does not name are read",
        file="backfill_assets/adapters/compute/table_rows.py",
        old="if name.lower() in self.uses]",
        new="if name.lower() not in self.uses]",
        tests=(BY_DAYS,),
    ),
)
