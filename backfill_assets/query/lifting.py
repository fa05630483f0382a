"""How changes of a place without a key of the view lead to one: from place to place, by keys of the rows between them.

`SELECT s.name FROM s WHERE s.id IN (SELECT ps.s FROM ps WHERE ps.p IN (SELECT p.id FROM p))` is partitioned by `s.id` and
`ps.s`. A change of `p` touches values of `p.id`; the rows of `ps` with these tell the values of `ps.s` that may be touched.

A scope is what FROM and WHERE of one SELECT give. If a key partitions a scope, and the changed place is in
it, then only rows of the scope with a touched value of that key can change. If it gives no rows without any of another place
that has the key, too, there must be a row there with such a value, and with the value that the view's key has for what
changes. So the rows there with touched values tell all values of the next key that can change, and maybe more.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from backfill_assets.query.key_classes import KeyClass, KeyClasses, Lookup, partitions
from backfill_assets.query.nodes import all_of
from backfill_assets.query.resolved import OCCURRENCE, joins_of, sources_of, unwrapped

__all__ = ["with_lifts"]

_MOST_STEPS: Final = 4


@dataclass(frozen=True)
class _Scope:
    """What FROM and WHERE of a SELECT give (`core`); the SELECTs `inside` of it, itself among them, by identity; the
    occurrences without whose rows it gives none (`needed`)."""

    core: exp.Select
    inside: frozenset[int]
    needed: frozenset[int]


def with_lifts(
    classes: KeyClasses, tree: exp.Expr, types: Sequence[Mapping[str, str]], linear: Collection[int]
) -> KeyClasses:
    """The classes, where places that are neither of a class nor `linear` are of one to which their changes lead.

    `tree` and `types` are those of `key_classes`, by which the tree has been looked at.
    """
    wanted = [at for at in range(len(types)) if at not in classes.of and at not in linear]
    if not classes.classes or not wanted:
        return classes
    steps = [(scope, key) for scope in _scopes(tree) for key in partitions(scope.core, types)]
    lifts = {at: found for at in wanted if (found := _shortest(at, classes, steps))}
    of = {at: _class_of(classes, found[-1].others[0]) for at, found in lifts.items()}
    return replace(classes, of={**classes.of, **of}, lifts=lifts)


def _class_of(classes: KeyClasses, place: int) -> int:
    """The first class with a column in a place."""
    return next(number for number, key in enumerate(classes.classes) if place in key.columns)


def _shortest(place: int, classes: KeyClasses, steps: Sequence[tuple[_Scope, KeyClass]]) -> tuple[Lookup, ...]:
    """The fewest steps from a place to one of a class, each within the scope of the next; none if there is no way."""
    covered = {at for key in classes.classes for at in key.columns}
    ways: list[tuple[int, frozenset[int], tuple[Lookup, ...]]] = [(place, frozenset(), ())]
    for _ in range(_MOST_STEPS):
        ways = [
            (to, scope.inside, (*way, Lookup(key, at, (to,))))
            for at, inside, way in ways
            for scope, key in steps
            if at in key.columns and inside <= scope.inside
            for to in sorted(key.columns.keys() & scope.needed - {at})
        ]
        ways = list({(at, inside): (at, inside, way) for at, inside, way in reversed(ways)}.values())[::-1]
        found = next((way for at, _, way in ways if at in covered), None)
        if found is not None:
            return found
    return ()


def _scopes(tree: exp.Expr) -> Iterator[_Scope]:
    """The scopes of a query, with the occurrences that they need. What is correlated is one for each row outside, whose
    columns are constants in it."""
    for select in all_of(tree, exp.Select):
        core = exp.Select(expressions=[exp.Literal.number(1)])
        for name in ("from_", "joins", "laterals", "where"):
            value = select.args.get(name)
            if value:
                core.set(name, [each.copy() for each in value] if isinstance(value, list) else value.copy())
        if sources_of(core):
            inner = (each for name in ("from_", "joins", "where") for each in _within(select.args.get(name)))
            yield _Scope(core, frozenset({id(select), *map(id, inner)}), frozenset(_needed(core)))


def _within(clause: object) -> Iterator[exp.Select]:
    for node in clause if isinstance(clause, list) else [clause]:
        if isinstance(node, exp.Expr):
            yield from all_of(node, exp.Select)


def _needed(source: exp.Expr) -> set[int]:
    """The occurrences of which each must have rows, or else a source gives none. Only one group of everything would be there
    without rows, and no key partitions that."""
    if isinstance(source, exp.Table):
        odd = any(source.args.get(name) for name in ("joins", "pivots", "laterals"))
        return set() if odd or OCCURRENCE not in source.meta else {source.meta[OCCURRENCE]}
    select = unwrapped(source)
    if not isinstance(select, exp.Select) or not sources_of(select):
        return set()
    first, *others = sources_of(select)
    needed = _needed(first)
    for join, other in zip(joins_of(select), others, strict=True):
        needed = _joined(needed, _needed(other), join)
    return needed


def _joined(left: set[int], right: set[int], join: exp.Join) -> set[int]:
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if side == "LEFT" or kind in {"SEMI", "ANTI"}:
        return left
    if side == "RIGHT":
        return right
    return left | right if not side and kind in {"", "INNER", "CROSS"} else set()
