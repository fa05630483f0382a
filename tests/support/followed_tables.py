"""Views of a benchmark over its tables: copies of the tables after each step, and rows that are those of a query."""

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.support.lake import Lake

__all__ = ["Rows", "copied", "rows_of"]

Rows = Counter[tuple[object, ...]]
_TIES = re.compile(r"row_number|ROWS|LIMIT")
"""What makes a result depend on which of several equal rows comes first."""


def copied(lake: Lake, step: int) -> Path:
    """A copy of the tables as they are after a step."""
    return Path(shutil.copytree(lake.root, lake.root.with_name(f"after_{step}")))


def rows_of(lake: Lake, name: str, query: str, tables: Sequence[str]) -> Rows:
    """The view's rows, which are those of its query: of the user's own text, unless that leaves open which of equal rows is
    first."""
    text = lake.declared(name).text if _TIES.search(query) else query
    found = lake.shown(name)
    assert found == lake.expected(name, text, *tables)
    return found
