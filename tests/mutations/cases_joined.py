"""Faults in the history of a query over several tables that is read in chunks."""

from tests.mutations.mutation import Mutation

__all__ = ["JOINED"]

HISTORY = "backfill_assets/core/strategies/joined_history.py"
PURE = "tests/core/strategies/test_joined_history.py"
CHUNKS = (
    "tests/e2e/tables/test_joined_history.py::test_each_chunk_adds_what_it_gives_and_changes_wait_until_history_is_read"
)
OF_ALL, PARTS = f"{CHUNKS}[of_all]", f"{CHUNKS}[parts]"
CHOSEN = "tests/core/choice/test_choose_joined.py"

ORDERED = "tests/e2e/tables/test_chunks_of_ordered_tables.py"
OPENED = f"{ORDERED}::test_chunks_open_the_files_that_may_have_rows_for_them"

JOINED: tuple[Mutation, ...] = (
    Mutation(
        name="the group of nulls is between two others",
        file="backfill_assets/adapters/compute/rules.py",
        old="if low is not None and not nulls else None",
        new="if low is not None else None",
        tests=(f"{ORDERED}::test_the_group_of_nulls_is_found_beside_those_between_two_others",),
    ),
    Mutation(
        name="nulls of a chunk meet nothing in other tables",
        file="backfill_assets/adapters/compute/table_inputs.py",
        old="            if known is None:\n                return None",
        new="            if known is None:\n                continue",
        tests=(f"{OPENED}[nulls-whole]",),
    ),
    Mutation(
        name="two places of a query read files of a table by one log",
        file="backfill_assets/adapters/compute/table_inputs.py",
        old='attempt.scratch(f"{number}/{digest}")',
        new="attempt.scratch(str(number))",
        tests=(f"{OPENED}[twice-parted]",),
    ),
    Mutation(
        name="other tables are not read with a chunk",
        file=HISTORY,
        old="        return [*reads, *beside], after",
        new="        return [*reads, *beside[1:]], after",
        tests=(PURE,),
    ),
    Mutation(
        name="rows that are left out from now on stay in the chunks that were read",
        file=HISTORY,
        old="position.driving is None or turn.at_once",
        new="position.driving is None",
        tests=(PURE,),
    ),
    Mutation(
        name="keys of tables beside the chunk count as if nobody had read them",
        file="backfill_assets/core/strategies/table_views.py",
        old="at_once=not left_out_alike(before, position),",
        new="at_once=bool(skip_reads(before, position)),",
        tests=(PURE,),
    ),
    Mutation(
        name="a table without rows drives a query, so that nothing is computed",
        file=HISTORY,
        old="        if driving is None or not any(rows[name] for name in names):",
        new="        if not names:",
        tests=(PURE,),
    ),
    Mutation(
        name="what is read at once leaves out what the chunks before had",
        file="backfill_assets/core/strategies/whole_history.py",
        old="rows=after[name].rows - table.rows,",
        new="rows=after[name].rows,",
        tests=(PURE,),
    ),
    Mutation(
        name="a part without a table to drive it is given by no chunk",
        file="backfill_assets/query/linear.py",
        old="for some in of_parts) if all(of_parts) else ()",
        new="for some in of_parts if some)",
        tests=("tests/query/test_linear.py",),
    ),
    Mutation(
        name="the smallest table drives a query",
        file="backfill_assets/query/linear.py",
        old="max(some, key=lambda at: rows[at])",
        new="min(some, key=lambda at: rows[at])",
        tests=("tests/query/test_linear.py",),
    ),
    Mutation(
        name="the group of all rows is not there from the first chunk on",
        file="backfill_assets/adapters/compute/rules.py",
        old="        if query.grouped.of_all and work.first:",
        new="        if query.grouped.of_all and not work.first:",
        tests=(OF_ALL,),
    ),
    Mutation(
        name="the other places of a chunk's table see only the chunk",
        file="backfill_assets/adapters/compute/plan_changes.py",
        old="every=lambda: reads.rows(attempt, name, LookupRead)",
        new="every=lambda: reads.rows(attempt, name)",
        tests=(PARTS,),
    ),
    Mutation(
        name="a proof within history takes all rows of a table that drives it",
        file="backfill_assets/adapters/proof/tables.py",
        old="            return view_difference(query, rows_at(spark, view, version), every, chunks)",
        new="            return view_difference(query, rows_at(spark, view, version), every)",
        tests=(PARTS,),
    ),
    Mutation(
        name="chunks are joined though everything at once costs as much",
        file="backfill_assets/core/choice/choose.py",
        old="        fitting.reverse()",
        new="        fitting.sort()",
        tests=(CHOSEN,),
    ),
    Mutation(
        name="tables that are read again with each chunk cost nothing",
        file="backfill_assets/core/choice/estimates.py",
        old="    again = (work.rows - (0 if work.parts else driven)) * (chunks - 1)",
        new="    again = 0",
        tests=(CHOSEN,),
    ),
    Mutation(
        name="fields whose names need quotes stick the groups that have them",
        file="backfill_assets/adapters/sql/apply_aggregate.py",
        old="F.lit(None).cast(kinds[name])",
        new="F.lit(None).cast(kinds[name].simpleString())",
        tests=("tests/e2e/tables/test_aggregate_maintenance.py",),
    ),
    Mutation(
        name="fields whose names need quotes cannot be in a group of all rows",
        file="backfill_assets/adapters/sql/apply_relational.py",
        old="F.lit(None).cast(field.dataType)",
        new="F.lit(None).cast(field.dataType.simpleString())",
        tests=("tests/e2e/tables/test_apply.py::test_a_group_of_all_rows_may_have_fields_of_any_name",),
    ),
)
