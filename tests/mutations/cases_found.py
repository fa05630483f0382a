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
NAMES: Final = "tests/query/test_used_columns.py"

SNAPSHOT_KEY: Final = (
    "tests/e2e/tables/test_snapshot_refusals.py::"
    "test_a_key_that_is_not_unique_is_refused_at_the_snapshot_and_when_it_comes_later"
)
SMALL_TABLES: Final = "tests/adapters/compute/test_small_tables.py"
UNIQUE: Final = "backfill_assets/adapters/delta/distinct_keys.py"
DISTINCT: Final = "tests/adapters/delta/test_distinct_keys.py"
GROUPS: Final = "backfill_assets/adapters/sql/apply_aggregate.py"
TOUCHED: Final = "tests/e2e/tables/test_aggregate_maintenance.py::test_groups_that_nothing_touches_do_not_come"

MAINTAINED: Final = "backfill_assets/adapters/compute/maintained_groups.py"
TASKS: Final = "tests/adapters/compute/test_tasks.py"
READ_FILES: Final = "tests/adapters/compute/test_files_read.py"

FOUND: Final = (
    Mutation(
        name="a key is unique if one of its columns is",
        file=UNIQUE,
        old="forms, names=names).group_by(names)",
        new="forms, names=names).group_by(names[:1])",
        tests=(DISTINCT,),
    ),
    Mutation(
        name="keys that are null are told apart",
        file=UNIQUE,
        old="return numbers.null_count <= 1 and not",
        new="return not",
        tests=(DISTINCT,),
    ),
    Mutation(
        name="only the first of sorted numbers are compared",
        file=UNIQUE,
        old="(values[1:] == values[:-1]).any()",
        new="(values[1:2] == values[:1]).any()",
        tests=(DISTINCT,),
    ),
    Mutation(
        name="a key is unique whatever rows there are",
        file=UNIQUE,
        old="for name, kind in kinds.items()}) == len(rows)",
        new="for name, kind in kinds.items()}) <= len(rows)",
        tests=(DISTINCT,),
    ),
    Mutation(
        name="equal floats of several forms are taken for different keys",
        file=UNIQUE,
        old="if not all(kinds.values()):",
        new="if not kinds:",
        tests=(DISTINCT,),
    ),
    Mutation(
        name="a damaged file is no reason to let Spark compare keys",
        file=UNIQUE,
        old="(UnfitError, ReadMismatchError, pa.ArrowException, OSError)",
        new="(UnfitError, pa.ArrowException, OSError)",
        tests=(DISTINCT,),
    ),
    Mutation(
        name="a store that fails while keys are read is told in words of its own",
        file=UNIQUE,
        old="(UnfitError, ReadMismatchError, pa.ArrowException, OSError)",
        new="(UnfitError, ReadMismatchError, pa.ArrowException)",
        tests=(DISTINCT,),
    ),
    Mutation(
        name="more rows than fit are compared in this process",
        file=UNIQUE,
        old="most_rows=MOST_NUMBERS if is_number else MOST_ROWS)",
        new="most_rows=MOST_NUMBERS)",
        tests=(DISTINCT,),
    ),
    Mutation(
        name="keys of a table are not compared",
        file="backfill_assets/adapters/compute/key_checks.py",
        old="return bool(key) and all(is_surely_unique(",
        new="return bool(key) or all(is_surely_unique(",
        tests=(SNAPSHOT_KEY,),
    ),
    Mutation(
        name="no row of a view has the key of a new one",
        file=PARTS,
        old="return not len(self.files.among(",
        new="return 0 <= len(self.files.among(",
        tests=(NETTED, SNAPSHOT_KEY),
    ),
    Mutation(
        name="a view with a damaged file has not the key of a new row",
        file=PARTS,
        old="""        except (UnfitError, ReadMismatchError, pa.ArrowException, OSError):
            return False""",
        new="""        except (UnfitError, ReadMismatchError, pa.ArrowException, OSError):
            return True""",
        tests=(NETTED,),
    ),
    Mutation(
        name="rows that are deleted are taken for new ones",
        file="backfill_assets/adapters/compute/key_checks.py",
        old='INSERTED = f"{ROWS}/{OPERATION}=insert"',
        new='INSERTED = f"{ROWS}/{OPERATION}=delete"',
        tests=("tests/e2e/tables/test_primary_key.py", "tests/e2e/tables/test_full_refresh.py"),
    ),
    Mutation(
        name="keys of all rows of a view are not compared",
        file="backfill_assets/adapters/compute/key_checks.py",
        old="if come is not None and are_surely_distinct(come):",
        new="if come is not None:",
        tests=("tests/e2e/tables/test_full_refresh.py::test_a_duplicate_key_is_refused_until_it_is_corrected",),
    ),
    Mutation(
        name="rows of a view are distinct whatever their keys are",
        file=UNIQUE,
        old="return _distinct(keys, kinds) == len(keys)",
        new="return _distinct(keys, kinds) <= len(keys)",
        tests=(DISTINCT,),
    ),
    Mutation(
        name="small tables make one file, however large their rows are",
        file="backfill_assets/adapters/compute/value_parts.py",
        old="<= _LITTLE_BYTES and most <= of_file and",
        new="<= _LITTLE_BYTES and",
        tests=(SMALL_TABLES, "tests/e2e/tables/test_layout.py"),
    ),
    Mutation(
        name="one task reads small tables, however large their values are",
        file="backfill_assets/adapters/compute/value_parts.py",
        old="<= _LITTLE_BYTES and most <= of_file and",
        new=">= 0 and most <= of_file and",
        tests=(SMALL_TABLES,),
    ),
    Mutation(
        name="a table that is looked up counts as one without rows",
        file="backfill_assets/adapters/compute/value_parts.py",
        old="if len(rows) < len(attempt.read) or not rows.keys() >= set(query.occurrences):",
        new="rows = dict.fromkeys(query.occurrences, 1) | rows\n    if False:",
        tests=(SMALL_TABLES,),
    ),
    Mutation(
        name="groups that nothing touches are written again",
        file=GROUPS,
        old='f"{_UNTOUCHED} = 0 AND (__count != 0 OR {_OLD} > 0)"',
        new='f"__count != 0 OR {_OLD} > 0"',
        tests=(TOUCHED,),
    ),
    Mutation(
        name="stored groups do not count where one task takes them",
        file=GROUPS,
        old="return states if reach is Reach.ONE_TASK else",
        new="return states.limit(0) if reach is Reach.ONE_TASK else",
        tests=("tests/e2e/tables/test_aggregate_maintenance.py",),
    ),
    Mutation(
        name="a view with groups is maintained as if it had none",
        file=MAINTAINED,
        old="old = held.every() if held.files else None",
        new="old = None",
        tests=(
            "tests/e2e/tables/test_aggregate_views.py",
            "tests/e2e/tables/test_added_columns.py::test_views_over_it_go_on",
            "tests/e2e/damage/test_inputs_conserved.py",
        ),
    ),
    Mutation(
        name="groups over a source are maintained as if there were none",
        file=MAINTAINED,
        old="old = held.every() if held.files else None",
        new="old = None",
        tests=("tests/e2e/damage/test_own_rows_conserved.py::test_a_damaged_file_of_groups_over_a_source_is_missed",),
    ),
    Mutation(
        name="one task reads any number of files",
        file="backfill_assets/adapters/compute/tasks.py",
        old="and files <= FILES_OF_TASK",
        new="",
        tests=(TASKS,),
    ),
    Mutation(
        name="one task looks through whole tables for few rows",
        file="backfill_assets/adapters/compute/table_inputs.py",
        old="return None if None in counts else sum(filter(None, counts))",
        new="return sum(filter(None, counts))",
        tests=(READ_FILES,),
    ),
    Mutation(
        name="files with hidden rows are taken for few rows",
        file="backfill_assets/adapters/compute/table_inputs.py",
        old="return sum(counts) if all(each.is_plain for each in versions) else None",
        new="return sum(counts)",
        tests=(READ_FILES,),
    ),
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
        old="rows.combine_chunks() if len(rows)",
        new="rows if len(rows)",
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
