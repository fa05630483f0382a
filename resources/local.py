"""One machine: the embedded broker and Spark server if they run (`backfill up`), a warehouse in the project's folder."""

from typing import Any

from backfill_assets import KafkaConnector, SparkResource, StateStore
from backfill_assets.environment import warehouse_place

__all__ = ["resources"]


def resources(project: str) -> dict[str, Any]:
    """The resources of one machine.

    Args:
        project: The project's root folder.

    Returns:
        The resources by their Dagster keys.

    Examples:
        >>> resources(".")["backfill_state"].warehouse
        'warehouse'
    """
    return {
        "backfill_state": StateStore(warehouse=warehouse_place(), root=project),
        "backfill_kafka": KafkaConnector(root=project),
        "backfill_spark": SparkResource(root=project),
    }
