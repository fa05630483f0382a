"""What conditions say: which values are equal in rows for which they are true, and which are not null."""

from collections.abc import Iterable, Iterator

from sqlglot import exp

from backfill_assets.query.computed_keys import may_be_key
from backfill_assets.query.kinds import kind_of
from backfill_assets.query.resolved import spelled_node

__all__ = ["closed", "conjuncts", "either_way", "equalities", "is_set", "with_not"]


def equalities(condition: exp.Expr | None) -> Iterator[tuple[str, str]]:
    """What must be equal where a condition is true, each side a column, a `coalesce` of columns, or a computed key.

    Values of two kinds are compared as those of one of them, or of a third: that they are equal says nothing of their hashes.
    """
    for each in conjuncts(condition):
        if isinstance(each, exp.EQ | exp.NullSafeEQ):
            sides = [each.left.unnest(), each.right.unnest()]
            if all(map(may_be_key, sides)) and _are_alike(*sides):
                yield spelled_node(sides[0]), spelled_node(sides[1])


def _are_alike(left: exp.Expr, right: exp.Expr) -> bool:
    """Whether values are of one kind, so that those that are equal have equal hashes."""
    return kind_of(left) == kind_of(right) != ""


def is_set(value: exp.Expr, select: exp.Select) -> bool:
    """Whether WHERE of a SELECT says that one of its columns is not null."""
    return any(
        isinstance(each, exp.Not)
        and isinstance(each.this, exp.Is)
        and isinstance(each.this.expression, exp.Null)
        and spelled_node(each.this.this) == spelled_node(value)
        for each in conjuncts(select.args.get("where"))
    )


def with_not(node: exp.Expr | None) -> exp.Expr | None:
    """A condition with the NOT in front of it, if there is one."""
    around = node.parent if node is not None else None
    while isinstance(around, exp.Paren):
        around = around.parent
    return around if isinstance(around, exp.Not) else node


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """The conditions of which each has to be true."""
    match condition:
        case None:
            return
        case exp.Where() | exp.Having() | exp.Paren():
            yield from conjuncts(condition.this)
        case exp.And():
            yield from conjuncts(condition.left)
            yield from conjuncts(condition.right)
        case _:
            yield condition


def either_way(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Pairs, each in both orders."""
    for a, b in pairs:
        yield a, b
        yield b, a


def closed(carriers: frozenset[str], pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Carriers, and what must be equal to one of them."""
    both = list(either_way(pairs))
    found = set(carriers)
    while more := {b for a, b in both if a in found} - found:
        found |= more
    return frozenset(found)
