"""Has Spark write files into a folder of a store; for a process of its own."""

import json

from backfill_assets.adapters.delta.spark_files import write_files
from backfill_assets.adapters.delta.staged_files import described
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.storage.warehouse import Warehouse

__all__ = ["written"]


def written(uri: str, storage: str, folder: str, files: str) -> list[int]:
    """The rows of each file that Spark has written, of 100 rows in so many files."""
    warehouse = Warehouse(uri=uri, storage_options=json.loads(storage))
    table, runner = warehouse.table("views/a"), SparkResource().runner(warehouse)
    try:
        found = runner.run(
            lambda spark: write_files(spark.range(0, 100, 1, int(files)).select("id"), table, f"11111111-1-{folder}")
        )
        return [each.rows for each in described(table, found)]
    finally:
        runner.close()
