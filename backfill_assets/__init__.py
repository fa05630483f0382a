"""Backfilled, incrementally maintained materialized views for Dagster, computed by Spark, kept in Delta, fed by Kafka.

- `declare`: what users declare
- `query`: SQL to a maintenance plan
- `core`: decides what to read and what to write
- `adapters`: touches the world
- `app`: ties declarations to adapters
- `defs`: Dagster's assets, checks, jobs and sensors
- `cli`: the command line
- `testing`: simulated upstreams and crash points
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from backfill_assets.declare.declarations import delta_table, kafka_source, materialized_view

if TYPE_CHECKING:
    from backfill_assets.adapters.kafka.connector import KafkaConnector
    from backfill_assets.adapters.spark.resource import SparkResource
    from backfill_assets.adapters.state.state_store import StateStore
    from backfill_assets.defs.component import Views
    from backfill_assets.defs.definitions import build_definitions

__all__ = [
    "KafkaConnector",
    "SparkResource",
    "StateStore",
    "Views",
    "build_definitions",
    "delta_table",
    "kafka_source",
    "materialized_view",
]

_LAZY = {
    "KafkaConnector": "adapters.kafka.connector",
    "SparkResource": "adapters.spark.resource",
    "StateStore": "adapters.state.state_store",
    "Views": "defs.component",
    "build_definitions": "defs.definitions",
}
"""Where names are that import Dagster, which takes a second that declarations alone need not pay."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
