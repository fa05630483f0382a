"""Faults of how views are laid out in files."""

from tests.mutations.mutation import Mutation

__all__ = ["LAYOUT"]

GROUPS = "backfill_assets/core/epoch/merge_groups.py"
FILES = "backfill_assets/adapters/delta/layout.py"
PURE = "tests/core/epoch/test_merge_groups.py"
REAL = "tests/e2e/tables/test_layout.py"
NAMES = "tests/query/test_names_inside_columns.py"
RENAMED = "tests/query/test_relational.py::test_a_query_that_gives_columns_other_names_is_not_looked_into"
ALIKE = f"{REAL}::test_rows_that_are_alike_in_many_tasks_are_laid_out_and_told_apart"

LAYOUT = [
    Mutation(
        name="rows that are alike in two tasks get the same number",
        file="backfill_assets/adapters/compute/copies.py",
        old="if parts is not None and not parts.by_values:",
        new="if parts is None:",
        tests=(f"{REAL}::test_rows_that_are_alike_in_the_tasks_of_a_small_machine_are_told_apart",),
    ),
    Mutation(
        name="rows stay in however many tasks they are",
        file="backfill_assets/adapters/compute/value_parts.py",
        old="if 0 < tasks <= MOST_OVERLAP and",
        new="if 0 < tasks and",
        tests=("tests/adapters/compute/test_small_tables.py",),
    ),
    Mutation(
        name="a cluster is one machine",
        file="backfill_assets/adapters/compute/tasks.py",
        old='if str(spark.conf.get("spark.master", "")).startswith("local") else 0',
        new="if spark else 0",
        tests=("tests/adapters/compute/test_tasks.py",),
    ),
    Mutation(
        name="history is written in the order of hashes",
        file="backfill_assets/adapters/compute/laid_out.py",
        old="    return rows.repartitionByRange(files, *map(quoted, columns)) if files > 1 else rows.coalesce(1)",
        new="    return rows.repartition(files, *map(quoted, columns)) if files > 1 else rows.coalesce(1)",
        tests=(f"{REAL}::test_rows_of_which_nothing_is_known_are_counted_and_laid_out",),
    ),
    Mutation(
        name="files of neighbours become one without end",
        file=GROUPS,
        old=" or last.rows + each.rows > ROWS_OF_FILE:",
        new=":",
        tests=(PURE,),
    ),
    Mutation(
        name="files become one in the order in which they are found",
        file=GROUPS,
        old="key=lambda at: files[at].lowest)",
        new="key=lambda at: at)",
        tests=(PURE,),
    ),
    Mutation(
        name="a new row goes to the file behind its own",
        file=GROUPS,
        old="max(0, bisect_right(lowest, value) - 1)",
        new="min(last, bisect_right(lowest, value))",
        tests=(PURE,),
    ),
    Mutation(
        name="a file grows with each new row",
        file=GROUPS,
        old="        return rows <= self.rows or (rows <= ROWS_OF_FILE and self.size <= SMALL_BYTES)",
        new="        return True",
        tests=(PURE,),
    ),
    Mutation(
        name="new rows are lost that have no file",
        file="backfill_assets/adapters/delta/merged_rows.py",
        old="enumerate([*groups, Group()])",
        new="enumerate(groups)",
        tests=("tests/adapters/delta/test_merged_rows.py",),
    ),
    Mutation(
        name="the layout is a change of rows to readers",
        file=FILES,
        old=", changes_data=False)",
        new=")",
        tests=(f"{REAL}::test_history_in_chunks_is_laid_out_by_maintain_and_goes_on[rows]",),
    ),
    Mutation(
        name="a layout may lose rows",
        file=FILES,
        old="    if held != found:",
        new="    if held is None:",
        tests=(f"{REAL}::test_a_layout_of_other_rows_or_of_an_older_version_is_not_committed",),
    ),
    Mutation(
        name="copies of another chunk have the same numbers",
        file="backfill_assets/adapters/compute/copies.py",
        old="F.lit((attempt.plan.epoch << _NUMBERS_OF_EPOCH) + 1)",
        new="F.lit(1)",
        tests=("tests/e2e/tables/test_layout.py::test_copies_of_a_row_in_several_chunks_are_told_apart",),
    ),
    Mutation(
        name="copies of one task have one number",
        file="backfill_assets/adapters/compute/copies.py",
        old="_PLACES: Final = 2**_BITS_OF_PLACES - 1",
        new="_PLACES: Final = 0",
        tests=(ALIKE,),
    ),
    Mutation(
        name="copies are divided among tasks",
        file="backfill_assets/adapters/compute/laid_out.py",
        old="rows.repartitionById(parts.number, F.expr(parts.of_row))",
        new="rows.repartition(parts.number)",
        tests=(ALIKE,),
    ),
    Mutation(
        name="a file has all rows of a task",
        file="backfill_assets/adapters/delta/spark_files.py",
        old='option("maxRecordsPerFile", most_rows)',
        new='option("maxRecordsPerFile", 0)',
        tests=(ALIKE,),
    ),
    Mutation(
        name="files of wide rows are as long as others",
        file="backfill_assets/core/epoch/merge_groups.py",
        old="min(ROWS_OF_FILE, int(_BYTES_OF_FILE / max(1.0, bytes_of_row)))",
        new="ROWS_OF_FILE",
        tests=(f"{REAL}::test_files_of_wide_rows_hold_fewer_of_them",),
    ),
    Mutation(
        name="a value that ends a part is in the next one",
        file="backfill_assets/adapters/sql/keys.py",
        old='return f"IF({column} <= {bound},',
        new='return f"IF({column} < {bound},',
        tests=("tests/adapters/sql/test_value_parts.py",),
    ),
    Mutation(
        name="bounds of a column are taken for those of another type",
        file="backfill_assets/adapters/compute/value_parts.py",
        old='    return (read in WHOLE and held in WHOLE) or (read == held and read in {"STRING", "DATE"})',
        new='    return read in WHOLE | {"STRING", "DATE"}',
        tests=(f"{REAL}::test_a_column_that_a_union_gives_another_type_has_no_bounds_of_its_own",),
    ),
    Mutation(
        name="a column that is computed is taken for one that is read",
        file="backfill_assets/query/origins.py",
        old="    if not isinstance(node, exp.Column):\n        return None\n",
        new="    node = node.find(exp.Column) or exp.column('none')\n",
        tests=("tests/query/test_origins.py",),
    ),
    Mutation(
        name="a view that others read is replaced where many rows change",
        file="backfill_assets/core/strategies/rule_choice.py",
        old=" and not changes.is_read and changes.held >= LARGE",
        new=" and changes.held >= LARGE",
        tests=("tests/core/strategies/test_rule_choice.py",),
    ),
    Mutation(
        name="epochs of other tables tell how long a rule takes",
        file="backfill_assets/core/strategies/rule_choice.py",
        old='if after.rule not in {"", "full"} and after.rows_read and _changed(before, after) == set(changed)',
        new='if after.rule not in {"", "full"} and after.rows_read',
        tests=("tests/core/strategies/test_rule_choice.py",),
    ),
    Mutation(
        name="an epoch that only moved versions tells how long all takes",
        file="backfill_assets/core/strategies/rule_choice.py",
        old='if each.rule == "full" and each.rows_written]',
        new='if each.rule == "full"]',
        tests=("tests/core/strategies/test_rule_choice.py",),
    ),
    Mutation(
        name="a view is compared that is to be replaced",
        file="backfill_assets/adapters/compute/table_compute.py",
        old="        if old.is_empty or attempt.replaced:",
        new="        if old.is_empty:",
        tests=(f"{REAL}::test_a_large_view_of_which_many_rows_change_is_replaced_if_no_other_view_reads_it",),
    ),
    Mutation(
        name="no view knows that others read it",
        file="backfill_assets/app/workspace.py",
        old="        return bool(self.registry.readers(view.name))",
        new="        return False",
        tests=(f"{REAL}::test_a_large_view_of_which_many_rows_change_is_replaced_if_no_other_view_reads_it",),
    ),
    Mutation(
        name="of groups that change only those are found that were there first",
        file="backfill_assets/adapters/compute/rules.py",
        old="groups_of_rows(query, changes).select(",
        new="groups_of_rows(query, changes.limit(1)).select(",
        tests=("tests/e2e/tables/test_found_rows.py::test_groups_that_change_are_found_among_many",),
    ),
    Mutation(
        name="columns that have other names count as unused",
        file="backfill_assets/query/relational.py",
        old="    every = renames_columns(root) or any(",
        new="    every = any(",
        tests=(RENAMED,),
    ),
    Mutation(
        name="FROM without SELECT uses no column",
        file="backfill_assets/query/relational.py",
        old="    every = renames_columns(root) or any(isinstance(each, exp.Star) for each in given)",
        new="    every = renames_columns(root)",
        tests=(f"{NAMES}::test_from_without_select_uses_all_columns",),
    ),
    Mutation(
        name="keys of maps are written in small letters",
        file="backfill_assets/query/spelling.py",
        old="kept = _name_givers(parts[0]).union(*map(_fields, parts))",
        new="kept = _name_givers(parts[0])",
        tests=(f"{NAMES}::test_keys_of_maps_keep_their_case_and_columns_do_not",),
    ),
    Mutation(
        name="keys of maps that differ in case are one group",
        file="backfill_assets/query/grouping.py",
        old="words_of(self.query, tokens, self._keys)",
        new="words_of(self.query, tokens)",
        tests=(f"{NAMES}::test_keys_of_maps_are_groups_of_their_own_and_fields_of_structs_are_not",),
    ),
    Mutation(
        name="rows have texts that a collation makes equal",
        file="backfill_assets/query/expressions.py",
        old="        check_collations(item)\n",
        new="        pass\n",
        tests=(f"{NAMES}::test_rows_are_not_told_apart_by_a_collation",),
    ),
    Mutation(
        name="other names of columns are taken for those of the table",
        file="backfill_assets/query/resolved.py",
        old="renames_columns(root) or _names_all(root, found, tables)",
        new="_names_all(root, found, tables)",
        tests=(RENAMED,),
    ),
    Mutation(
        name="where files overlap is counted backwards",
        file=GROUPS,
        old="[(low, 1) for low, _ in spans] + [(high, 0) for _, high in spans]",
        new="[(low, 0) for low, _ in spans] + [(high, 1) for _, high in spans]",
        tests=(PURE,),
    ),
]
