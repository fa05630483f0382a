"""Spark sessions that read wrong rows, in product and proof alike; and files that can only be read in part."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.readwriter import DataFrameReader

from backfill_assets.app.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["IGNORE", "careless", "damaged", "drop_rows"]

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
    """Make a method of Spark's reader return only the rows of a condition, if they have the column."""
    read: Any = getattr(DataFrameReader, method)

    def reading(*args: Any, **options: Any) -> "DataFrame":
        rows: DataFrame = read(*args, **options)
        return rows.where(kept) if column in rows.columns else rows

    monkeypatch.setattr(DataFrameReader, method, reading)


@contextmanager
def damaged(file: Path) -> Iterator[None]:
    """A Parquet file with unreadable pages, of the same size and with a valid footer."""
    sound = file.read_bytes()
    footer = len(sound) - int.from_bytes(sound[-8:-4], "little") - 8
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # Hadoop's own checksum, on local disks only
    file.write_bytes(sound[:_MAGIC] + bytes(footer - _MAGIC) + sound[footer:])
    try:
        yield
    finally:
        file.write_bytes(sound)
