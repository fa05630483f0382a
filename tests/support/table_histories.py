"""Random histories of small tables, written from a `Random`: rows come, go and change, keys move, tables are emptied."""

from random import Random

from tests.support.drawn_queries import Rows

__all__ = ["first_rows", "next_rows"]

Row = tuple[int | None, ...]
_MOST = 7
_KINDS = ("insert", "insert", "delete", "update", "update", "key move", "key move", "null key", "duplicate", "empty")


def first_rows(random: Random, widths: dict[str, int], *, nulls: bool = True) -> Rows:
    """The rows of each table at first; `widths` are the numbers of their columns."""
    return {
        name: [_row(random, width, nulls=nulls) for _ in range(random.randrange(_MOST))]
        for name, width in widths.items()
    }


def next_rows(random: Random, before: Rows, changed: tuple[str, ...], *, nulls: bool = True) -> Rows:
    """The rows after one to three changes of each of these tables."""
    after = dict(before)
    for name in changed:
        rows = list(before[name])
        for _ in range(random.randint(1, 3)):
            kind = random.choice(_KINDS)
            rows = _changed(random, rows, kind if nulls or kind != "null key" else "key move", nulls=nulls)
        after[name] = rows
    return after


def _changed(random: Random, rows: list[Row], kind: str, *, nulls: bool) -> list[Row]:
    if not rows or (kind == "insert" and len(rows) < _MOST):
        return [*rows, _row(random, 3, nulls=nulls)]
    at = random.randrange(len(rows))
    number, key, *others = row = rows[at]
    put: dict[str, list[Row]] = {
        "update": [(number, key, *(random.randrange(5) for _ in others))],
        "key move": [(number, random.randrange(5), *others)],
        "null key": [(number, None, *others)],
        "duplicate": [row, row],
    }
    return [] if kind == "empty" else [*rows[:at], *put.get(kind, []), *rows[at + 1 :]]


def _row(random: Random, width: int, *, nulls: bool) -> Row:
    return tuple(None if nulls and random.random() < 0.12 else random.randrange(5) for _ in range(width))
