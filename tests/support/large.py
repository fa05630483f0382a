"""A workspace in which Spark does every merge of keyed changes."""

from collections.abc import Callable
from typing import Any

from backfill_assets.adapters.delta.merged_files import Merged
from backfill_assets.app.wiring.table import Table
from backfill_assets.app.workspace import Workspace
from backfill_assets.declare.model import KafkaSource, MaterializedView
from tests.support.lake import Lake

__all__ = ["large"]


class Large(Workspace):
    """A workspace in which every keyed change counts as too large for this process's memory."""

    between: Callable[[], object]
    """Called after the look and before Spark's merge is committed."""

    def table(self, declared: KafkaSource | MaterializedView) -> Table:
        found = super().table(declared)
        found.output.merge_memory = 0
        merge = found.output.merge_large

        def merge_late(*given: Any) -> Merged:
            self.between()
            return merge(*given)

        found.output.merge_large = merge_late
        return found


def large(lake: Lake, between: Callable[[], object] = lambda: None) -> Workspace:
    """The lake's project, with all merges made by Spark."""
    plain = lake.project.workspace()
    made = Large(declared=plain.declared, store=plain.store, kafka=plain.kafka, spark=plain.spark)
    made.between = between
    return made
