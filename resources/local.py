"""One machine: the embedded broker and Spark server if they run (`backfill up`), a warehouse in the project's folder."""

from pathlib import Path
from typing import Any

from backfill_assets import KafkaConnector, SparkResource, StateStore
from backfill_assets.environment import warehouse_place

__all__ = ["resources"]

PROJECT = str(Path(__file__).parent.parent)


def resources() -> dict[str, Any]:
    """The resources of one machine."""
    return {
        "backfill_state": StateStore(warehouse=warehouse_place(), root=PROJECT),
        "backfill_kafka": KafkaConnector(root=PROJECT),
        "backfill_spark": SparkResource(root=PROJECT),
    }
