"""Files that Spark writes into a staged folder, of which only those of tasks that succeeded count.

On a disk, Spark writes Parquet, and Hadoop's committer renames the files of each task when it has succeeded, and once more
when all have. Hadoop starts a program (`chmod`) for each file and folder that it makes there. To a few rows that is a
noticeable delay, so the folders that are always needed are made here.

A store can only copy, and takes some thirty requests for each file. So there Delta writes: each attempt at a
task gives its files names of their own, puts them where they stay, and a log lists those that count. For as long as that
takes the folder is a Delta table; then its log is read and deleted here.
"""

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from backfill_assets.adapters.delta.staged_files import WrittenFile, found_in
from backfill_assets.adapters.spark.brief_settings import set_briefly
from backfill_assets.adapters.storage.copied_log import entry_of
from backfill_assets.adapters.storage.markers import delete_found
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.bounds import MAX_TEXT
from backfill_assets.errors import StagingError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["fits_delta", "listed", "write_files"]

_FOOTERS = {"parquet.statistics.truncate.length": str(MAX_TEXT)}
"""Bounds of long strings are cut to this number of bytes (a maximum is rounded up). Otherwise a file would have none."""
_WITHOUT_MARK = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
"""Hadoop writes no empty file `_SUCCESS`, which nobody reads here."""
_OF_JOB = "_temporary/0/_temporary"
"""Where Hadoop's committer keeps what the tasks of a job write."""
_NOT_NEEDED = {
    "spark.databricks.delta.stats.collect": "false",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
}
"""What is to be known of a file is read from its footer."""
_AS_PARQUET = {
    # A server may have Delta shuffle what it writes, which would be another order in other files.
    "optimizeWrite": "false",
    "delta.writePartitionColumnsToParquet": "false",
}
_NOT_IN_NAMES = frozenset(" ,;{}()\n\t=")
"""What names of columns must not have in a Delta table as Delta creates it."""


def write_files(
    rows: "DataFrame", location: TableLocation, folder: str, *, by: str | None = None, most_rows: int = 0
) -> list[WrittenFile]:
    """Have Spark write rows into a new folder.

    Args:
        rows: The rows; each of their partitions is written by a task.
        location: The table in whose folder it is.
        folder: The folder.
        by: A column whose values name folders inside, in which its rows are; it is not in the files.
        most_rows: How many rows a file has at most; 0: as many as there are.

    Returns:
        The files of tasks that succeeded.
    """
    by_delta = not location.is_local and fits_delta(rows.schema.jsonValue())
    writer = (_plain(rows) if by_delta else rows).write.option("maxRecordsPerFile", most_rows)
    writer = writer if by is None else writer.partitionBy(by)
    if by_delta:
        with set_briefly(rows.sparkSession.conf, {**_FOOTERS, **_NOT_NEEDED}):
            writer.format("delta").mode("error").options(**_AS_PARQUET).save(location.child(folder))
        return listed(location, folder)
    if location.is_local:
        _make_folders(Path(location.child(folder)))
    mode = "append" if location.is_local else "error"
    writer.mode(mode).options(**_FOOTERS, **_WITHOUT_MARK).parquet(location.child(folder))
    return found_in(location, folder)


def _make_folders(folder: Path) -> None:
    """Make a folder, which must be new, and those inside it in which Hadoop's committer keeps what tasks write."""
    folder.mkdir(parents=True)
    (folder / _OF_JOB).mkdir(parents=True)


def _plain(rows: "DataFrame") -> "DataFrame":
    """The rows without what is said of their columns, as the length of a CHAR, by which Delta would refuse some."""
    for field in rows.schema.fields:
        rows = rows.withMetadata(field.name, {}) if field.metadata else rows
    return rows


def fits_delta(schema: object) -> bool:
    """Whether all names of columns and fields in a schema, as Spark's JSON has it, may be those of a new Delta table."""
    return not _NOT_IN_NAMES & set("".join(_names(schema)))


def _names(part: object) -> list[str]:
    if isinstance(part, list):
        return [name for each in part for name in _names(each)]
    if not isinstance(part, dict):
        return []
    inside = [
        name for key in ("fields", "type", "elementType", "keyType", "valueType") for name in _names(part.get(key))
    ]
    return [part["name"], *inside] if "name" in part else inside


def listed(location: TableLocation, folder: str) -> list[WrittenFile]:
    """The files that the log of a folder lists; the log and all others are deleted.

    Errors: `StagingError` if there is none; `EnvironmentSetupError` if the store refuses to delete.
    """
    entry = location.objects().get(f"{folder}/{entry_of(0)}")
    if entry is None:
        raise StagingError(
            f"{location.uri}: Spark has written into {folder}, but there is no list of what it wrote",
            hint="nothing was committed; run it again",
        )
    added = [action["add"] for action in map(json.loads, entry.splitlines()) if "add" in action]
    found = [WrittenFile(f"{folder}/{unquote(each['path'])}", each["size"], each["modificationTime"]) for each in added]
    _delete_others(location, folder, {each.path for each in found})
    return found


def _delete_others(location: TableLocation, folder: str, kept: Collection[str]) -> None:
    """Delete the list of a folder's files, and what tasks have left that did not succeed."""
    there = location.objects().sizes(folder)
    delete_found(location.objects(), {path: size for path, size in there.items() if path not in kept})
