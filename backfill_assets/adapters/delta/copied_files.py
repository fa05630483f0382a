"""Copies of a table's data files in the folder of another table of the warehouse, for a commit there."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

from backfill_assets.adapters.storage.warehouse import TableLocation, Warehouse

__all__ = ["copy_files"]

_AT_ONCE = 16


def copy_files(
    place: Warehouse, paths: Iterable[str], origin: TableLocation, destination: TableLocation, folder: str
) -> None:
    """Copy data files, given by their paths in the origin's log, into a staged folder of the destination."""
    within = place.objects("")
    root = f"{place.uri}/"
    source, target = origin.uri.removeprefix(root), destination.uri.removeprefix(root)

    def copy(numbered: tuple[int, str]) -> None:
        number, path = numbered
        within.copy(f"{source}/{unquote(path)}", f"{target}/{folder}/{number:05d}.parquet")

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(copy, enumerate(paths)))
