"""Faults of columns that are added to a view in place."""

from tests.mutations.mutation import Mutation

__all__ = ["ADDED"]

DECLARED = "backfill_assets/declare/added_columns.py"
PROTOCOL = "backfill_assets/core/epoch/protocol.py"
COMPUTE = "backfill_assets/adapters/compute/table_compute.py"
INPUTS = "backfill_assets/app/wiring/view_inputs.py"
UPSTREAMS = "backfill_assets/app/wiring/table_upstreams.py"
VIEWS = "backfill_assets/core/strategies/table_views.py"
PURE = "tests/declare/test_added_columns.py"
LISTS = "tests/query/test_select_list.py"
STEPS = "tests/core/strategies/test_redefined_views.py"
REAL = "tests/e2e/tables/test_added_columns.py"
ADDS = f"{REAL}::test_nothing_waits_and_columns_are_added_all_the_same"
REFUSED = f"{REAL}::test_columns_are_not_added_in_place_where_readers_could_not_follow_or_it_was_not_asked_for"

ADDED: tuple[Mutation, ...] = (
    Mutation(
        name="columns may be added anywhere in the list",
        file=DECLARED,
        old="    return stated(listed.first(int(count))) == built_with[SELECT]",
        new="    return True",
        tests=(f"{PURE}::test_only_expressions_at_the_end_of_the_list_are_added",),
    ),
    Mutation(
        name="what is around the list may change",
        file="backfill_assets/declare/fingerprints.py",
        old="fingerprint(select=[listed.around, listed.items])",
        new="fingerprint(select=listed.items)",
        tests=(f"{PURE}::test_only_expressions_at_the_end_of_the_list_are_added",),
    ),
    Mutation(
        name="other parts of a declaration may change with the query",
        file=DECLARED,
        old='changed_parts(built_with, fingerprint_of(view)) != ["query"]',
        new='"query" not in changed_parts(built_with, fingerprint_of(view))',
        tests=(f"{PURE}::test_nothing_else_may_have_changed",),
    ),
    Mutation(
        name="a view that may only follow changes is computed in full",
        file=DECLARED,
        old=' or view.refresh_mode == "incremental_strict":',
        new=":",
        tests=(f"{PURE}::test_nothing_else_may_have_changed", REFUSED),
    ),
    Mutation(
        name="a column of another type counts as kept",
        file=DECLARED,
        old="if each not in after]",
        new="if each.name not in {kept.name for kept in after}]",
        tests=(f"{PURE}::test_columns_are_missing_by_name_and_by_type",),
    ),
    Mutation(
        name="tables that do not say their columns have changed",
        file="backfill_assets/core/epoch/records.py",
        old="    names = {*built_with, *declared} - {SELECT}",
        new="    names = {*built_with, *declared}",
        tests=(f"{PURE}::test_what_it_says_of_them_is_no_part_that_changes_by_itself",),
    ),
    Mutation(
        name="columns are added to rows that depend on how many there are",
        file="backfill_assets/query/select_list.py",
        old=" or _LOOKS_AT_ALL_COLUMNS & {*kinds}:",
        new=":",
        tests=(f"{LISTS}::test_where_a_longer_list_may_give_other_rows_there_is_none",),
    ),
    Mutation(
        name="a view gets columns while its history is read",
        file=VIEWS,
        old="        return record.live and over_tables and self.extends(record.fingerprint)",
        new="        return over_tables and self.extends(record.fingerprint)",
        tests=(f"{STEPS}::test_a_view_whose_history_is_still_read_is_not_extended",),
    ),
    Mutation(
        name="columns are added only once something waits",
        file=VIEWS,
        old="            again = anew or (self.whole",
        new="            again = (self.whole",
        tests=(f"{STEPS}::test_all_tables_are_read_at_their_newest_versions_whatever_waits", ADDS),
    ),
    Mutation(
        name="a plan of another declaration is carried out",
        file=PROTOCOL,
        old="plan.before == last.position and not changed_parts(plan.fingerprint, parts.decider.fingerprint)",
        new="plan.before == last.position",
        tests=(f"{REAL}::test_a_plan_of_one_declaration_is_never_carried_out_by_another",),
    ),
    Mutation(
        name="the columns of tables on which new columns depend are not recorded",
        file=PROTOCOL,
        old="        columns=(None if plan.redefines else last.columns) or parts.decider.columns(),",
        new="        columns=last.columns or parts.decider.columns(),",
        tests=(f"{REAL}::test_columns_of_a_table_that_came_later_may_be_added",),
    ),
    Mutation(
        name="a plan does not say that it adds columns",
        file=PROTOCOL,
        old="        redefines=_is_changed(parts, last),",
        new="        redefines=False,",
        tests=(ADDS,),
    ),
    Mutation(
        name="an empty view keeps its columns",
        file=COMPUTE,
        old='            stays = old.is_empty and not counts["insert"] and not plan.redefines',
        new='            stays = old.is_empty and not counts["insert"]',
        tests=(f"{REAL}::test_an_empty_view_gets_columns",),
    ),
    Mutation(
        name="a view gets rows with new columns, and not the columns",
        file=COMPUTE,
        old="            delta_schema=schema,\n",
        new="",
        tests=(ADDS,),
    ),
    Mutation(
        name="a view loses columns that others need",
        file=INPUTS,
        old="        if missing:",
        new="        if missing and not is_read:",
        tests=(f"{REAL}::test_columns_that_views_over_it_need_are_never_lost",),
    ),
    Mutation(
        name="a view that is being replaced is computed at once",
        file=UPSTREAMS,
        old='        if self.view.place != "views" or self._is_being_replaced():',
        new='        if self.view.place != "views":',
        tests=(REFUSED,),
    ),
    Mutation(
        name="views over joined rows without a key find others under their hashes",
        file=UPSTREAMS,
        old="query.by_copies and self.catalog.is_read(self.view))",
        new="query.by_copies and not self.catalog.is_read(self.view))",
        tests=(f"{REAL}::test_a_view_of_joined_rows_without_a_key_that_others_read_is_replaced",),
    ),
    Mutation(
        name="a view over one that is to get columns reads it by what it does not have yet",
        file=PROTOCOL,
        old="    if changed and not (redefines and parts.decider.redefines(record)):",
        new="    if changed and not parts.decider.redefines(record):",
        tests=(f"{REAL}::test_views_over_it_go_on",),
    ),
    Mutation(
        name="the type of a column that is added is looked for in the table as it is",
        file=COMPUTE,
        old="        schema = self.wider() if plan.redefines else schema_of(self.output)",
        new="        schema = schema_of(self.output)",
        tests=(f"{REAL}::test_files_may_be_laid_out_by_a_column_that_is_added",),
    ),
    Mutation(
        name="a proof goes on from a pass of another definition",
        file="backfill_assets/app/table_checks.py",
        old="    if changed_parts(found.fingerprint, record.fingerprint):",
        new="    if False:",
        tests=(f"{REAL}::test_a_proof_since_a_pass_of_another_definition_proves_everything",),
    ),
    Mutation(
        name="columns lose what is said of them",
        file="backfill_assets/adapters/delta/output.py",
        old="        if named and record.kind is CommitKind.EPOCH:",
        new="        if False:",
        tests=(f"{REAL}::test_what_is_said_of_columns_stays",),
    ),
    Mutation(
        name="columns with other names in files are given another schema",
        file="backfill_assets/adapters/delta/output.py",
        old="            check_unmapped(self.target, table)",
        new="            pass",
        tests=(f"{REAL}::test_a_view_whose_columns_have_other_names_in_files_keeps_them",),
    ),
    Mutation(
        name="a set operation in parentheses counts as none",
        file="backfill_assets/query/select_list.py",
        old="    *(TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT),\n",
        new="",
        tests=(f"{LISTS}::test_where_a_longer_list_may_give_other_rows_there_is_none",),
    ),
    Mutation(
        name="a comparison in the list ends it",
        file="backfill_assets/query/select_list.py",
        old="if tokens[at - 1].token_type != TokenType.DISTINCT), len(tokens))",
        new="if True), len(tokens))",
        tests=(f"{LISTS}::test_a_list_is_cut_at_its_commas_and_nowhere_else",),
    ),
)
