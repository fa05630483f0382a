"""By which columns the files of a view are laid out."""

from collections.abc import Sequence

from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.bounds import boundable

__all__ = ["clustering_columns"]


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
