"""Views of a benchmark over its tables: copies of the tables after each step, and rows that are those of a query."""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from backfill_assets.core.epoch.records import CommitRecord
from tests.support.lake import Lake

__all__ = ["FIRST", "Rows", "copies_after", "followed", "held_after", "rows_of"]

Rows = Counter[tuple[object, ...]]
FIRST = -1
"""The step in which the tables get their first rows."""
_TIES = re.compile(r"row_number|ROWS|LIMIT")
"""What makes a result depend on which of several equal rows comes first."""


def copies_after(
    lake: Lake,
    random: Random,
    fill: Callable[[Lake, Random], None],
    change: Callable[[Lake, Random, int], None],
    steps: int,
) -> dict[int, Path]:
    """Copies of the tables after each step. A copy of a later one over that of an earlier one is a table that was changed."""
    copies: dict[int, Path] = {}
    for step in range(FIRST, steps):
        if step == FIRST:
            fill(lake, random)
        else:
            change(lake, random, step)
        copies[step] = Path(shutil.copytree(lake.root, lake.root.with_name(f"after_{step}")))
    return copies


def followed(lake: Lake, name: str, changed: Collection[str]) -> CommitRecord | None:
    """What is recorded of a refresh after tables have changed; none where none did, which makes no epoch."""
    report = lake.project.refresh(name).report
    assert bool(report.epochs) == bool(changed)
    return report.record if changed else None


def held_after(
    lake: Lake, copies: Mapping[int, Path], follow: Callable[[int], Rows | None]
) -> Iterator[tuple[int, Rows]]:
    """Each step that changes something for a view, with its rows after that. What changes has to show."""
    seen = set()
    for step, folder in copies.items():
        shutil.copytree(folder, lake.root, dirs_exist_ok=True)
        if (rows := follow(step)) is not None:
            seen.add(frozenset(rows.items()))
            yield step, rows
    assert len(seen) > 1, "what changes has to show"


def rows_of(lake: Lake, name: str, query: str, tables: Sequence[str]) -> Rows:
    """The view's rows, which are those of its query: of the user's own text, unless that leaves open which of equal rows is
    first."""
    text = lake.declared(name).text if _TIES.search(query) else query
    found = lake.shown(name)
    assert found == lake.expected(name, text, *tables)
    return found
