"""Faults in reading an upstream's columns from its log, besides their names and types."""

from tests.mutations.mutation import Mutation

__all__ = ["COLUMNS"]

UPSTREAM = "backfill_assets/adapters/delta/upstream.py"
COLUMN_METADATA = "backfill_assets/adapters/delta/column_metadata.py"
FIELDS, KEPT = "backfill_assets/query/struct_fields.py", "tests/query/test_struct_fields.py"
CHANGED = "tests/adapters/delta/test_table_changes.py"
OTHER_COLUMN = f"{CHANGED}::test_another_column_under_the_same_name_is_refused_as_long_as_files_are_kept"
FIXED = (
    "tests/e2e/tables/test_fixed_lengths.py::test_text_of_a_fixed_length_is_compared_as_spark_compares_it[rearranged]"
)

COLUMNS: tuple[Mutation, ...] = (
    Mutation(
        name="another column may come under the name of one",
        file=UPSTREAM,
        old="        self._check_same_columns(before, metadata, number, actions)\n",
        new="",
        tests=(OTHER_COLUMN,),
    ),
    Mutation(
        name="another field of a struct may come under the name of one",
        file=COLUMN_METADATA,
        old='(_stored(each, mapped=mapped), _inside(each["type"], mapped=mapped))',
        new="(_stored(each, mapped=mapped), None)",
        tests=(OTHER_COLUMN,),
    ),
    Mutation(
        name="a new field of a struct may take the place of another in files",
        file=COLUMN_METADATA,
        old="all(name in now and keeps_names(now[name], was[name]) for name in was)",
        new="now.keys() >= was.keys()",
        tests=(OTHER_COLUMN,),
    ),
    Mutation(
        name="a struct that gets a field is another column",
        file=COLUMN_METADATA,
        old="all(name in now and keeps_names(now[name], was[name]) for name in was)",
        new="now.keys() == was.keys() and all(keeps_names(now[name], was[name]) for name in was)",
        tests=(OTHER_COLUMN,),
    ),
    Mutation(
        name="a struct that loses a field has not changed",
        file=FIELDS,
        old="        return all(name in there and _keeps(there[name], kind) for name, kind in wanted.items())",
        new="        return all(_keeps(there.get(name, kind), kind) for name, kind in wanted.items())",
        tests=(KEPT,),
    ),
    Mutation(
        name="maps may get keys that differ in a new field alone",
        file=FIELDS,
        old="    return keys == wanted_keys and _keeps(",
        new="    return len(keys) == len(wanted_keys) and _keeps(",
        tests=(KEPT,),
    ),
    Mutation(
        name="values have the fields that came",
        file="backfill_assets/adapters/compute/table_rows.py",
        old="    if {*changed} <= {*there}:",
        new="    if changed:",
        tests=("tests/e2e/tables/test_fields_that_come.py",),
    ),
    Mutation(
        name="versions from before and after a struct got a field are read together",
        file=UPSTREAM,
        old="        return bool(gone)",
        new="        return any(not keeps_fields(now.get(each, ''), was[each]) for each in gone)",
        tests=(f"{CHANGED}::test_a_version_that_adds_a_field_begins_another_read",),
    ),
    Mutation(
        name="another column is refused though every row was replaced",
        file=UPSTREAM,
        old="if others and self._keeps_files(number, actions):",
        new="if others:",
        tests=(f"{CHANGED}::test_another_column_under_the_same_name_is_followed_where_every_row_was_replaced_too",),
    ),
    Mutation(
        name="text of a fixed length is any text",
        file=COLUMN_METADATA,
        old='isinstance(kind, str) and kind.startswith("char(")',
        new="False",
        tests=(
            f"{CHANGED}::test_text_that_has_a_fixed_length_no_more_is_compared_otherwise_and_refused",
            FIXED,
        ),
    ),
    Mutation(
        name="captured text of a fixed length is any text",
        file="backfill_assets/adapters/compute/table_inputs.py",
        old="rows = projected(self._captured(attempt, read, columns), self.upstreams[read.source], columns)",
        new="rows = self._captured(attempt, read, columns)",
        tests=(FIXED,),
    ),
    Mutation(
        name="a name within a word of the query is a column of it",
        file="backfill_assets/query/query.py",
        old="column.name.lower() in words)",
        new="column.name.lower() in query.lower())",
        tests=("tests/query/test_query_columns.py",),
    ),
    Mutation(
        name="only names of several words are names",
        file="backfill_assets/query/used_columns.py",
        old="frozenset([*texts, *(word",
        new="frozenset([*(word",
        tests=("tests/query/test_query_columns.py",),
    ),
    Mutation(
        name="a star inside of a call means the columns that are named",
        file="backfill_assets/query/query.py",
        old="not isinstance(star.parent, exp.Count)",
        new="isinstance(star.parent, exp.Select)",
        tests=("tests/query/test_query_columns.py",),
    ),
)
