"""In which order the histories of several upstreams are read, such as dimensions before facts.

An order maps a name to all names whose history is read before its own. An upstream that is not named does not wait, and no
other waits for it. Change logs and live rows of an upstream whose history is done never wait.
"""

from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

__all__ = ["Order", "order_of", "waits_for"]

Order = Mapping[str, frozenset[str]]


def order_of(given: Sequence[str] | Mapping[str, str | Sequence[str]]) -> Order:
    """An order from a sequence of names, first to last, or from what each name comes after.

    Errors: `ValueError` if there is a cycle; it names the cycle.
    """
    after: dict[str, set[str]] = {}
    if isinstance(given, Mapping):
        for name, before in given.items():
            after[name] = {before} if isinstance(before, str) else set(before)
    else:
        for index, name in enumerate(given):
            after.setdefault(name, set()).update(given[:index])
    try:
        names = list(TopologicalSorter(after).static_order())
    except CycleError as error:
        raise ValueError(" after ".join(reversed(error.args[1]))) from None
    closed: dict[str, frozenset[str]] = {}
    for name in names:
        direct = after.get(name, set())
        closed[name] = frozenset(direct).union(*(closed[each] for each in direct))
    return {name: before for name, before in closed.items() if before}


def waits_for(order: Order, name: str, unfinished: Collection[str]) -> list[str]:
    """The upstreams with unread history that must be read before that of `name`."""
    return sorted(order.get(name, frozenset()) & set(unfinished))
