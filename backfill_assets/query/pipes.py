"""Pipelines of Spark SQL (`FROM t |> WHERE … |> SELECT …`) as subqueries, so that a query is the same in whichever way it is
written.

Through operators Spark keeps which table a column is from (`t.a`); a subquery does not. Where such a name would mean another
column, or one of a query around it, it is refused (`pipe_names`).

A pipeline is a query, then operators, each over the result of what is before it. As few SELECTs as possible are made of
them: an operator is a clause of the SELECT before it, where that has none yet which comes later. The texts of the operators
are kept. Source: "SQL Pipe Syntax", the documentation of Apache Spark.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import Token, TokenType, exp

from backfill_assets.errors import QueryError
from backfill_assets.query.parsing import items_of, parse, tokenize, with_depth
from backfill_assets.query.pipe_names import check_names, names_of
from backfill_assets.query.refusals import place, refusal
from backfill_assets.query.spelling import backquoted, sliced

__all__ = ["SET_OPERATIONS", "without_pipe"]

SET_OPERATIONS: Final = frozenset({TokenType.EXCEPT, TokenType.INTERSECT, TokenType.UNION})
_BOUNDS: Final = frozenset({TokenType.LIMIT, TokenType.OFFSET})
_ORDERS: Final = frozenset({TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.ORDER_BY, TokenType.SORT_BY})
_JOINS: Final = frozenset({
    *(TokenType.ANTI, TokenType.CROSS, TokenType.FULL, TokenType.INNER, TokenType.JOIN, TokenType.LEFT),
    *(TokenType.NATURAL, TokenType.RIGHT, TokenType.SEMI),
})
_BRACKETS: Final = frozenset({TokenType.L_PAREN, TokenType.R_PAREN})
_WORD_AND_NAME: Final = 2
_NAME: Final = re.compile(r"[\w.`]+")
_AFTER_ITEMS: Final = frozenset({TokenType.GROUP_BY, TokenType.WINDOW})
"""What may follow the expressions of an operator."""
_SOURCE, _WHERE, _SELECT, _ORDER, _OFFSET, _LIMIT = range(6)
"""The clauses of a SELECT, in the order in which they are computed."""


@dataclass(frozen=True)
class _Query:
    """A query that is being written, up to its clause `last`. It reads `source`, whose columns may be named with `alias`; to
    one that is `plain` a join can be added. A set operation is in `source` as it is, and `whole`. Columns can be named by
    their tables' `names`, but no more by those that are `lost`; and by the alias in what reads it if they are `as_read`."""

    source: str
    last: int = _SOURCE
    items: str = "*"
    conditions: tuple[str, ...] = ()
    group: str = ""
    order: str = ""
    limit: str = ""
    offset: str = ""
    alias: str = ""
    is_plain: bool = True
    is_whole: bool = False
    as_read: bool = True
    names: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        first = self.source if self.is_whole else f"SELECT {self.items} FROM {self.source}"
        where = f"WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        return " ".join(filter(None, (first, where, self.group, self.order, self.limit, self.offset)))

    def before(self, clause: int) -> "_Query":
        """A query to which the clause can be added: itself, or one that reads what it gives."""
        has_place = self.last < clause or self.last == clause == _WHERE
        if clause == _SOURCE:
            has_place = self.last == _SOURCE and self.is_plain
        return self if has_place and (clause > _SELECT or not self.is_whole) else self.read_by("")

    def read_by(self, alias: str) -> "_Query":
        """The query that reads what it gives, under a name."""
        kept = self.alias if self.as_read and not alias else ""
        name = alias or (backquoted(kept) if kept else "")
        is_table = self.last == _SOURCE and _NAME.fullmatch(self.source)
        read = self.source if is_table else f"({self.text})"
        names = frozenset({_unquoted(name).lower()} if name else ())
        return _Query(
            f"{read} AS {name}" if name else read,
            alias=_unquoted(alias) or kept,
            names=names,
            lost=(self.lost | self.names) - names,
        )


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def without_pipe(query: str, tokens: Sequence[Token]) -> str | None:
    """The query with SELECT in the place of one of its pipelines, which has no other within it; None if it has none.

    Errors: `QueryError` for an operator that Spark does not have, or that cannot be written otherwise.

    Example:
        >>> text = "FROM t |> EXTEND a + b AS c |> WHERE c > 3 |> AGGREGATE count(*) AS n GROUP BY a"
        >>> without_pipe(text, tokenize(text))
        'SELECT a, count(*) AS n FROM (SELECT *, a + b AS c FROM t) AS `t` WHERE (c > 3) GROUP BY a'
    """
    depths = [depth for depth, _ in with_depth(tokens)]
    pipes = [at for at, each in enumerate(tokens) if each.token_type == TokenType.PIPE_GT]
    if not pipes:
        return None
    at = max(pipes, key=depths.__getitem__)
    first = next((each + 1 for each in range(at, -1, -1) if depths[each] < depths[at]), 0)
    last = next((each for each in range(at, len(tokens)) if depths[each] < depths[at]), len(tokens))
    first += _size_of_with(tokens[first:last])
    text = _as_select(query, tokens[first:last])
    return query[: tokens[first].start] + text + query[tokens[last - 1].end + 1 :]


def _size_of_with(tokens: Sequence[Token]) -> int:
    """The number of tokens of the WITH with which a query begins."""
    if tokens[0].token_type != TokenType.WITH:
        return 0
    level = list(with_depth(tokens))
    for at, (depth, token) in enumerate(level[:-1]):
        is_end = depth == 0 and token.token_type == TokenType.R_PAREN
        # After the names of a definition's columns its query follows, and after that another definition.
        if is_end and tokens[at + 1].token_type not in {TokenType.ALIAS, TokenType.COMMA}:
            return at + 1
    return 0


def _as_select(query: str, tokens: Sequence[Token]) -> str:
    """The text of one pipeline as SELECT."""
    parts: list[list[Token]] = [[]]
    for depth, token in with_depth(tokens):
        if depth == 0 and token.token_type == TokenType.PIPE_GT:
            parts.append([])
        else:
            parts[-1].append(token)
    if not all(parts):
        raise refusal("SYNTAX", f"the query has nothing on one side of |>{place(tokens[0])}", hint="leave that |> out")
    last, *end = _cut(parts[-1], _ORDERS | _BOUNDS)
    written = _begun(query, parts[0])
    for operator in (*parts[1:-1], last):
        # A set operation without a pipe before it is over all that comes before, too.
        for each in _cut(operator, SET_OPERATIONS):
            written = _applied(query, written, each)
            if each[0].token_type not in SET_OPERATIONS:
                check_names(query, each, written.lost)
    for each in end:
        check_names(query, each, written.lost)
    return " ".join([written.text, *(sliced(query, each) for each in end)])


def _cut(tokens: list[Token], kinds: frozenset[TokenType]) -> list[list[Token]]:
    """The tokens before the first one of these kinds that is in no brackets, and those from there on, if there are any. The
    EXCEPT that follows a star leaves columns out."""
    for at, (depth, token) in enumerate(with_depth(tokens)):
        if at and depth == 0 and token.token_type in kinds and tokens[at - 1].token_type != TokenType.STAR:
            return [tokens[:at], tokens[at:]]
    return [tokens]


def _begun(query: str, head: list[Token]) -> _Query:
    """The query with which a pipeline begins."""
    text = sliced(query, head)
    is_one = len(_cut(head, SET_OPERATIONS | {TokenType.SELECT})) == 1
    if head[0].token_type == TokenType.VALUES and is_one:
        return _Query(text, names=names_of(text))
    hidden = _Query(f"({text})", lost=names_of(f"({text}) AS t"))
    if head[0].token_type not in {TokenType.FROM, TokenType.TABLE} or not is_one or len(head) == 1:
        return hidden
    source = sliced(query, head[1:])
    try:
        root = parse(f"SELECT * FROM {source}", tokenize(f"SELECT * FROM {source}"))
    except QueryError:
        return hidden  # what is wrong in it is told of the whole text
    clauses = {name for name, value in root.args.items() if value} - {"expressions", "from_", "kind"}
    if not clauses <= {"joins", "laterals"}:
        return hidden
    read = root.args["from_"].this
    is_plain = not clauses and not any(read.args.get(name) for name in ("joins", "laterals", "pivots"))
    alias = read.alias_or_name if is_plain else ""
    return _Query(source, alias=alias, is_plain=is_plain, names=names_of(source))


def _applied(query: str, written: _Query, operator: list[Token]) -> _Query:
    """The query after one operator."""
    first = operator[0]
    if first.token_type in SET_OPERATIONS:
        return _united(query, written, operator)
    if first.token_type in _JOINS:
        found, joined = written.before(_SOURCE), sliced(query, operator)
        names = found.names | names_of(f"`|>` {joined}")
        return replace(found, source=f"{found.source} {joined}", alias="", names=names)
    if first.token_type in _ORDERS:
        if len(_cut(operator, _BOUNDS)) > 1:
            hint = "write |> before LIMIT and OFFSET"
            raise refusal(
                "SYNTAX", f"the query has a limit without |> in an ORDER BY{place(first)} after |>", hint=hint
            )
        # What orders the result cannot name columns that it does not have.
        found = (
            written if written.items == "*" and written.last < _ORDER and not written.is_whole else written.read_by("")
        )
        return replace(found, order=sliced(query, operator), last=_ORDER)
    if first.token_type in _BOUNDS:
        return _bounded(query, written, operator)
    if first.token_type == TokenType.TABLE_SAMPLE:
        raise refusal("NOT_DETERMINISTIC", f"the query has TABLESAMPLE{place(first)}")
    if first.token_type == TokenType.SET:
        # The columns keep their places, which the text does not tell.
        hint = "name the columns in their order: |> SELECT a, b + 1 AS b"
        raise refusal("UNSUPPORTED", f"the query has SET{place(first)} after |>", hint=hint)
    apply = _BY_WORD.get(first.text.lower())
    if apply is None or len(operator) == 1:
        words = ", ".join(sorted(each.upper() for each in _BY_WORD))
        raise refusal(
            "SYNTAX",
            f"the query has {first.text!r}{place(first)} after |>, which is no operator, or one of nothing",
            hint=f"operators are joins, set operations, ORDER BY, LIMIT, {words}",
        )
    return apply(query, written, operator)


def _united(query: str, written: _Query, operator: list[Token]) -> _Query:
    """A set operation. Which of several comes first is told by brackets, or pipes."""
    if len(_cut(operator[1:], SET_OPERATIONS)) > 1:
        raise refusal(
            "SYNTAX",
            f"several set operations follow each other{place(operator[0])} without |> between them",
            hint="write |> before each of them",
        )
    at = next((at for at, each in enumerate(operator) if each.token_type == TokenType.FROM), len(operator))
    is_bare = len(_cut(operator, frozenset({TokenType.SELECT, TokenType.L_PAREN}))) == 1 and at < len(operator)
    right = sliced(query, operator)
    if is_bare:
        right = f"{sliced(query, operator[:at])} SELECT * {sliced(query, operator[at:])}"
    lost = written.lost | written.names
    return _Query(f"({written.text}) {right}", last=_SELECT, is_whole=True, lost=lost)


def _bounded(query: str, written: _Query, operator: list[Token]) -> _Query:
    """LIMIT and OFFSET: rows are left out before others are counted."""
    text = sliced(query, operator)
    if operator[0].token_type == TokenType.OFFSET:
        return replace(written.before(_OFFSET), offset=text, last=_OFFSET)
    limit, *offset = _cut(operator, frozenset({TokenType.OFFSET}))
    found = written.before(_OFFSET if offset else _LIMIT)
    return replace(
        found, limit=sliced(query, limit), offset=sliced(query, offset[0]) if offset else found.offset, last=_LIMIT
    )


def _where(query: str, written: _Query, operator: list[Token]) -> _Query:
    found, condition = written.before(_WHERE), f"({sliced(query, operator[1:])})"
    if sum(each.token_type not in _BRACKETS for each in operator) == _WORD_AND_NAME:
        condition = f"({condition})"  # Spark reads FROM t WHERE (a) as a table with the alias WHERE, of one column
    return replace(found, conditions=(*found.conditions, condition), last=_WHERE)


def _select(query: str, written: _Query, operator: list[Token]) -> _Query:
    items, *more = _cut(operator[1:], _AFTER_ITEMS)
    group = sliced(query, more[0]) if more else ""
    return replace(written.before(_SELECT), items=sliced(query, items), group=group, last=_SELECT, as_read=False)


def _extend(query: str, written: _Query, operator: list[Token]) -> _Query:
    found = _select(query, written, operator)
    return replace(found, items=f"*, {found.items}")


def _drop(query: str, written: _Query, operator: list[Token]) -> _Query:
    return replace(written.before(_SELECT), items=f"* EXCEPT ({sliced(query, operator[1:])})", last=_SELECT)


def _as(query: str, written: _Query, operator: list[Token]) -> _Query:
    return written.read_by(sliced(query, operator[1:]))


def _aggregate(query: str, written: _Query, operator: list[Token]) -> _Query:
    """Groups come first in what it gives."""
    parts = _cut(operator, frozenset({TokenType.GROUP_BY}))
    values = [sliced(query, parts[0][1:])] if len(parts[0]) > 1 else []
    groups = [_divided(query, each) for each in items_of(parts[1][1:])] if len(parts) > 1 else []
    items = ", ".join([*(f"{value} AS {name}" if name else value for value, name in groups), *values])
    group = f"GROUP BY {', '.join(value for value, _ in groups)}" if groups else ""
    return replace(written.before(_SELECT), items=items, group=group, last=_SELECT, as_read=False)


def _divided(query: str, item: Sequence[Token]) -> tuple[str, str]:
    """A group's expression, and the name that is given to it, if there is one."""
    if not item:
        raise refusal("SYNTAX", "the query has a comma too many in GROUP BY after |>")
    value, name = _named(query, item)
    core = [each.token_type for each in item if each.token_type not in _BRACKETS]
    if core[0] == TokenType.NUMBER and len(core) - bool(name) - (TokenType.ALIAS in core) == 1:
        where = place(item[0])
        raise refusal("GROUP_POSITION", f"the query has GROUP BY {value}{where} after |>", hint="name the column")
    return value, name


def _named(query: str, item: Sequence[Token]) -> tuple[str, str]:
    text = sliced(query, item)
    try:
        root = parse(f"SELECT {text}", tokenize(f"SELECT {text}"))
    except QueryError:
        return text, ""
    if not isinstance(root, exp.Select) or not isinstance(root.selects[0], exp.Alias):
        return text, ""
    before = item[:-2] if item[-2].token_type == TokenType.ALIAS else item[:-1]
    return sliced(query, before), sliced(query, item[-1:])


def _pivoted(query: str, written: _Query, operator: list[Token]) -> _Query:
    """A pivot is of all that comes before it, and not of the last of several tables."""
    found = written.before(_SOURCE) if written.alias else written.read_by("")
    made = sliced(query, operator)
    names = found.names | names_of(f"`|>` {made}")
    return replace(found, source=f"{found.source} {made}", alias="", is_plain=False, names=names)


_BY_WORD: Final[Mapping[str, Callable[[str, _Query, list[Token]], _Query]]] = {
    "aggregate": _aggregate,
    "as": _as,
    "drop": _drop,
    "extend": _extend,
    "pivot": _pivoted,
    "select": _select,
    "unpivot": _pivoted,
    "where": _where,
}
