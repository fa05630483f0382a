"""How a view follows what changed in some places of its query: which rule, by which keys, and which rows have to be found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from backfill_assets.query.key_classes import KeyClasses, Lookup
from backfill_assets.query.linear import Linearity

__all__ = ["Steps", "asked_of_nulls", "lookups", "steps_by_places"]


@dataclass(frozen=True)
class Steps:
    """How a view follows what changed: by which rule, in which places by changed rows alone (`linear`), and the classes whose
    touched values are computed again, each with the places that touch them. It may do so if the columns of `nulls`, each of
    a place, are null in no row, before and after, and if the `parameters`, by their numbers, have the values they had. Of a
    query of the `first` rows they are those of the query before ORDER BY, as long as enough rows are known."""

    rule: Literal["additive", "full", "linear", "restricted"]
    linear: tuple[int, ...] = ()
    by_class: Mapping[int, Sequence[int]] = field(default_factory=dict)
    nulls: tuple[tuple[int, str], ...] = ()
    parameters: tuple[int, ...] = ()
    first: bool = False

    @property
    def conditions(self) -> tuple[str, ...]:
        """What has to hold for them to follow changes, in words; nothing if there is no rule at all."""
        asked = {
            "NOT IN compares no null": bool(self.nulls),
            "subqueries for one value give the same": bool(self.parameters),
            "enough of the first rows are known": self.first,
        }
        return tuple(words for words, holds in asked.items() if holds)

    @property
    def are_certain(self) -> bool:
        """Whether they follow changes whatever rows there are."""
        return self.rule != "full" and not self.conditions


def steps_by_places(linearity: Linearity, classes: KeyClasses, places: Sequence[int]) -> Steps | None:
    """How rows follow what changed in these places; None if there is no rule for one of them."""
    others = [number for number in places if number not in linearity.linear]
    first = classes.touched_by(others)
    if first is None:
        return None
    # Where a class is touched in any case, it takes the changes of its linear places along.
    along = [number for number in places if number in others or classes.of.get(number) in first]
    by_class = classes.touched_by(along) or {}
    linear = tuple(number for number in places if number not in along)
    return Steps("restricted", linear, by_class, asked_of_nulls(classes, by_class))


def asked_of_nulls(classes: KeyClasses, by_class: Mapping[int, Sequence[int]]) -> tuple[tuple[int, str], ...]:
    """The columns, each of a place, that have to hold no null where changes of places lead to classes."""
    steps = (step for places in by_class.values() for place in places for step in classes.lifts.get(place, ()))
    return tuple(sorted({each for step in steps for each in step.nulls}))


def lookups(partners: KeyClasses, linearity: Linearity, place: int) -> list[Lookup]:
    """How rows of other places are found that have to do with rows of a place, where the query is linear in it: each step
    by the values of a key in the rows of a place that is known by then.

    By linearity nothing comes of a value of the key that no row of the place has, so all other rows may be left out.

    Example:
        >>> from backfill_assets.query.key_classes import KeyClass
        >>> by_order = KeyClass({0: "order", 1: "order"}, "", "INTEGER")
        >>> by_customer = KeyClass({1: "customer", 2: "customer"}, "", "INTEGER")
        >>> every = Linearity(linear=frozenset({0, 1, 2}), parts=(0, 0, 0))
        >>> [(each.known, each.others) for each in lookups(KeyClasses((by_order, by_customer)), every, 0)]
        [(0, (1,)), (1, (2,))]
    """
    known, steps = [place], list[Lookup]()
    for at in known:
        for key in partners.classes if at in linearity.linear else ():
            # Rows are found by columns alone.
            held = key.columns.keys() - key.computed
            beside = (each for each in sorted(held) if linearity.parts[each] == linearity.parts[at])
            others = [each for each in beside if each not in known]
            if at in held and others:
                steps.append(Lookup(key, at, tuple(others)))
                known += others
    return steps
