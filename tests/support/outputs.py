"""An output on a real Delta log, without Spark: its commits, and files staged for them."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema

from backfill_assets.adapters.delta.created_table import create_table
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.delta.staged_files import collect
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Staged
from backfill_assets.core.epoch.staged_folders import StagedFolder
from backfill_assets.core.progress.positions import IngestPosition

__all__ = ["SCHEMA", "TARGET", "commit", "output_at", "record", "reopened", "rows", "stage"]

TARGET = "sources/orders"
SCHEMA = pa.schema([pa.field("id", pa.int64())])


def output_at(folder: Path, schema: pa.Schema = SCHEMA) -> DeltaOutput:
    """An output whose table exists and is empty."""
    location = TableLocation(uri=str(folder / "table"))
    create_table(location, Schema.from_arrow(schema).to_json())
    return DeltaOutput(location=location, target=TARGET, schema=lambda: DeltaTable(location.uri).schema().to_json())


def reopened(output: DeltaOutput) -> DeltaOutput:
    """The same table as another process opens it."""
    return DeltaOutput(location=replace(output.location), target=TARGET, schema=output.schema)


def record(kind: CommitKind, incarnation: str, epoch: int, attempt: str = "aaaaaaaa") -> CommitRecord:
    position = IngestPosition(topic="t", topic_id=None, history={0: 0}, begin={0: 0}, next={0: epoch})
    return CommitRecord(
        kind=kind, target=TARGET, incarnation=incarnation, epoch=epoch, attempt=attempt, plan_hash="", fingerprint={},
        position=position, live=True, started_at=0, finished_at=0, created_at=0,
    )  # fmt: skip


def stage(
    output: DeltaOutput,
    incarnation: str,
    epoch: int,
    ids: list[int] | pa.Table,
    attempt: str = "aaaaaaaa",
    **options: bool,
) -> Staged:
    folder = StagedFolder(incarnation=incarnation, epoch=epoch, attempt=attempt).name
    path = Path(output.location.child(folder))
    path.mkdir()
    made = ids if isinstance(ids, pa.Table) else pa.table({"id": ids}, schema=SCHEMA)
    pq.write_table(made, path / "part.parquet", **options)
    return Staged(files=collect(output.location, folder), rows_written=len(ids))


def commit(output: DeltaOutput, made: CommitRecord, staged: Staged | None = None) -> None:
    output.look()
    output.commit(made, staged or Staged(replaces=made.kind in {CommitKind.CREATE, CommitKind.DROP}))


def rows(output: DeltaOutput) -> list[int]:
    return sorted(DeltaTable(output.location.uri).to_pyarrow_table()["id"].to_pylist())
