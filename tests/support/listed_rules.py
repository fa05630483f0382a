"""Tables of rules in pages of the docs: the rows that a page has, and how a row is written."""

import re
from pathlib import Path

__all__ = ["DOCS", "listed", "row"]

DOCS = Path(__file__).parents[2] / "docs"
"""The folder of the pages."""


def row(*cells: str) -> str:
    """A row as a page has it."""
    return "|" + "|".join(f" {each} " if each else " " for each in cells) + "|"


def listed(page: str, header: str, *, without: int | None = None) -> list[str]:
    """The rows of a page's table with this header, less a column that only people read."""
    _, _, rest = (DOCS / page).read_text(encoding="utf-8").partition(f"{header}\n")
    lines = [re.split(r" ?\| ?", line)[1:-1] for line in rest.split("\n\n")[0].splitlines()[1:]]
    return [row(*(cell for at, cell in enumerate(cells) if at != without)) for cells in lines]
