"""Backfilled, incrementally maintained materialized views for Dagster, computed by Spark, kept in Delta, fed by Kafka."""

from typing import TYPE_CHECKING, Any

from backfill_assets.model import delta_table, kafka_source, materialized_view

if TYPE_CHECKING:
    from backfill_assets.definitions import build_definitions

__all__ = ["build_definitions", "delta_table", "kafka_source", "materialized_view"]


def __getattr__(name: str) -> Any:
    if name == "build_definitions":  # imports Dagster, which takes a second that declarations alone need not pay
        from backfill_assets.definitions import build_definitions

        return build_definitions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
