"""Faults in what is told in this process instead of by Spark, such as whether keys are new; and in what one task does."""

from typing import Final

from tests.mutations.mutation import Mutation

__all__ = ["FEW"]

RELATIONAL: Final = "tests/query/test_relational.py"
COLLATED: Final = (
    "tests/e2e/tables/test_snapshot_refusals.py::test_texts_with_a_collation_are_refused_where_the_view_names_them"
)
PARTS: Final = "backfill_assets/adapters/compute/selectable_rows.py"
NETTED: Final = "tests/adapters/compute/test_selectable_rows.py"

SNAPSHOT_KEY: Final = (
    "tests/e2e/tables/test_snapshot_refusals.py::"
    "test_a_key_that_is_not_unique_is_refused_at_the_snapshot_and_when_it_comes_later"
)
SMALL_WORK: Final = "tests/e2e/tables/test_small_work.py"
SMALL_TABLES: Final = "tests/adapters/compute/test_small_tables.py"
UNIQUE: Final = "backfill_assets/adapters/delta/distinct_keys.py"
DISTINCT: Final = "tests/adapters/delta/test_distinct_keys.py"
GROUPS: Final = "backfill_assets/adapters/sql/apply_aggregate.py"
TOUCHED: Final = "tests/e2e/tables/test_aggregate_maintenance.py::test_groups_that_nothing_touches_do_not_come"

MAINTAINED: Final = "backfill_assets/adapters/compute/maintained_groups.py"
TASKS: Final = "tests/adapters/compute/test_tasks.py"
READ_FILES: Final = "tests/adapters/compute/test_files_read.py"

FEW: Final = (
    Mutation(
        name="stored groups do not count where they are shuffled",
        file=GROUPS,
        old=" else _only(plan, states, read.select(*plan.groups).distinct(), reach)",
        new=" else states.limit(0)",
        tests=(SMALL_WORK,),
    ),
    Mutation(
        name="copies that a view holds do not count where Spark finds them",
        file="backfill_assets/adapters/compute/copies.py",
        old="semi_join(held.every(), touched, {name: name for name in alike}, few=few)",
        new="semi_join(held.every().limit(0), touched, {name: name for name in alike}, few=few)",
        tests=(SMALL_WORK,),
    ),
    Mutation(
        name="hidden columns have the names of those with which changes are computed",
        file="backfill_assets/query/rowwise.py",
        old=""" if name.lower() in WORKING else name""",
        new=""" if name.lower() in () else name""",
        tests=(
            "tests/e2e/tables/test_snapshot_keys.py::"
            "test_keys_may_have_the_names_of_columns_with_which_changes_are_computed",
        ),
    ),
    Mutation(
        name="collations inside of structs are passed over",
        file="backfill_assets/adapters/delta/column_metadata.py",
        old="return differs or any(_is_collated(each) for name, each in part.items() if name != _COLLATIONS)",
        new="return differs or _is_collated(part.get('metadata'))",
        tests=("tests/adapters/delta/test_collations.py",),
    ),
    Mutation(
        name="a table with collated texts is an upstream",
        file="backfill_assets/app/wiring/view_query.py",
        old="if column.name in odd:",
        new="if column.name in ():",
        tests=(COLLATED,),
    ),
    Mutation(
        name="a table is refused for collated texts that no view names",
        file="backfill_assets/app/wiring/view_query.py",
        old="if odd else ()",
        new="if not odd else columns[each.name]",
        tests=(COLLATED,),
    ),
    Mutation(
        name="an initialization vector may be empty",
        file="backfill_assets/query/determinism.py",
        old="in _WRITTEN_BYTES and bool(vector[0][1])",
        new="in _WRITTEN_BYTES",
        tests=("tests/query/test_encrypted.py",),
    ),
    Mutation(
        name="a text with a collation may be a value of a view",
        file="backfill_assets/query/determinism.py",
        old="        if not _is_compared(text):\n",
        new="        if not text.parent:\n",
        tests=(f"{RELATIONAL}::test_what_cannot_be_kept_is_refused_with_its_code_and_a_hint",),
    ),
    Mutation(
        name="texts that a collation compares are refused",
        file="backfill_assets/query/determinism.py",
        old="    return isinstance(above, _COMPARISONS)\n",
        new="    return False\n",
        tests=(f"{RELATIONAL}::test_what_only_looks_so_is_taken", "tests/e2e/tables/test_collations.py"),
    ),
    Mutation(
        name="keys are found though a collation compares",
        file="backfill_assets/query/resolved.py",
        old="return None if collated(root) else",
        new="return",
        tests=(f"{RELATIONAL}::test_what_a_collation_makes_equal_is_no_key",),
    ),
    Mutation(
        name="no key is found where a collation compares bytes",
        file="backfill_assets/query/nodes.py",
        old='if each.name.upper() != "UTF8_BINARY"]',
        new="if each]",
        tests=(f"{RELATIONAL}::test_what_a_collation_makes_equal_is_no_key",),
    ),
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
        old="return self.files.has_none(",
        new="return True or self.files.has_none(",
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
        old='"0", of_file) if most <= of_file else None',
        new='"0", of_file)',
        tests=(SMALL_TABLES,),
    ),
    Mutation(
        name="one task reads small tables, however large their values are",
        file="backfill_assets/adapters/compute/value_parts.py",
        old="for each in files) > _LITTLE_BYTES:",
        new="for each in files) < 0:",
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
)
