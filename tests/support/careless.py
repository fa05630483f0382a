"""Spark sessions that read wrong rows, in product and proof alike; and files that can only be read in part."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.readwriter import DataFrameReader

from backfill_assets.app.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["IGNORE", "careless", "change_rows", "damaged", "drop_rows", "short_listing"]

IGNORE = {"spark.sql.files.ignoreCorruptFiles": "true", "spark.sql.files.ignoreMissingFiles": "true"}
_MAGIC = 4
"""The bytes before the pages of a Parquet file."""


def careless(workspace: Workspace, settings: Mapping[str, str]) -> Workspace:
    """The workspace, whose session gets settings that the product does not know of."""

    def loosen(spark: "SparkSession") -> None:
        for name, value in settings.items():
            spark.conf.set(name, value)

    workspace.runner.run(loosen)
    return workspace


def drop_rows(monkeypatch: pytest.MonkeyPatch, method: str, kept: str, column: str) -> None:
    """Let a method of Spark's reader give only the rows of a condition, wherever they have the column."""
    _patch(monkeypatch, method, lambda rows: rows.where(kept) if column in rows.columns else rows)


def change_rows(monkeypatch: pytest.MonkeyPatch, kept: str, column: str) -> None:
    """Let Spark's reader of Parquet give other rows, as many, in the place of those for which a condition does not hold. It
    has to hold for the negative numbers that are in them."""

    def changed(rows: "DataFrame") -> "DataFrame":
        other = F.expr(f"IF({kept}, {column}, -{column} - 1)")
        return rows.withColumn(column, other) if column in rows.columns else rows

    _patch(monkeypatch, "parquet", changed)


def short_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Spark find all but one of the Parquet files that it is told to read, if there are several."""
    read = DataFrameReader.parquet
    monkeypatch.setattr(
        DataFrameReader, "parquet", lambda reader, *paths: read(reader, *(paths[1:] if paths[1:] else paths))
    )


def _patch(monkeypatch: pytest.MonkeyPatch, method: str, change: "Callable[[DataFrame], DataFrame]") -> None:
    read: Any = getattr(DataFrameReader, method)
    monkeypatch.setattr(DataFrameReader, method, lambda *args, **options: change(read(*args, **options)))


@contextmanager
def damaged(file: Path, column: str | None = None) -> Iterator[None]:
    """A Parquet file with unreadable pages (those of one column, or all), of the same size and with a valid footer."""
    sound = file.read_bytes()
    start, end = _MAGIC, len(sound) - int.from_bytes(sound[-8:-4], "little") - 8
    if column is not None:
        start, end = _pages(file, column)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # Hadoop's own checksum, on local disks only
    file.write_bytes(sound[:start] + bytes(end - start) + sound[end:])
    try:
        yield
    finally:
        file.write_bytes(sound)


def _pages(file: Path, column: str) -> tuple[int, int]:
    """Where the pages of a column are, in a file of one row group."""
    group = pq.read_metadata(file).row_group(0)
    (chunk,) = (each for each in map(group.column, range(group.num_columns)) if each.path_in_schema == column)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    return start, start + chunk.total_compressed_size
