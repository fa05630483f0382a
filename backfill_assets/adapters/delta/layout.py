"""How the files of an output are laid out, and commits that only lay its rows out in other files."""

import logging
from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from backfill_assets.adapters.delta.commits import read_commit
from backfill_assets.adapters.delta.file_bounds import are_exact, parquet_statistics, suit
from backfill_assets.adapters.delta.merged_files import Merged, asks_more, commit_merged
from backfill_assets.adapters.delta.staging import check_columns
from backfill_assets.adapters.delta.touched_files import spans_of_files
from backfill_assets.adapters.storage.store_errors import said
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.bounds import boundable
from backfill_assets.core.epoch.conservation import total_rows
from backfill_assets.core.epoch.merge_groups import MOST_OVERLAP, overlap
from backfill_assets.core.epoch.records import StagedFile
from backfill_assets.errors import StagingError

__all__ = ["clustering_columns", "commit_layout", "compact", "is_laid_out"]

_log = logging.getLogger(__name__)


def clustering_columns(schema: str, key: Sequence[str]) -> list[str]:
    """The first columns of a view's key, as far as the log has exact bounds of them in a view with this Delta schema."""
    bounded = boundable(schema)
    found: list[str] = []
    for name in key:
        if name not in bounded:
            break
        found.append(name)
    return found


def is_laid_out(table: DeltaTable, column: str) -> bool:
    """Whether each value of a column is in few files of a version."""
    return overlap(spans_of_files(table, column)) <= MOST_OVERLAP


def compact(location: TableLocation, rows_of_file: int | None) -> None:
    """Compact small files of the newest version into ones of about so many rows; or, if no number is given, of delta-rs's
    own size. Yields to any other writer.

    delta-rs tries this commit again on a later version, whatever it is told, but only if no compacted file is gone there and
    the table's properties are the same. So the rows are those of that version."""
    table = location.load()
    if table is None:
        return
    try:
        table.optimize.compact(
            target_size=_size_of(table, rows_of_file) if rows_of_file else None,
            writer_properties=parquet_statistics(table),
        )
    except (CommitFailedError, DeltaError) as error:
        _log.info("%s: compaction gave way: %s", location.uri, said(error, location.storage_options))


def commit_layout(location: TableLocation, table: DeltaTable, files: Sequence[StagedFile]) -> bool:
    """Put files in the place of all files of a loaded version, whose rows they hold in another order; returns whether that
    was done, which it is not if others have written meanwhile or ask more of a writer.

    Errors: `StagingError` if they do not hold as many rows, or other columns.
    """
    if asks_more(table) or not are_exact(table):
        return False
    listed = pa.table(table.get_add_actions())
    held = total_rows(listed.column("num_records").to_pylist())
    found = sum(each.rows for each in files)
    if held != found:
        raise StagingError(
            f"{location.uri}: files that were laid out again have {found} rows, expected {held}",
            hint="nothing was committed; run it again",
            expected=held,
            found=found,
        )
    check_columns(location.uri, table.schema().to_json(), tuple(files))
    if not suit(location, table, files):
        return False
    removed = frozenset(listed.column("path").to_pylist())
    made = Merged(removed=removed, files=tuple(files), feed=(), operation="OPTIMIZE", changes_data=False)
    if commit_merged(location, table, made, numbers={}, metadata={}):
        return True
    return _is_committed(location, table.version() + 1, files)


def _is_committed(location: TableLocation, version: int, files: Sequence[StagedFile]) -> bool:
    """Whether a version names these files: a client that repeats a put finds what its first attempt wrote."""
    actions = read_commit(location, version, again=True) or []
    return not {each.path for each in files}.isdisjoint(each["add"]["path"] for each in actions if "add" in each)


def _size_of(table: DeltaTable, rows: int) -> int:
    """About how large a file of so many rows of a table is."""
    files = pa.table(table.get_add_actions()).select(["size_bytes", "num_records"]).to_pydict()
    size, held = (sum(each or 0 for each in files[name]) for name in ("size_bytes", "num_records"))
    return max(1, int(size) * rows // max(1, int(held)))
