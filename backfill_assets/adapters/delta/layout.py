"""How the files of a view are laid out: by which columns, and how large they are."""

from collections.abc import Sequence
from typing import Final

from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.bounds import boundable

__all__ = ["ROWS_OF_FILE", "clustering_columns"]

ROWS_OF_FILE: Final = 250_000
"""About so many rows are in a file: a merge reads and writes it again in a fraction of a second, and a view of a hundred
million rows still has no more than some hundred files."""


def clustering_columns(view: TableLocation, key: Sequence[str]) -> list[str]:
    """The first columns of a view's key, as far as the log has exact bounds of them."""
    table = view.last()
    bounded = boundable(table.schema().to_json()) if table is not None else {}
    found: list[str] = []
    for name in key:
        if name not in bounded:
            break
        found.append(name)
    return found
