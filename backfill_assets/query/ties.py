"""Makes orders total if the result depends on which of several equal rows comes first: LIMIT, row_number(), ROWS
frames.

All columns of its rows are added to the `ORDER BY` of a window (`window_orders`), and all columns of the result to that of a
`LIMIT`. Rows that are equal in all of these are interchangeable. The completed text is the query: users see it in `plan`, it
is computed, and proofs compare with it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import Token, TokenType, exp

from backfill_assets.query.nodes import all_of
from backfill_assets.query.refusals import not_total, place
from backfill_assets.query.row_columns import RowColumns
from backfill_assets.query.text_checks import gives_several
from backfill_assets.query.window_orders import (
    Edit,
    begins_query,
    inside_brackets,
    listed,
    makes_one_group,
    orders_of_windows,
)

__all__ = ["completed", "end_of_order"]

_LIMITS: Final = frozenset({TokenType.LIMIT, TokenType.OFFSET})
_OPENS: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSES: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})


def completed(query: str, tokens: Sequence[Token], root: exp.Expr, rows: RowColumns | None = None) -> str:
    """The query's text with total orders wherever it takes them. A text that is completed stays as it is. Without `rows`, the
    columns of its tables, so do orders that need them: those of `LIMIT` over `*`, and of windows in QUALIFY.

    Errors: `QueryError` where an order cannot be completed.

    Example:
        >>> from sqlglot import parse_one
        >>> from sqlglot.dialects.spark import Spark
        >>> text = "SELECT a, b FROM t ORDER BY a LIMIT 2"
        >>> completed(text, Spark.Tokenizer().tokenize(text), parse_one(text, read="spark"))
        'SELECT a, b FROM t ORDER BY a, 1, 2 LIMIT 2'
    """
    edits = {*orders_of_windows(query, tokens, root, rows), *_limits(tokens, root, rows)}
    text = query
    for start, end, more, added in sorted(edits, reverse=True):
        before = text[:start]
        if start < end or not _squeezed(before).endswith(_squeezed(more)):
            text = f"{_without(before, added)}{more}{text[end:]}"
    return text


def _limits(tokens: Sequence[Token], root: exp.Expr, rows: RowColumns | None) -> Iterator[Edit]:
    """What is added to each ORDER BY before a LIMIT."""
    queries = [node for node in all_of(root, exp.Query) if node.args.get("order")]
    for node in all_of(root, exp.Query):
        if _is_limited(node) and not node.args.get("order") and not _gives_one(node):
            clause = "LIMIT" if node.args.get("limit") else "OFFSET"
            where = place(node.args[clause.lower()])
            raise not_total(
                f"the query has {clause}{where} without ORDER BY", "say which rows come first: ORDER BY … LIMIT n"
            )
    windows = {
        at
        for index, token in enumerate(tokens)
        if token.token_type == TokenType.OVER
        for at in inside_brackets(tokens, index + 1)
    }
    found = [
        index
        for index, token in enumerate(tokens)
        if token.token_type == TokenType.ORDER_BY and index not in windows and not _within(tokens, index)
    ]
    if len(queries) != len(found) and any(map(_is_limited, queries)):
        raise not_total(
            "the query's ORDER BY clauses cannot be distinguished", "write windows after OVER, not in a WINDOW clause"
        )
    for node, start in zip(sorted(queries, key=_before_order), found, strict=False):
        if _is_limited(node) and not _is_by_all(node, rows):
            end = tokens[end_of_order(tokens, start)].end + 1
            columns = _columns(node, rows)
            plain = "".join(f", {at}" for at, _ in enumerate(columns, 1))
            yield Edit(end, end, "".join(f", {each}" for each in columns), plain)


def _is_by_all(node: exp.Expr, rows: RowColumns | None) -> bool:
    """Whether a result is ordered by all its columns: by ALL, where that is not the name of a column."""
    if not any(isinstance(each.this, exp.Var) for each in node.args["order"].expressions):
        return False
    of_result = rows.given(node) if rows is not None and isinstance(node, exp.Query) else ()
    of_rows = rows.seen(node) if rows is not None and isinstance(node, exp.Select) else ()
    return not any(each.name.lower() == "all" for each in (*of_result, *of_rows))


def _is_limited(node: exp.Expr) -> bool:
    return bool(node.args.get("limit") or node.args.get("offset"))


def _gives_one(node: exp.Expr) -> bool:
    """Whether a query without GROUP BY gives one row, or is only asked for whether there is one, before LIMIT."""
    limit = node.args.get("limit")
    is_asked = isinstance(node.parent, exp.Exists) and not node.args.get("offset")
    if is_asked and limit is not None and isinstance(limit.expression, exp.Literal) and limit.expression.this != "0":
        return True
    return isinstance(node, exp.Select) and not node.args.get("group") and makes_one_group(node)


def _before_order(node: exp.Expr) -> tuple[int, int]:
    """The last expression in the text before a query's ORDER BY; of queries that end at the same position, the inner
    one first."""
    own = {
        id(each)
        for name in ("order", "limit", "offset")
        for part in listed(node.args.get(name))
        for each in part.walk()
    }
    places = [int(each.meta["start"]) for each in node.walk() if id(each) not in own and "start" in each.meta]
    return max(places, default=-1), -node.depth


def _columns(node: exp.Expr, rows: RowColumns | None) -> list[str]:
    """What orders a result by all columns, as text: their numbers, or `in_order`; nothing if it waits for `rows`."""
    assert isinstance(node, exp.Query)
    has_star = any(each.is_star for each in node.selects)
    lists = [select.expressions for select in all_of(node, exp.Select)] if has_star else [node.selects]
    if any(gives_several(each) for several in lists for each in several):
        raise not_total(
            "the query has LIMIT over a function that may return several columns", "name its columns: AS (a, b)"
        )
    given = () if rows is None else rows.given(node)
    if rows is not None and has_star and not given:
        raise not_total(
            "the query has LIMIT over *, of columns that only Spark can tell", "name the columns one by one"
        )
    many = 0 if has_star else sum(len(each.aliases) if isinstance(each, exp.Aliases) else 1 for each in node.selects)
    odd = {at: each.in_order for at, each in enumerate(given, 1) if each.is_unordered}
    return [odd.get(at, str(at)) for at in range(1, max(many, len(given)) + 1)]


def _within(tokens: Sequence[Token], index: int) -> bool:
    """Whether an ORDER BY belongs to WITHIN GROUP, or to a named window."""
    depth = 0
    for at in range(index - 1, -1, -1):
        depth += tokens[at].token_type in _CLOSES
        if tokens[at].token_type in _OPENS:
            if depth == 0:
                before = tokens[at - 1].text.lower() if at else ""
                return before in {"group", "within group", "as"} and not begins_query(tokens, at + 1)
            depth -= 1
    return False


def end_of_order(tokens: Sequence[Token], start: int) -> int:
    """The last token of an ORDER BY: before LIMIT, OFFSET, WINDOW, a closing bracket or the end."""
    depth = 0
    for at in range(start + 1, len(tokens)):
        kind = tokens[at].token_type
        if depth == 0 and (kind in _LIMITS or kind in _CLOSES or _names_window(tokens, at)):
            return at - 1
        depth += (kind in _OPENS) - (kind in _CLOSES)
    return len(tokens) - 1


def _names_window(tokens: Sequence[Token], at: int) -> bool:
    """Whether a WINDOW clause begins at a token."""
    is_named_so = at + 2 < len(tokens) and tokens[at + 2].token_type == TokenType.ALIAS
    return tokens[at].token_type == TokenType.WINDOW and is_named_so


def _without(text: str, end: str) -> str:
    """The text without this end, whatever its spaces and case; as it is, if it does not end so."""
    left = text
    for each in reversed(_squeezed(end)):
        left = left.rstrip()
        if left[-1:].lower() != each:
            return text
        left = left[:-1]
    return left


def _squeezed(text: str) -> str:
    return "".join(text.lower().split())
