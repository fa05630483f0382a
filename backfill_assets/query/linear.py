"""Which places of a query may be bound to a table's changes alone: those in which it is linear.

A query is linear in an occurrence if its result over the union of two sets of rows there is the union of its results,
and is empty for no rows: inner joins are linear in each of their sides; outer, semi and anti joins in the preserved
side. The query over the changed rows is then the change of its result.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import Token, exp

from backfill_assets.query.nodes import all_of
from backfill_assets.query.occurrences import Occurrence
from backfill_assets.query.partition import all_aggregates_known, has_aggregates
from backfill_assets.query.resolved import joins_of, sources_of, unwrapped

__all__ = ["NOWHERE", "Linearity", "linearity"]

_ROW_BY_ROW: Final = frozenset({
    "cluster",
    "distribute",
    "expressions",
    "from_",
    "joins",
    "laterals",
    "order",
    "sort",
    "where",
})
"""The clauses of a SELECT that look at rows one by one, or at none."""


@dataclass(frozen=True)
class Linearity:
    """The numbers of the occurrences in which a query is `linear`, and the part of UNION ALL in which each occurrence
    is.

    If an occurrence is bound to changes, all those of other parts are bound to no rows: otherwise these parts would
    return all their rows.
    """

    linear: frozenset[int] = frozenset()
    parts: tuple[int, ...] = ()

    def driving(self, rows: Sequence[int]) -> tuple[int, ...]:
        """The occurrences by which the query can be computed in chunks: in each part the linear one whose table has the most
        `rows` (of each occurrence). Empty if a part has no linear one.

        Example:
            >>> Linearity(linear=frozenset({0, 1, 2}), parts=(0, 0, 1)).driving([10, 500, 3])
            (1, 2)
        """
        of_parts = [[at for at in sorted(self.linear) if self.parts[at] == part] for part in sorted(set(self.parts))]
        return tuple(max(some, key=lambda at: rows[at]) for some in of_parts) if all(of_parts) else ()


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
    parts = list(_parts(root))
    selects = [each for each in parts if isinstance(each, exp.Select) and _is_plain(each)]
    if len(selects) < len(parts) or not all_aggregates_known(root, tokens):
        return NOWHERE
    part_of = {
        _start(table): number
        for number, select in enumerate(selects)
        for table in all_of(select, exp.Table)
        if isinstance(table.this, exp.Identifier)
    }
    places = {start for select in selects for start in _linear(select)}
    linear = frozenset(number for number, each in enumerate(found) if each.start in places)
    return Linearity(linear, tuple(part_of[each.start] for each in found))


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """What UNION ALL puts together, without parentheses: SELECTs, and what is put together otherwise."""
    match node:
        case exp.Union() if not any(
            node.args.get(name) for name in ("distinct", "limit", "offset", "by_name", "with_")
        ):
            yield from _parts(node.this)
            yield from _parts(node.expression)
        case exp.Subquery() if unwrapped(node) is not node:
            yield from _parts(unwrapped(node))
        case exp.Select() if (together := _only_union(node)) is not None:
            yield from _parts(together)
        case _:
            yield node


def _only_union(select: exp.Select) -> exp.SetOperation | None:
    """The set operation of whose rows a SELECT looks at one by one, and at nothing else."""
    sources = sources_of(select)
    inner = unwrapped(sources[0]) if len(sources) == 1 else None
    if not isinstance(inner, exp.SetOperation) or not _looks_row_by_row(select):
        return None
    every, inside = (len(all_of(node, exp.Table)) for node in (select, inner))
    return inner if every == inside else None


def _is_plain(select: exp.Select) -> bool:
    """Whether a SELECT looks at joined rows one by one, and gives none where all tables of its FROM are empty."""
    sources = sources_of(select)
    return _looks_row_by_row(select) and bool(sources) and all(map(_is_source, sources))


def _looks_row_by_row(select: exp.Select) -> bool:
    clauses = {name for name, value in select.args.items() if value}
    own = [*select.expressions, *(each for name in ("order", "where") if (each := select.args.get(name)) is not None)]
    together = any(map(has_aggregates, own)) or any(_has_window(each) for each in own)
    return clauses <= _ROW_BY_ROW and not together


def _has_window(node: exp.Expr) -> bool:
    if isinstance(node, exp.Query):
        return False
    return isinstance(node, exp.Window) or any(map(_has_window, node.iter_expressions()))


def _is_source(node: exp.Expr) -> bool:
    """Whether a source is a table, or a subquery that is plain itself."""
    if isinstance(node, exp.Table):
        return isinstance(node.this, exp.Identifier) and not any(
            node.args.get(each) for each in ("joins", "pivots", "laterals")
        )
    inner = unwrapped(node)
    return isinstance(inner, exp.Select) and _is_plain(inner)


def _linear(source: exp.Expr) -> set[int]:
    """Where in the text the tables are named in which a source, or a SELECT, is linear."""
    if isinstance(source, exp.Table):
        return {_start(source)}
    select = unwrapped(source)
    assert isinstance(select, exp.Select)
    first, *others = sources_of(select)
    linear = _linear(first)
    for join, other in zip(joins_of(select), others, strict=True):
        linear = _joined(linear, _linear(other), join)
    return linear


def _start(table: exp.Table) -> int:
    return int(table.parts[0].meta["start"])


def _joined(linear: set[int], right: set[int], join: exp.Join) -> set[int]:
    """The tables in which a join is linear, after those in which its two sides are."""
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if side == "LEFT" or kind in {"SEMI", "ANTI"}:
        return linear
    if side == "RIGHT":
        return right
    return linear | right if not side and kind in {"", "INNER", "CROSS"} else set()
