"""How many rows Parquet files have, as their own footers say: for files of which no log says it."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from backfill_assets.adapters.delta.log_replay import DataFile, is_elsewhere
from backfill_assets.adapters.delta.logged_changes import Changed
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.errors import ReadMismatchError

__all__ = ["fed_rows", "footer_rows", "held_rows"]

_AT_ONCE = 16
"""So many footers are read at the same time: each takes an object store two requests."""


def footer_rows(table: TableLocation, sizes: Mapping[str, int]) -> int:
    """The rows of files of a table, by their paths in its log, each with the bytes that the log states (0: unknown). Errors:
    `ReadMismatchError` for a file that cannot be read, or has another size: somebody has written another one in its place."""
    return sum(_rows_of_each(table, sizes).values())


def _rows_of_each(table: TableLocation, sizes: Mapping[str, int]) -> dict[str, int]:
    files = table.files()

    def rows(path: str) -> int:
        try:
            with files.open_input_file(unquote(path)) as stream:
                if (found := stream.size()) != (sizes[path] or found):
                    raise _overwritten(table, path, sizes[path], found)
                return int(pq.read_metadata(stream).num_rows)
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(table, path, error) from error

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(sizes, pool.map(rows, sizes), strict=True))


def held_rows(table: TableLocation, files: Iterable[DataFile]) -> int | None:
    """The rows of data files of a table that a reader sees: as the log says, or their footers if it does not. A file that was
    removed, restored and removed again counts each time. None if that concerns a file outside of the table's folder.
    Errors: `ReadMismatchError` for a file that cannot be read."""
    held, unknown = 0, list[DataFile]()
    for file in files:
        if file.stated_rows is None:
            unknown.append(file)
        else:
            held += file.stated_rows
    sizes = {file.path: file.size for file in unknown}
    if any(map(is_elsewhere, sizes)):
        return None
    rows = _rows_of_each(table, sizes)
    return held + sum(rows[file.path] - file.deleted for file in unknown)


def fed_rows(table: TableLocation, versions: Iterable[Changed]) -> int | None:
    """The rows that a change data feed has for versions. None as for `held_rows`, or if a restored version hides other rows
    of a file than before. Errors: `ReadMismatchError` for a file that cannot be read."""
    feed, whole, hidden = dict[str, int](), list[DataFile](), 0
    for each in versions:
        if each.feed:
            feed |= each.feed
            continue
        gone = {file.path: file for file in each.removed}
        kept = {file.path: file for file in each.added if file.path in gone}
        if kept and each.restored:
            return None
        hidden += sum(abs(file.deleted - gone[path].deleted) for path, file in kept.items())
        whole += [file for file in (*each.added, *each.removed) if file.path not in kept]
    held = held_rows(table, whole)
    return None if held is None else held + hidden + footer_rows(table, feed)


def _overwritten(table: TableLocation, path: str, expected: int, found: int) -> ReadMismatchError:
    return ReadMismatchError(
        f"file {path} of the table at {table.uri} has {found} bytes, expected {expected} as the log says: another file was "
        "written in its place",
        hint="nothing was committed. Restore the file and refresh again: the epoch is repeated",
        table=table.uri,
        file=path,
        expected=expected,
        found=found,
    )


def _unreadable(table: TableLocation, path: str, error: Exception) -> ReadMismatchError:
    why = f"{type(error).__name__}: {error}".partition("\n")[0]
    return ReadMismatchError(
        f"another reader than Spark cannot read the footer of file {path} of the table at {table.uri}: {why}",
        hint="nothing was committed, as Spark may pass over such a file. Restore it and refresh again: the epoch is repeated",
        table=table.uri,
        file=path,
    )
