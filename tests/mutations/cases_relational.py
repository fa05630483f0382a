"""Faults in queries of any shape: reading them, and computing them over whole tables."""

from tests.mutations.mutation import Mutation

__all__ = ["RELATIONAL"]

QUERY = "tests/query/test_relational.py"
WHOLE = "tests/core/strategies/test_whole_history.py"
VIEWS = "tests/e2e/tables/test_relational.py"
APPLY = "backfill_assets/adapters/sql/apply_relational.py"
APPLIED = "tests/e2e/tables/test_apply.py"
JOINS = "tests/query/test_inner_joins.py"
INNER = "backfill_assets/query/inner_joins.py"
INLINED = "backfill_assets/query/inlined.py"

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
        old="    names = {each.name.lower() for each in columns} - others - given.keys()",
        new="    names = {each.name.lower() for each in columns} - others",
        tests=(QUERY,),
    ),
    Mutation(
        name="a text in several pieces does not mean the clock's time",
        file="backfill_assets/query/clock_texts.py",
        old="        case exp.Concat() | exp.DPipe():",
        new="        case exp.Hint():",
        tests=(QUERY,),
    ),
    Mutation(
        name="a text that is computed does not mean the clock's time",
        file="backfill_assets/query/clock_texts.py",
        old="        return _casts_computed_text(node)",
        new="        return False",
        tests=(QUERY,),
    ),
    Mutation(
        name="a condition keeps a text beside dates",
        file="backfill_assets/query/clock_texts.py",
        old="            return self._in_branch(node, parent)",
        new="            return False",
        tests=(QUERY,),
    ),
    Mutation(
        name="names of WITH are put in their places from the outermost on",
        file=INLINED,
        old="clause = next(each for each in clauses if sum(1 for _ in _query_of(each).find_all(exp.With)) == 1)",
        new="clause = clauses[0]",
        tests=("tests/query/test_inlined.py",),
    ),
    Mutation(
        name="the first name of WITH is put in its places before those after it",
        file=INLINED,
        old="    cte = clause.expressions[-1]",
        new="    cte = clause.expressions[0]",
        tests=("tests/query/test_inlined.py",),
    ),
    Mutation(
        name="columns that WITH names have the names that they had",
        file=INLINED,
        old="    if definition.columns and not alias.columns:",
        new="    if not definition.columns:",
        tests=("tests/query/test_inlined.py",),
    ),
    Mutation(
        name="a query with WITH is compared with the text that it was made into",
        file=APPLY,
        old="    if query.written is not None and not chunks:",
        new="    if query.written is None:",
        tests=(f"{APPLIED}::test_a_query_with_with_is_compared_with_the_text_as_it_was_written",),
    ),
    Mutation(
        name="a SELECT over a UNION ALL is linear though it looks at another table",
        file="backfill_assets/query/linear.py",
        old="    return inner if every == inside else None",
        new="    return inner if every else None",
        tests=("tests/query/test_linear.py",),
    ),
    Mutation(
        name="an outer join is an inner one though a group is dropped by what it adds up",
        file=INNER,
        old="        if is_key or not is_grouped(select):",
        new="        if True:",
        tests=(JOINS,),
    ),
    Mutation(
        name="an outer join is an inner one below a LIMIT",
        file=INNER,
        old="    needed = frozenset() if together else needed",
        new="    needed = needed if needed else frozenset()",
        tests=(JOINS,),
    ),
    Mutation(
        name="ON of an outer join drops rows of the side that it keeps",
        file=INNER,
        old='    if side == "LEFT":\n        return wanted, on',
        new='    if side == "LEFT":\n        return wanted | on, on',
        tests=(JOINS,),
    ),
    Mutation(
        name="one side of OR is enough for a column not to be null",
        file=INNER,
        old="{*_of_conditions(condition.left)} & {*_of_conditions(condition.right)}",
        new="{*_of_conditions(condition.left)} | {*_of_conditions(condition.right)}",
        tests=(JOINS,),
    ),
    Mutation(
        name="NOT IN a subquery, which may be empty, drops nulls",
        file=INNER,
        old='(isinstance(inner, exp.In) and not inner.args.get("query"))',
        new="isinstance(inner, exp.In)",
        tests=(JOINS,),
    ),
    Mutation(
        name="different strings are equal",
        file="backfill_assets/query/determinism.py",
        old='    for each in (each for each in (*types, *named) if each.name.upper() != "UTF8_BINARY"):',
        new="    for each in named[:0]:",
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
        name="names that only Spark can tell reach the view",
        file=APPLY,
        old="    check_names([field.name for field in fields])\n",
        new="",
        tests=("tests/adapters/sql/test_row_identity.py",),
    ),
    Mutation(
        name="a hidden column's name comes to a view by *",
        file="backfill_assets/query/named_outputs.py",
        old="    check_names(names)\n    return tuple(names)",
        new="    return tuple(names)",
        tests=(QUERY,),
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
        old="    others = {each.name.lower() for each in columns if holds_times(each.type)}",
        new="    others: set[str] = set()",
        tests=(QUERY,),
    ),
    Mutation(
        name="a text of a SELECT list becomes no time beside other parts of a set operation",
        file="backfill_assets/query/clock_texts.py",
        old="            return self._in_list(node)",
        new="            return False",
        tests=("tests/query/test_clock_texts.py",),
    ),
    Mutation(
        name="a time of day is compared with times",
        file="backfill_assets/query/clock_texts.py",
        old="            return self._beside(node, parent)\n        return self._as",
        new="            return self.is_word and self._beside(node, parent)\n        return self._as",
        tests=("tests/query/test_clock_texts.py",),
    ),
    Mutation(
        name="a table without rows has no history to compute a query over",
        file="backfill_assets/core/strategies/whole_history.py",
        old="lambda name, offer: (begun(offer, [1]),",
        new="lambda name, offer: (begun(offer, [1] if sum(self.tables.files(name, offer.version)) else []),",
        tests=(WHOLE,),
    ),
    Mutation(
        name="rows that are to be left out stay until something changes",
        file="backfill_assets/core/strategies/table_views.py",
        old="(bool(skip_reads(before, position)) or self._is_old(position))",
        new="self._is_old(position)",
        tests=(WHOLE,),
    ),
    Mutation(
        name="history in parts is offered for a query over whole tables",
        file="backfill_assets/core/choice/choose.py",
        old="return _in_parts(strategy, work) if work.whole and strategy not in fit else None",
        new="return None",
        tests=("tests/core/choice/test_choose.py",),
    ),
    Mutation(
        name="a view's own key is not checked where its query is one over several tables",
        file="backfill_assets/query/query.py",
        old="isinstance(query, RowwiseQuery) or (isinstance(query, RelationalQuery) and bool(query.primary_key))",
        new="isinstance(query, RowwiseQuery)",
        tests=(
            f"{QUERY}::test_rows_without_a_key_are_known_by_their_hash_and_with_one_by_it",
            f"{VIEWS}::test_a_view_with_a_key_of_its_own_is_merged_by_it_and_refuses_two_rows_of_one",
        ),
    ),
    Mutation(
        name="bad records are seen by queries over whole tables",
        file=APPLY,
        old='(each.where(f"{ERROR.name} IS NULL") if names[at] in query.good else each)',
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
