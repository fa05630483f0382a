"""Faults in reading pipelines, and other words that Spark alone has."""

from tests.mutations.mutation import Mutation

__all__ = ["PIPES"]

PIPED = "backfill_assets/query/pipes.py"
STANDARD = "backfill_assets/query/standard.py"
TEXTS = "tests/query/test_standard.py::test_words_of_spark_are_put_in_standard_words"
LOST = "tests/query/test_standard.py::test_a_column_is_not_named_by_a_table_that_what_comes_before_it_is_not_of"
REFUSED = "tests/query/test_standard.py::test_pipes_without_a_meaning_are_refused"

PIPES: tuple[Mutation, ...] = (
    Mutation(
        name="a text that is no name is one",
        file=STANDARD,
        old=' if _PATH.fullmatch(text) else ""',
        new="",
        tests=(TEXTS,),
    ),
    Mutation(
        name="a path of names is one name",
        file=STANDARD,
        old="yield _Edit(token.start, closing.end + 1, name)",
        new='yield _Edit(token.start, closing.end + 1, f"`{text.text}`")',
        tests=(TEXTS,),
    ),
    Mutation(
        name="a condition takes the place of the one before it in a pipeline",
        file=PIPED,
        old="conditions=(*found.conditions, condition)",
        new="conditions=(condition,)",
        tests=(TEXTS,),
    ),
    Mutation(
        name="a condition with OR is not kept together in a pipeline",
        file=PIPED,
        old="""f"({sliced(query, operator[1:])})\"""",
        new="sliced(query, operator[1:])",
        tests=(TEXTS,),
    ),
    Mutation(
        name="conditions come before the columns that they name in a pipeline",
        file=PIPED,
        old="has_place = self.last < clause or self.last == clause == _WHERE",
        new="has_place = self.last < clause or clause == _WHERE",
        tests=(TEXTS,),
    ),
    Mutation(
        name="an order names columns that a pipeline has left behind",
        file=PIPED,
        old="""written.items == "*" and written.last < _ORDER""",
        new="""written.last < _ORDER""",
        tests=(TEXTS,),
    ),
    Mutation(
        name="rows are counted before others are left out by OFFSET in a pipeline",
        file=PIPED,
        old="return replace(written.before(_OFFSET), offset=text, last=_OFFSET)",
        new="return replace(written, offset=text, last=_OFFSET)",
        tests=(REFUSED,),
    ),
    Mutation(
        name="a join is with the last of several tables of a pipeline",
        file=PIPED,
        old="has_place = self.last == _SOURCE and self.is_plain",
        new="has_place = self.last == _SOURCE",
        tests=(TEXTS,),
    ),
    Mutation(
        name="a pivot is of the last of several tables of a pipeline",
        file=PIPED,
        old='found = written.before(_SOURCE) if written.alias else written.read_by("")',
        new="found = written.before(_SOURCE)",
        tests=(TEXTS,),
    ),
    Mutation(
        name="values come before groups in a pipeline",
        file=PIPED,
        old="""(f"{value} AS {name}" if name else value for value, name in groups), *values]""",
        new="""values, *(f"{value} AS {name}" if name else value for value, name in groups)]""",
        tests=(TEXTS,),
    ),
    Mutation(
        name="the name of a group is a part of its expression in a pipeline",
        file=PIPED,
        old="""{', '.join(value for value, _ in groups)}""",
        new="""{', '.join(' '.join(filter(None, each)) for each in groups)}""",
        tests=(TEXTS,),
    ),
    Mutation(
        name="a number in GROUP BY of a pipeline names what comes out",
        file=PIPED,
        old="if core[0] == TokenType.NUMBER and len(core) - bool(name) - (TokenType.ALIAS in core) == 1:",
        new="if False:",
        tests=(REFUSED,),
    ),
    Mutation(
        name="what a star leaves out is a set operation in a pipeline",
        file=PIPED,
        old=" and tokens[at - 1].token_type != TokenType.STAR",
        new="",
        tests=(TEXTS,),
    ),
    Mutation(
        name="an INTERSECT comes after a UNION before it in a pipeline",
        file=PIPED,
        old="if len(_cut(operator[1:], SET_OPERATIONS)) > 1:",
        new="if False:",
        tests=(REFUSED,),
    ),
    Mutation(
        name="WITH is a part of what a pipeline reads",
        file=PIPED,
        old="first += _size_of_with(tokens[first:last])",
        new="first += 0",
        tests=(TEXTS,),
    ),
    Mutation(
        name="a pivot after a join is taken for one of its last table",
        file="backfill_assets/query/text_checks.py",
        old="    if isinstance(pivot.parent, exp.Join):",
        new="    if isinstance(pivot.parent, exp.From):",
        tests=("tests/declare/test_refused_places.py",),
    ),
    Mutation(
        name="the argument of a function is a query for a table",
        file=STANDARD,
        old="return before[-1] in _BEFORE_QUERIES and not (before[-1] == TokenType.L_PAREN and before[0] in _NAMES)",
        new="return before[-1] in _BEFORE_QUERIES",
        tests=(TEXTS,),
    ),
    Mutation(
        name="a number in brackets in GROUP BY of a pipeline names what comes out",
        file=PIPED,
        old="for each in item if each.token_type not in _BRACKETS]",
        new="for each in item]",
        tests=("tests/query/test_standard.py::test_a_number_in_brackets_is_a_place_too",),
    ),
    Mutation(
        name="a name alone in a condition of a pipeline is an alias to Spark",
        file=PIPED,
        old="""        condition = f"({condition})"  #""",
        new="""        pass  #""",
        tests=(TEXTS,),
    ),
    Mutation(
        name="a name alone in brackets after WHERE is read as a condition",
        file="backfill_assets/query/text_checks.py",
        old="        _check_brackets(select)\n",
        new="",
        tests=("tests/query/test_standard.py::test_a_name_alone_in_brackets_is_refused_where_spark_reads_an_alias",),
    ),
    Mutation(
        name="columns of a pipeline are named by tables whatever is between",
        file=PIPED,
        old="                check_names(query, each, written.lost)\n    for",
        new="                pass\n    for",
        tests=(LOST,),
    ),
    Mutation(
        name="the end of a pipeline names columns by tables whatever is before",
        file=PIPED,
        old="    for each in end:\n        check_names(query, each, written.lost)\n",
        new="",
        tests=(LOST,),
    ),
    Mutation(
        name="what is computed keeps the name of the table in a pipeline",
        file=PIPED,
        old="self.alias if self.as_read and not alias else",
        new="self.alias if not alias else",
        tests=(LOST,),
    ),
    Mutation(
        name="columns of a set operation keep their table in a pipeline",
        file=PIPED,
        old="    lost = written.lost | written.names\n",
        new="    lost = written.lost\n",
        tests=(LOST,),
    ),
    Mutation(
        name="columns of the query before a pipeline keep their table",
        file=PIPED,
        old="""lost=names_of(f"({text}) AS t"))""",
        new="""lost=frozenset())""",
        tests=(LOST,),
    ),
    Mutation(
        name="a joined table is not one by which columns of a pipeline are named",
        file=PIPED,
        old='        names = found.names | names_of(f"`|>` {joined}")\n',
        new="        names = found.names\n",
        tests=(LOST,),
    ),
    Mutation(
        name="a subquery with another table hides that of a pipeline",
        file="backfill_assets/query/pipe_names.py",
        old="if not any(name in _read_inside(query, operator, start) for start in opened):",
        new="if not opened:",
        tests=(LOST,),
    ),
    Mutation(
        name="a limit within an order of a pipeline is one with what follows",
        file=PIPED,
        old="        if len(_cut(operator, _BOUNDS)) > 1:",
        new="        if False:",
        tests=("tests/query/test_standard.py::test_an_order_and_a_limit_are_two_operators_where_others_follow",),
    ),
    Mutation(
        name="not more than is less than",
        file=STANDARD,
        old="""{TokenType.GT: "<=",""",
        new="""{TokenType.GT: "<",""",
        tests=(TEXTS,),
    ),
)
