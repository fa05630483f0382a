"""One attempt at computing a plan over Delta tables: where it writes, and what it reads."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.changes import columns_of_schema
from backfill_assets.adapters.compute.scans import Scans
from backfill_assets.adapters.compute.staged_rows import StagingFolder
from backfill_assets.adapters.compute.table_rows import Scratch
from backfill_assets.adapters.delta.staging import INPUTS
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.records import Plan
from backfill_assets.core.progress.reads import ChangesRead, TableRead

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Attempt"]


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """An attempt at a plan, with the view at version `at`. `staging` is its own folder; `scans` count what it reads;
    `schema` is the Delta schema that the view has then.

    `netted`: rows that came and went among the changes that it reads are left out before anything is computed of them. That
    costs a shuffle, and is needed only if they cannot be computed. `replaced`: a result in full is not compared with the rows
    of the view."""

    spark: "SparkSession"
    plan: Plan
    view: TableLocation
    staging: StagingFolder
    at: int
    schema: str
    scans: Scans
    netted: bool = False
    replaced: bool = False

    @property
    def columns(self) -> list[str]:
        """The columns that the view has then, as expressions."""
        return columns_of_schema(self.schema)

    @property
    def read(self) -> dict[int, TableRead]:
        """What is read, by number. Versions of mere maintenance are planned only so that reads follow each other."""
        consumed = dict(enumerate(self.plan.consumed))
        return {at: each for at, each in consumed.items() if not isinstance(each, ChangesRead) or each.rows}

    def scratch(self, name: str) -> Scratch:
        """A folder for one read."""
        return Scratch(
            table=self.view,
            path=f"{self.staging.name}/{INPUTS}/{name}",
            scans=self.scans,
            note_reached=self.staging.note_reached,
        )
