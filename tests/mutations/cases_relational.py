"""Faults in queries of any shape: reading them, computing them over whole tables, and following what is linear."""

from tests.mutations.mutation import Mutation

__all__ = ["RELATIONAL"]

QUERY = "tests/query/test_relational.py"
LINEAR = "tests/query/test_linear.py"
WHOLE = "tests/core/strategies/test_whole_history.py"
VIEWS = "tests/e2e/tables/test_relational.py"
FOLLOWED = f"{VIEWS}::test_a_query_that_is_linear_in_what_changed_is_kept_by_the_changes_alone"
CHANGES = "backfill_assets/adapters/compute/relational_changes.py"
APPLY = "backfill_assets/adapters/sql/apply_relational.py"

RELATIONAL: tuple[Mutation, ...] = (
    Mutation(
        name="a name of WITH hides an upstream only in the case that it is written in",
        file="backfill_assets/query/occurrences.py",
        old='        cte.args["alias"].this.set("this", cte.alias.lower())',
        new='        cte.args["alias"].this.set("this", cte.alias.upper())',
        tests=(QUERY,),
    ),
    Mutation(
        name="a name that the query gives is taken for that of a text",
        file="backfill_assets/query/determinism.py",
        old="    return {each.name.lower() for each in columns} - others - given - renamed",
        new="    return {each.name.lower() for each in columns} - others",
        tests=(QUERY,),
    ),
    Mutation(
        name="a text in several pieces does not mean the clock's time",
        file="backfill_assets/query/determinism.py",
        old="        case exp.Concat() | exp.DPipe():",
        new="        case exp.Hint():",
        tests=(QUERY,),
    ),
    Mutation(
        name="a text that is computed does not mean the clock's time",
        file="backfill_assets/query/determinism.py",
        old="        return _casts_computed_text(node)",
        new="        return False",
        tests=(QUERY,),
    ),
    Mutation(
        name="a condition keeps a text beside dates",
        file="backfill_assets/query/determinism.py",
        old="        return any(_may_be_time(branch, is_text) for branch in _branches(parent))",
        new="        return False",
        tests=(QUERY,),
    ),
    Mutation(
        name="different texts are equal",
        file="backfill_assets/query/determinism.py",
        old="    if _has_collation(root):",
        new="    if not root:",
        tests=(QUERY,),
    ),
    Mutation(
        name="rows are known by what Spark does not compare exactly",
        file=APPLY,
        old="    for field in () if keyed else fields:",
        new="    for field in ():",
        tests=("tests/adapters/sql/test_row_identity.py",),
    ),
    Mutation(
        name="two columns of one name reach the view",
        file=APPLY,
        old="    if twice := [field.name for field in fields if small.count(field.name.lower()) > 1]:",
        new="    if twice := [field.name for field in fields if small.count(field.name) > 1]:",
        tests=("tests/adapters/sql/test_row_identity.py",),
    ),
    Mutation(
        name="rows that differ in where they are null share a place",
        file=APPLY,
        old="orderBy(F.hash(*map(quoted, columns)), *map(quoted, columns))",
        new="orderBy(F.hash(*map(quoted, columns)))",
        tests=("tests/e2e/tables/test_apply.py::test_rows_that_differ_in_where_they_are_null_are_numbered_alike",),
    ),
    Mutation(
        name="a word for the session's user is taken for a name of the SELECT list",
        file="backfill_assets/query/current_words.py",
        old="    return query is not None and any(_has(source, name, tables, named) for source in _sources(query))",
        new="    return query is not None and name in [each.lower() for each in query.named_selects]",
        tests=(QUERY,),
    ),
    Mutation(
        name="functions in FROM read tables that are no upstreams",
        file="backfill_assets/query/occurrences.py",
        old='    if name.lower() not in TABLE_FUNCTIONS or place.args.get("db"):',
        new='    if place.args.get("db"):',
        tests=(QUERY,),
    ),
    Mutation(
        name="a place that names an upstream loses its name",
        file="backfill_assets/query/occurrences.py",
        old='name(number) if each.alias else f"{name(number)} AS {backquoted(each.written)}"',
        new="name(number)",
        tests=(QUERY,),
    ),
    Mutation(
        name="a collected array may have any order",
        file="backfill_assets/query/determinism.py",
        old="return name in _ORDER_DEPENDENT and not (name in _COLLECTS and _is_put_in_order(tokens, at))",
        new="return name in _ORDER_DEPENDENT and name not in _COLLECTS",
        tests=(QUERY,),
    ),
    Mutation(
        name="an element of a collected array is what is sorted",
        file="backfill_assets/query/determinism.py",
        old="return after == TokenType.R_PAREN or (after == TokenType.COMMA and is_sort)",
        new="return after != TokenType.COMMA or is_sort",
        tests=(QUERY,),
    ),
    Mutation(
        name="a collected array is sorted by a comparison that finds different elements equal",
        file="backfill_assets/query/determinism.py",
        old="return after == TokenType.R_PAREN or (after == TokenType.COMMA and is_sort)",
        new="return after in {TokenType.R_PAREN, TokenType.COMMA}",
        tests=(QUERY,),
    ),
    Mutation(
        name="the first value of a group is left to chance",
        file="backfill_assets/query/determinism.py",
        old="    if name in _FIRST_OF_WINDOW:",
        new="    if not name:",
        tests=(QUERY,),
    ),
    Mutation(
        name="a text may mean the clock's time in a query of any shape",
        file="backfill_assets/query/determinism.py",
        old="    return {each.name.lower() for each in columns} - others - given - renamed",
        new="    return {each.name.lower() for each in columns} - given - renamed",
        tests=(QUERY,),
    ),
    Mutation(
        name="a window's order is left to chance",
        file="backfill_assets/query/ties.py",
        old="    added = dict([*_windows(tokens, root), *_limits(tokens, root)])",
        new="    added = dict([*_limits(tokens, root)])",
        tests=(QUERY,),
    ),
    Mutation(
        name="which rows a LIMIT keeps is left to chance",
        file="backfill_assets/query/ties.py",
        old="    added = dict([*_windows(tokens, root), *_limits(tokens, root)])",
        new="    added = dict([*_windows(tokens, root)])",
        tests=(QUERY,),
    ),
    Mutation(
        name="rows of a frame of ROWS may come in any order",
        file="backfill_assets/query/ties.py",
        old="if name not in _TAKES_ORDER and not any(tokens[at].token_type == TokenType.ROWS for at in inside):",
        new="if name not in _TAKES_ORDER:",
        tests=(QUERY,),
    ),
    Mutation(
        name="rows of a named frame may come in any order",
        file="backfill_assets/query/ties.py",
        old="    if _names_frame_of_rows(root):",
        new="    if not root:",
        tests=(QUERY,),
    ),
    Mutation(
        name="a LEFT JOIN is taken to be linear in its right side",
        file="backfill_assets/query/linear.py",
        old='    if side == "LEFT" or kind in {"SEMI", "ANTI"}:\n        return linear\n',
        new='    if side == "LEFT" or kind in {"SEMI", "ANTI"}:\n        return linear | right\n',
        tests=(LINEAR,),
    ),
    Mutation(
        name="a RIGHT JOIN is taken to be linear in its left side",
        file="backfill_assets/query/linear.py",
        old="        return right\n",
        new="        return linear | right\n",
        tests=(LINEAR,),
    ),
    Mutation(
        name="groups are taken to be linear",
        file="backfill_assets/query/linear.py",
        old="    TokenType.GROUP_BY,\n",
        new="",
        tests=(LINEAR,),
    ),
    Mutation(
        name="a part that gives rows of nothing is taken to be linear",
        file="backfill_assets/query/linear.py",
        old="    if not selects or not all(map(_is_plain, selects)):",
        new="    if not selects or not any(map(_is_plain, selects)):",
        tests=(LINEAR,),
    ),
    Mutation(
        name="other parts of UNION ALL give their rows again with each change",
        file=CHANGES,
        old='        return new[name].where("FALSE")',
        new="        return new[name]",
        tests=(f"{FOLLOWED}[joins_together]",),
    ),
    Mutation(
        name="places after the one that changed are bound to the new rows",
        file=CHANGES,
        old="    return changed[name].old() if at > number and name in changed else new[name]",
        new="    return new[name]",
        tests=(f"{FOLLOWED}[self_join]",),
    ),
    Mutation(
        name="places before the one that changed are bound to the old rows",
        file=CHANGES,
        old="    return changed[name].old() if at > number and name in changed else new[name]",
        new="    return changed[name].old() if name in changed else new[name]",
        tests=(f"{FOLLOWED}[self_join]",),
    ),
    Mutation(
        name="rows that go from a table stay in a view over several",
        file=CHANGES,
        old='        go=found.where(f"NOT {CHANGE.name} {IS_INSERT}") if deletes else None,',
        new="        go=None,",
        tests=(f"{FOLLOWED}[duplicates]",),
    ),
    Mutation(
        name="of equal rows only one is kept",
        file=CHANGES,
        old="    copies = left.select(*columns, F.explode(times).alias(COPY)).drop(COPY)",
        new="    copies = left.select(*columns)",
        tests=(f"{FOLLOWED}[duplicates]",),
    ),
    Mutation(
        name="equal rows share a number",
        file=APPLY,
        old="    same = Window.partitionBy(ROW_HASH).orderBy(F.hash(*map(quoted, columns)), *map(quoted, columns))\n"
        "    return hashed(rows, columns).withColumn(COPY, F.row_number().over(same))",
        new="    same = Window.partitionBy(ROW_HASH).orderBy(F.hash(*map(quoted, columns)), *map(quoted, columns))\n"
        "    return hashed(rows, columns).withColumn(COPY, F.rank().over(same))",
        tests=(f"{FOLLOWED}[duplicates]",),
    ),
    Mutation(
        name="a table without rows has no history to compute a query over",
        file="backfill_assets/core/strategies/whole_history.py",
        old="        return begun(offer, [1]), sum(self.tables.files(name, offer.version))",
        new="        return begun(offer, [1] if sum(self.tables.files(name, offer.version)) else []), 0",
        tests=(WHOLE,),
    ),
    Mutation(
        name="rows that are to be left out stay until something changes",
        file="backfill_assets/core/strategies/table_views.py",
        old="            again = self.whole and bool(skip_reads(before, position))",
        new="            again = False",
        tests=(WHOLE,),
    ),
    Mutation(
        name="history in parts is offered for a query over whole tables",
        file="backfill_assets/core/choice/choose.py",
        old='return _in_parts(strategy) if whole and strategy not in {"source", "snapshot_once"} else None',
        new="return None",
        tests=("tests/core/choice/test_choose.py",),
    ),
    Mutation(
        name="a view's own key is not checked where its query is one over several tables",
        file="backfill_assets/query/query.py",
        old="isinstance(query, RowwiseQuery) or (isinstance(query, RelationalQuery) and bool(query.primary_key))",
        new="isinstance(query, RowwiseQuery)",
        tests=(f"{QUERY}::test_rows_without_a_key_are_known_by_their_hash_and_with_one_by_it", VIEWS),
    ),
    Mutation(
        name="bad records are seen by queries over whole tables",
        file=APPLY,
        old='(each.where(f"{ERROR.name} IS NULL") if name in query.good else each)',
        new="each",
        tests=("tests/e2e/kafka/test_sources_as_tables.py",),
    ),
    Mutation(
        name="a source that keeps new records alone is read as if it kept all",
        file="backfill_assets/declare/declarations.py",
        old='        if source.bronze != "all":',
        new="        if source.bronze is None:",
        tests=("tests/declare/test_declarations.py",),
    ),
    Mutation(
        name="a view over a source's table does not depend on its schema",
        file="backfill_assets/declare/fingerprints.py",
        old='                    **({"schema": [(name, parts["schema"]) for name, parts in read]} if read else {}),\n',
        new="",
        tests=("tests/declare/test_declarations.py",),
    ),
)
