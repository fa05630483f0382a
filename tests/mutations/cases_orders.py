"""Faults in completing orders: of windows, of their groups, and before a LIMIT; and in what a query's text alone tells."""

from tests.mutations.mutation import Mutation

__all__ = ["ORDERS"]

QUERY = "tests/query/test_relational.py"
ORDER = "tests/query/test_group_order.py"
COMPLETED = "tests/query/test_orders.py"
GROUPS = "backfill_assets/query/group_order.py"
TIES = "backfill_assets/query/ties.py"
WINDOWS = "backfill_assets/query/window_orders.py"
PLACES = "tests/declare/test_refused_places.py"
TEXT = "backfill_assets/query/text_checks.py"
ROWS = "backfill_assets/query/row_columns.py"

ORDERS: tuple[Mutation, ...] = (
    Mutation(
        name="groups in a window are told apart by the first expression of GROUP BY alone",
        file=GROUPS,
        old="for item, node in zip(items, group.expressions, strict=True)]",
        new="for item, node in zip(items[:1], group.expressions, strict=False)]",
        tests=(ORDER,),
    ),
    Mutation(
        name="groups of different grouping sets are taken to differ in their columns",
        file=GROUPS,
        old="    if has_grouping_sets(group):",
        new="    if not group:",
        tests=(ORDER,),
    ),
    Mutation(
        name="a name in GROUP BY that may be a column is taken for an expression of the SELECT list",
        file=GROUPS,
        old="    return any(named.isdisjoint(_names(column)) for column in selected.find_all(exp.Column))",
        new="    return bool(named)",
        tests=(ORDER,),
    ),
    Mutation(
        name="a name in GROUP BY is taken for an expression though there is such a column",
        file=GROUPS,
        old="        if not named or (self.columns and node.name.lower() in self.columns):",
        new="        if not named:",
        tests=(ORDER,),
    ),
    Mutation(
        name="a window's order is left to chance",
        file=TIES,
        old="    edits = {*orders_of_windows(query, tokens, root, rows), *_limits(tokens, root, rows)}",
        new="    edits = {*_limits(tokens, root, rows)}",
        tests=(QUERY,),
    ),
    Mutation(
        name="which rows a LIMIT keeps is left to chance",
        file=TIES,
        old="    edits = {*orders_of_windows(query, tokens, root, rows), *_limits(tokens, root, rows)}",
        new="    edits = {*orders_of_windows(query, tokens, root, rows)}",
        tests=(QUERY,),
    ),
    Mutation(
        name="rows of a frame of ROWS may come in any order",
        file=WINDOWS,
        old='in _TAKES_ORDER or (frame.startswith("rows") and frame != _ALL_ROWS)',
        new="in _TAKES_ORDER",
        tests=(QUERY,),
    ),
    Mutation(
        name="a frame that begins with the first row is taken for all rows",
        file=WINDOWS,
        old="and frame != _ALL_ROWS)",
        new="and not frame.startswith(_ALL_ROWS[:36]))",
        tests=(COMPLETED,),
    ),
    Mutation(
        name="a window of the WINDOW clause is in no total order",
        file=WINDOWS,
        old="1 + 2 * len(inside), _defined(tokens, node), node)",
        new="1 + 2 * len(inside), [], node)",
        tests=(COMPLETED,),
    ),
    Mutation(
        name="what is added to a window of the WINDOW clause is put there",
        file=WINDOWS,
        old="    if not window.name:\n        return Edit(",
        new="    if window:\n        return Edit(",
        tests=(COMPLETED,),
    ),
    Mutation(
        name="rows of a window in QUALIFY are told apart by the columns of one table",
        file=WINDOWS,
        old="for each in seen if each.name in names)",
        new="for each in seen if each.name in names and each.table == seen[0].table)",
        tests=(COMPLETED,),
    ),
    Mutation(
        name="columns without a name have no part in the order before a LIMIT",
        file=TIES,
        old="else sum(len(each.aliases) if isinstance(each, exp.Aliases) else 1 for each in node.selects)",
        new="else len([each for each in node.selects if each.alias_or_name])",
        tests=(QUERY,),
    ),
    Mutation(
        name="some columns of a function have no part in the order before a LIMIT",
        file=TEXT,
        old="    return name.lower() in TABLE_FUNCTIONS",
        new="    return False",
        tests=(QUERY,),
    ),
    Mutation(
        name="a star is one column in the order before a LIMIT",
        file=TIES,
        old="range(1, max(many, len(given)) + 1)",
        new="range(1, max(many, min(1, len(given))) + 1)",
        tests=(COMPLETED,),
    ),
    Mutation(
        name="a star over columns that are not known stands for the others",
        file=ROWS,
        old="for each in items) if known else ()",
        new="for each in items if not each.is_star)",
        tests=(QUERY,),
    ),
    Mutation(
        name="rows that differ in a map alone come in any order",
        file=ROWS,
        old='        return f"array_sort(map_entries({text}))"',
        new='        return f"size({text})"',
        tests=(COMPLETED,),
    ),
    Mutation(
        name="VARIANTs that differ in their type alone come in any order",
        file=ROWS,
        old='            return f"to_json({text}), schema_of_variant({text})"',
        new='            return f"to_json({text})"',
        tests=(COMPLETED,),
    ),
    Mutation(
        name="what functions give is compared though it is a map",
        file=ROWS,
        old="        _say_types(root)",
        new="        root.copy()",
        tests=(COMPLETED,),
    ),
    Mutation(
        name="a refusal names a place in the text in one spelling",
        file="backfill_assets/app/wiring/view_query.py",
        old="            found = self._as_written(error, read)",
        new="            found = error",
        tests=("tests/app/test_wiring.py",),
    ),
    Mutation(
        name="a generator with several names shifts the columns after it",
        file="backfill_assets/query/partition.py",
        old="""return ["" if isinstance(each, exp.Aliases) else str(each.output_name) for each in given]""",
        new="""return list(inner.named_selects) if given else []""",
        tests=("tests/query/test_key_classes.py",),
    ),
    Mutation(
        name="lineage has one column for a generator with several names",
        file="backfill_assets/query/lineage.py",
        old="for each in inner.expressions for _ in _names_of(each)]",
        new="for each in inner.expressions]",
        tests=("tests/query/test_lineage.py",),
    ),
    Mutation(
        name="the weights of a percentile come from nowhere",
        file="backfill_assets/query/parsing.py",
        old="self._parse_distinct_arg_function(_Percentile)",
        new="self._parse_distinct_arg_function(exp.Quantile)",
        tests=("tests/query/test_lineage.py",),
    ),
    Mutation(
        name="the unit of a time is always a literal",
        file="backfill_assets/query/parsing.py",
        old="if len(arguments) == _WITH_UNIT and not isinstance(arguments[unit], exp.Literal):",
        new="if len(arguments) != _WITH_UNIT:",
        tests=("tests/query/test_lineage.py",),
    ),
    Mutation(
        name="a fragment is placed where the text has its words first",
        file="backfill_assets/query/fragments.py",
        old="    return words[found[0]].start if len(found) == 1 else None",
        new="    return words[found[0]].start if found else None",
        tests=("tests/query/test_fragments.py",),
    ),
    Mutation(
        name="a backslash in a text is read in another way than by Spark",
        file="backfill_assets/query/parsing.py",
        old="tokens = Spark().tokenize(query)",
        new="tokens = Spark.Tokenizer().tokenize(query)",
        tests=("tests/query/test_clock_texts.py",),
    ),
    Mutation(
        name="a text that becomes a time by a pattern is taken for the clock's",
        file="backfill_assets/query/clock_texts.py",
        old='    return call.args.get("format") is not None and call.this is text',
        new="    return False",
        tests=("tests/query/test_clock_texts.py",),
    ),
    Mutation(
        name="a cast has the name of what it casts, whatever that is",
        file="backfill_assets/query/expressions.py",
        old='    return found[0].name if found and not found[1] else ""',
        new='    return found[0].name if found else ""',
        tests=("tests/query/test_rowwise.py",),
    ),
    Mutation(
        name="columns that were added to an order count as named by the query",
        file=WINDOWS,
        old="    used = _without(tokens, [last for last in ends.values() if last is not None])",
        new="    used = tokens",
        tests=(COMPLETED,),
    ),
    Mutation(
        name="more columns in an order change which rows a frame has",
        file=WINDOWS,
        old='    if window.function in _OF_FRAMES and not frame.startswith("rows"):',
        new="    if not window:",
        tests=(QUERY, COMPLETED),
    ),
    Mutation(
        name="a window that is named by another one is not found",
        file=WINDOWS,
        old='        name = named[name].args["alias"].name\n    found',
        new="        break\n    found",
        tests=(COMPLETED,),
    ),
    Mutation(
        name="columns by which tables are joined are the same where they are equal",
        file=WINDOWS,
        old="and not (seen and _merges(select)):",
        new="and seen is not None:",
        tests=(COMPLETED,),
    ),
    Mutation(
        name="names that only the parser gives are taken for columns",
        file=ROWS,
        old="        return _INVENTED.fullmatch(name) is not None and name not in self._named",
        new="        return not name",
        tests=(QUERY,),
    ),
    Mutation(
        name="a column called all orders by all columns",
        file=TIES,
        old='    return not any(each.name.lower() == "all" for each in (*of_result, *of_rows))',
        new="    return True",
        tests=(COMPLETED,),
    ),
    Mutation(
        name="columns of one name are found only when the first rows are computed",
        file=TEXT,
        old="            if name.lower() in seen:",
        new="            if not seen:",
        tests=(PLACES,),
    ),
    Mutation(
        name="columns without a name are found only when the first rows are computed",
        file=TEXT,
        old="not gives_several(item) and not isinstance(value, _NAMED):",
        new="False:",
        tests=(PLACES,),
    ),
    Mutation(
        name="sizes of set operations are not compared with the text",
        file=TEXT,
        old="    if None not in sizes and sizes[0] != sizes[1] and",
        new="    if None in sizes and",
        tests=(PLACES,),
    ),
    Mutation(
        name="the last number of GROUP BY may be one too large",
        file=TEXT,
        old="not 1 <= int(each.this) <= size and",
        new="not 1 <= int(each.this) <= size + 3 and",
        tests=(PLACES,),
    ),
    Mutation(
        name="a text of the clock is found only when the first rows are computed",
        file=TEXT,
        old="        if reads_clock(node, lambda _: True):",
        new="        if not node:",
        tests=(PLACES,),
    ),
)
