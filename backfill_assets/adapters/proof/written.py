"""The data files that were added to a table and removed from it between two of its versions, and their rows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from backfill_assets.adapters.compute.no_rows import no_rows
from backfill_assets.adapters.compute.parquet_files import parquet_files
from backfill_assets.adapters.delta.log_replay import is_plain_path
from backfill_assets.adapters.delta.plain_tables import holds_rows_as_they_are
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.proof_scope import Everything

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Written", "file_rows", "written_between"]


@dataclass(frozen=True, kw_only=True)
class Written:
    """What was written to a table between two versions: files that `came` and that `went`, relative to it.

    `rows` and `bytes` are their totals according to the log; `schema` is the table's schema, as JSON.
    """

    table: TableLocation
    before: int
    now: int
    schema: str
    came: tuple[str, ...]
    went: tuple[str, ...]
    rows: int
    bytes: int

    @property
    def nothing(self) -> bool:
        """Whether the table has the same files as before."""
        return not self.came and not self.went


def written_between(location: TableLocation, before: int, now: int) -> Written | Everything:
    """Compare the files of two versions; `Everything` if the files alone do not show what was written."""
    try:
        old, new = location.at(before), location.at(now)
    except DeltaError:
        old = new = None
    if old is None or new is None:
        return Everything(reason=f"version {before}, which passed, is no longer in the log")
    if not (holds_rows_as_they_are(old) and holds_rows_as_they_are(new)):
        return Everything(reason="its files do not contain exactly the rows of the table")
    was, is_now = _files(old), _files(new)
    came, went = sorted(is_now.keys() - was.keys()), sorted(was.keys() - is_now.keys())
    if not all(map(is_plain_path, (*came, *went))):
        return Everything(reason="its files are not below its folder")
    if any(info.type is not pafs.FileType.File for info in location.files().get_file_info(went)):
        return Everything(reason=f"files of version {before}, which passed, no longer exist")
    return Written(
        table=location,
        before=before,
        now=now,
        schema=new.schema().to_json(),
        came=tuple(came),
        went=tuple(went),
        rows=sum(is_now[path][0] for path in came) + sum(was[path][0] for path in went),
        bytes=sum(is_now[path][1] for path in came) + sum(was[path][1] for path in went),
    )


def file_rows(spark: "SparkSession", written: Written, paths: Sequence[str]) -> "DataFrame":
    """All rows of some files of the table that was written to."""
    from pyspark.sql.types import StructType

    columns = StructType.fromJson(json.loads(written.schema))
    if not paths:
        return no_rows(spark, columns)
    return parquet_files(spark, map(written.table.child, paths), columns)


def _files(table: DeltaTable) -> dict[str, tuple[int, int]]:
    """The number of rows and bytes of each file, according to the log."""
    stated = pa.table(table.get_add_actions()).select(["path", "num_records", "size_bytes"]).to_pydict()
    sizes = zip(stated["num_records"], stated["size_bytes"], strict=True)
    return {path: (rows or 0, size) for path, (rows, size) in zip(stated["path"], sizes, strict=True)}
