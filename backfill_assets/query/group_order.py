"""What tells the groups of a SELECT apart, for the order of its windows: the expressions of GROUP BY, as the user wrote them.

A window in a SELECT with GROUP BY looks at groups, not at rows of tables, so `struct(*)` means nothing there. Two groups
always differ in one of these expressions.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from sqlglot import Token, TokenType, exp

from backfill_assets.errors import QueryError
from backfill_assets.query.nodes import all_of
from backfill_assets.query.parsing import items_of, parse, tokenize
from backfill_assets.query.partition import has_aggregates
from backfill_assets.query.refusals import refusal
from backfill_assets.query.resolved import has_grouping_sets

__all__ = ["order_of_groups"]

_OPENS: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSES: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_SET_OPERATIONS: Final = frozenset({TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT})
_AFTER_GROUPS: Final = frozenset({
    *(TokenType.HAVING, TokenType.QUALIFY, TokenType.WINDOW, TokenType.LIMIT, TokenType.OFFSET),
    *(TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY),
})


def order_of_groups(query: str, tokens: Sequence[Token], at: int, columns: Collection[str] | None = None) -> str:
    """What is added to the ORDER BY of a window, to which the token at `at` belongs, in a SELECT with GROUP BY.

    Args:
        query: The query.
        tokens: Its tokens.
        at: The place of one of the window's.
        columns: The names of the columns that the SELECT reads, in small letters; empty if only Spark can tell them. Without
            them nothing is added where a name in GROUP BY may be one of these, or of an expression in the SELECT list.

    Errors: `QueryError` where nothing is known to tell the groups apart.

    Example:
        >>> text = "SELECT date(d) AS day, row_number() OVER (ORDER BY count(*)) AS n FROM t GROUP BY day, 'x'"
        >>> order_of_groups(text, tokenize(text), 10)
        ", date(d), 'x'"
        >>> text = "SELECT 1 AS a, row_number() OVER (ORDER BY count(*)) AS n FROM t GROUP BY a"
        >>> [order_of_groups(text, tokenize(text), 8, columns) for columns in (None, {"b"}, {"a"})]
        ['', ', 1', ', a']
    """
    first = _select_around(tokens, at)
    by, last = _group_by(tokens, first)
    select = _parsed(query, tokens[first : last + 1])
    group = select.args["group"]
    if group.args.get("all"):
        raise _unknown("GROUP BY ALL does not say which columns they have", "name the columns in GROUP BY")
    if has_grouping_sets(group):
        raise _unknown(
            "those of different grouping sets may have the same columns",
            "number the rows of a subquery: SELECT …, row_number() OVER (…) AS n FROM (SELECT … GROUP BY ROLLUP (…))",
        )
    items = items_of(tokens[by + 1 : last + 1])
    if len(items) != len(group.expressions):
        raise _unknown("GROUP BY cannot be split at its commas", "write CAST(x AS type) for x::type")
    chosen = _Chosen(query, select, items_of(_selected(tokens, first)), columns)
    texts = [chosen.text(item, node) for item, node in zip(items, group.expressions, strict=True)]
    return "".join(f", {each}" for each in texts) if all(texts) else ""


class _Chosen:
    """The text of each group, whether GROUP BY has its expression, its name or its number in the SELECT list."""

    def __init__(
        self, query: str, select: exp.Select, items: Sequence[Sequence[Token]], columns: Collection[str] | None
    ) -> None:
        self.query = query
        self.select = select
        self.items = items
        self.columns = columns

    def text(self, item: Sequence[Token], node: exp.Expr) -> str:
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._numbered(node)
        named = [each for each in self.select.expressions if _is_name_of(node, each)]
        if not named or (self.columns and node.name.lower() in self.columns):
            return _written(self.query, item)
        is_sure = bool(self.columns) or _is_surely_meant(named[0].this, self.select.args["group"].expressions)
        if not is_sure and self.columns is None:
            return ""
        if len(named) > 1 or not is_sure:
            raise _unknown(
                f"{node.sql('spark')} in GROUP BY may be a column, or an expression of that name in the SELECT list",
                "write the expression itself in GROUP BY, or give it a name that no column has",
            )
        return self._expression(self.select.expressions.index(named[0]))

    def _numbered(self, node: exp.Literal) -> str:
        at = int(node.this) - 1 if node.this.isdecimal() else -1
        starred = any(each.is_star for each in self.select.expressions)
        if starred or not 0 <= at < len(self.select.expressions):
            raise _unknown(
                f"GROUP BY {node.sql('spark')} is no place in the SELECT list", "name the columns in GROUP BY"
            )
        return self._expression(at)

    def _expression(self, at: int) -> str:
        """The text of an expression of the SELECT list, without its name."""
        if len(self.items) != len(self.select.expressions):
            raise _not_located()
        item, node = self.items[at], self.select.expressions[at]
        if isinstance(node, exp.Alias):
            item = item[:-2] if item[-2].token_type == TokenType.ALIAS else item[:-1]
        return _written(self.query, item)


def _is_name_of(node: exp.Expr, selected: exp.Expr) -> bool:
    """Whether a group may be meant by the name that another expression has in the SELECT list."""
    is_name = isinstance(node, exp.Column) and len(node.parts) == 1
    if not is_name or not isinstance(selected, exp.Alias) or selected.alias.lower() != node.name.lower():
        return False
    if has_aggregates(selected.this) or selected.this.find(exp.Window):
        return False  # nothing is grouped by these
    return not (isinstance(selected.this, exp.Column) and selected.this.name.lower() == node.name.lower())


def _is_surely_meant(selected: exp.Expr, groups: Sequence[exp.Expr]) -> bool:
    """Whether a group's name can only mean an expression of the SELECT list.

    Spark takes it for a column if there is one of that name. But the SELECT list may have only what is grouped by, or made
    of that: if its expression takes a column that GROUP BY does not name, it is what is grouped by.
    """
    named = {name for each in groups for name in _names(each)}
    return any(named.isdisjoint(_names(column)) for column in all_of(selected, exp.Column))


def _names(node: exp.Expr) -> set[str]:
    return {each.name.lower() for each in all_of(node, exp.Identifier)}


def _select_around(tokens: Sequence[Token], at: int) -> int:
    """The SELECT that a token belongs to."""
    depth = 0
    for index in range(at - 1, -1, -1):
        kind = tokens[index].token_type
        if kind == TokenType.SELECT and depth == 0:
            return index
        depth = max(0, depth + (kind in _CLOSES) - (kind in _OPENS))
    raise _not_located()


def _group_by(tokens: Sequence[Token], first: int) -> tuple[int, int]:
    """Where the GROUP BY of a SELECT begins, and its last token."""
    by = None
    for index, kind in _own(tokens, first):
        if by is not None and kind in _AFTER_GROUPS:
            return by, index - 1
        if kind == TokenType.GROUP_BY:
            by = index
        last = index
    if by is None:
        raise _not_located()
    return by, last


def _own(tokens: Sequence[Token], first: int) -> Iterator[tuple[int, TokenType]]:
    """The tokens of a SELECT, to its end; those inside of brackets have the kind of the bracket."""
    depth = 0
    for index in range(first + 1, len(tokens)):
        kind = tokens[index].token_type
        depth -= kind in _CLOSES
        leaves_out = tokens[index - 1].token_type == TokenType.STAR  # `* EXCEPT (a)`
        if depth < 0 or (depth == 0 and kind in _SET_OPERATIONS and not leaves_out):
            return
        yield index, TokenType.L_PAREN if depth else kind
        depth += kind in _OPENS


def _selected(tokens: Sequence[Token], first: int) -> Sequence[Token]:
    """The SELECT list."""
    begin = first + 1 + (tokens[first + 1].token_type in {TokenType.ALL, TokenType.DISTINCT})
    ends = (index for index, kind in _own(tokens, first) if kind == TokenType.FROM and not _compares(tokens, index))
    return tokens[begin : next(ends, begin)]


def _compares(tokens: Sequence[Token], at: int) -> bool:
    """Whether a FROM is that of IS [NOT] DISTINCT FROM."""
    return tokens[at - 1].token_type == TokenType.DISTINCT


def _parsed(query: str, tokens: Sequence[Token]) -> exp.Select:
    """The SELECT alone, as sqlglot reads it."""
    text = _written(query, tokens)
    try:
        select = parse(text, tokenize(text))
    except QueryError:
        raise _not_located() from None
    if not isinstance(select, exp.Select) or not select.args.get("group"):
        raise _not_located()
    return select


def _written(query: str, tokens: Sequence[Token]) -> str:
    if not tokens:
        raise _not_located()
    return query[tokens[0].start : tokens[-1].end + 1]


def _not_located() -> QueryError:
    return _unknown("the SELECT and its GROUP BY are not found in the text", "put the groups into a subquery")


def _unknown(why: str, hint: str) -> QueryError:
    return refusal("ORDER_NOT_TOTAL", f"the order of groups in a window cannot be completed: {why}", hint=hint)
