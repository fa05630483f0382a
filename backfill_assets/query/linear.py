"""Which places of a query may be bound to a table's changes alone: those in which it is linear.

A query is linear in an occurrence if its result over two sets of rows, put there one after the other, is its result over
both, and nothing over nothing: inner joins are in each of their sides, outer, semi and anti joins in the side that is kept.
What the query gives for the changed rows is then how its result changes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import Token, TokenType, exp

from backfill_assets.query.grouping import aggregates_in
from backfill_assets.query.occurrences import Occurrence

__all__ = ["NOWHERE", "Linearity", "linearity"]

_COMPARES_ROWS: Final = frozenset({
    TokenType.DISTINCT,
    TokenType.EXCEPT,
    TokenType.FETCH,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.INTERSECT,
    TokenType.LIMIT,
    TokenType.OFFSET,
    TokenType.OVER,
    TokenType.PIVOT,
    TokenType.QUALIFY,
    TokenType.UNPIVOT,
    TokenType.WITH,
})
"""Words after which rows are looked at together; `EXCEPT` of `*` is among them, which is no harm."""


@dataclass(frozen=True)
class Linearity:
    """The numbers of the occurrences in which a query is `linear`, and in which of its `parts` under UNION ALL each lies.

    Where an occurrence is bound to changes, all those of other parts are bound to nothing: they would give all their rows.
    """

    linear: frozenset[int] = frozenset()
    parts: tuple[int, ...] = ()


NOWHERE: Final = Linearity()


def linearity(root: exp.Expr, tokens: Sequence[Token], found: Sequence[Occurrence]) -> Linearity:
    """Where a query is linear; nowhere if that is not plain to see.

    Example:
        >>> from backfill_assets.query.occurrences import occurrences
        >>> from backfill_assets.query.parsing import parse, tokenize
        >>> text = "SELECT a.x, b.y FROM a LEFT JOIN b ON a.x = b.x UNION ALL SELECT x, y FROM b"
        >>> tokens = tokenize(text)
        >>> root = parse(text, tokens)
        >>> linearity(root, tokens, occurrences(root, ["a", "b"]))
        Linearity(linear=frozenset({0, 2}), parts=(0, 0, 1))
    """
    if any(token.token_type in _COMPARES_ROWS for token in tokens) or any(aggregates_in(tuple(tokens))):
        return NOWHERE
    selects = list(_parts(root))
    if not selects or not all(map(_is_plain, selects)):
        return NOWHERE
    part_of = {_start(table): number for number, select in enumerate(selects) for table in _tables(select)}
    places = {start for select in selects for start in _linear(select)}
    linear = frozenset(number for number, each in enumerate(found) if each.start in places)
    return Linearity(linear, tuple(part_of[each.start] for each in found))


def _parts(node: exp.Expr) -> Iterator[exp.Select]:
    """The SELECTs under UNION ALL and brackets; none of what is put together otherwise."""
    match node:
        case exp.Select():
            yield node
        case exp.Union() if not node.args.get("distinct"):
            yield from _parts(node.this)
            yield from _parts(node.expression)
        case exp.Subquery():
            yield from _parts(node.this)


def _tables(select: exp.Select) -> list[exp.Expr]:
    source = select.args.get("from_")
    return [*([source.this] if source is not None else []), *(join.this for join in select.args.get("joins") or [])]


def _is_plain(select: exp.Select) -> bool:
    """Whether a SELECT reads tables and nothing else, so that it gives no row where all of them are empty."""
    inner = any(node is not select for node in select.find_all(exp.Query))
    return not inner and bool(_tables(select)) and all(map(_is_table, _tables(select)))


def _linear(select: exp.Select) -> set[int]:
    """Where in the text the tables are named in which a SELECT is linear."""
    linear = {_start(select.args["from_"].this)}
    for join in select.args.get("joins") or []:
        linear = _joined(linear, join)
    return linear


def _is_table(node: exp.Expr) -> bool:
    return isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not node.args.get("joins")


def _start(table: exp.Expr) -> int:
    assert isinstance(table, exp.Table)
    return int(table.parts[0].meta["start"])


def _joined(linear: set[int], join: exp.Join) -> set[int]:
    """The tables in which a join is linear, after those in which what is joined is."""
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    right = {_start(join.this)}
    if side == "LEFT" or kind in {"SEMI", "ANTI"}:
        return linear
    if side == "RIGHT":
        return right
    return linear | right if not side and kind in {"", "INNER", "CROSS"} else set()
