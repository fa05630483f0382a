"""Queries of which a view holds the first rows: `ORDER BY … LIMIT n` at the end.

Of what such a view does not hold it is known that it comes no earlier than its last row. So the view may follow changes by
the rule of the query before `ORDER BY`, as long as enough rows up to that one are left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import Token, TokenType, exp

from backfill_assets.query.ordered_by import Result
from backfill_assets.query.parsing import items_of, parse, tokenize
from backfill_assets.query.ties import end_of_order

__all__ = ["MOST_ROWS", "By", "Ending", "copies_of_first", "ending"]

MOST_ROWS = 10_000
"""Of more rows than this no view follows changes in this way: those that it holds are read into the run's process."""

_OPENS = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSES = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})


class By(NamedTuple):
    """A column of the result by which rows are ordered, by its place from 0."""

    column: int
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Ending:
    """The `query` before `ORDER BY`, how many `rows` of it are wanted, and `by` which columns they are the first."""

    query: str
    rows: int
    by: tuple[By, ...]


def ending(query: str, tokens: Sequence[Token], root: exp.Expr, columns: Sequence[str]) -> Ending | None:
    """Where a query ends with `ORDER BY … LIMIT n`, of no more than `MOST_ROWS` rows and by `columns` of its result: what it
    is without that. Its order is to be total (`ties.completed`).

    Example:
        >>> text = "SELECT a, b FROM t ORDER BY b DESC, 1, 2 LIMIT 3"
        >>> found = ending(text, tokenize(text), parse(text, tokenize(text)), ["a", "b"])
        >>> found.query, found.rows, [(each.column, each.descending) for each in found.by]
        ('SELECT a, b FROM t', 3, [(1, True), (0, False)])
    """
    rows, order = _rows(root), root.args.get("order")
    if rows is None or order is None or not isinstance(root, exp.Query):
        return None
    start = _order_by(tokens)
    if start is None or any(isinstance(each, exp.Aliases) for each in root.selects):
        return None
    result = Result.of(tokens, root, columns)
    terms = [_without_direction(each) for each in items_of(tokens[start + 1 : end_of_order(tokens, start) + 1])]
    found = [result.place(each.this, term) for each, term in zip(order.expressions, terms, strict=True)]
    if None in found:
        return None
    text = query[: tokens[start].start].rstrip()
    # What else stands there, such as OFFSET, leaves a difference.
    bare = root.copy()
    bare.set("order", None)
    bare.set("limit", None)
    if parse(text, tokenize(text)) != bare:
        return None
    by: dict[int, By] = {}
    for at, each in zip(found, order.expressions, strict=True):
        if at is not None:
            by.setdefault(at, By(at, bool(each.args.get("desc")), bool(each.args.get("nulls_first"))))
    return Ending(text, rows, tuple(by.values()))


def copies_of_first(net: Sequence[int], held: Sequence[int], *, of_view: int, rows: int) -> list[int] | None:
    """How many copies of rows are the first ones after changes; None where too few are known.

    Args:
        net: How many copies there are of different rows after the changes, in their order; of rows that a view does not hold,
            how many more or fewer than there were. More than twice as many of them as are wanted need not be given.
        held: How many copies of each the view holds.
        of_view: How many rows it holds, all together.
        rows: How many are wanted. If it holds fewer, it holds all that there were.

    Example:
        >>> copies_of_first([1, 0, 2, 5], [0, 1, 1, 0], of_view=2, rows=2)
        [1, 0, 1, 0]
        >>> copies_of_first([0, 1, 9], [1, 1, 0], of_view=2, rows=2) is None
        True
    """
    found, left, seen = list[int](), rows, 0
    for many, of_held in zip(net, held, strict=True):
        is_known = of_view < rows or seen < of_view
        seen += of_held
        found.append(min(max(many, 0), left) if is_known else 0)
        left -= found[-1]
    return found if left == 0 or of_view < rows else None


def _rows(root: exp.Expr) -> int | None:
    """The number of a LIMIT, if it is one."""
    limit = root.args.get("limit")
    number = limit.expression if isinstance(limit, exp.Limit) else None
    if not isinstance(number, exp.Literal) or number.is_string or not number.name.isdecimal():
        return None
    rows = int(number.name)
    return rows if 1 <= rows <= MOST_ROWS else None


def _without_direction(term: Sequence[Token]) -> Sequence[Token]:
    """A term of ORDER BY without ASC or DESC, and NULLS FIRST or LAST."""
    words = [token.text.lower() for token in term]
    if len(words) > 2 and words[-2] == "nulls" and words[-1] in {"first", "last"}:
        return _without_direction(term[:-2])
    return term[:-1] if len(words) > 1 and words[-1] in {"asc", "desc"} and words[-2] != "." else term


def _order_by(tokens: Sequence[Token]) -> int | None:
    """The last ORDER BY outside of all brackets."""
    depth, found = 0, None
    for at, token in enumerate(tokens):
        depth += (token.token_type in _OPENS) - (token.token_type in _CLOSES)
        if depth == 0 and token.token_type == TokenType.ORDER_BY:
            found = at
    return found
