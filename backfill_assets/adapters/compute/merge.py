"""Merges keyed changes with Spark, if they do not fit in this process's memory.

Spark commits by itself, on the newest version that it finds. If the table has advanced meanwhile, the transaction
number prevents the merge: Delta ignores a merge whose number the log has already reached, and a life that ends uses up
all of its numbers. Source: Delta's idempotent writes (`spark.databricks.delta.write.txnAppId`).
"""

from typing import TYPE_CHECKING

from backfill_assets.adapters.delta.commits import metadata_of
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.records import CommitRecord, Staged, app_id
from backfill_assets.query.ddl import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["merge_large"]

_OPERATION = "__op"


def merge_large(runner: SparkRunner, location: TableLocation, record: CommitRecord, staged: Staged) -> None:
    """Merge staged changes in one commit with the record's number and metadata."""
    runner.run(lambda spark: _merge(spark, location, record, staged))


def _merge(spark: "SparkSession", location: TableLocation, record: CommitRecord, staged: Staged) -> None:
    settings = {
        "spark.databricks.delta.write.txnAppId": app_id(record.target, record.incarnation),
        "spark.databricks.delta.write.txnVersion": str(record.epoch),
        "spark.databricks.delta.commitInfo.userMetadata": metadata_of(record)["userMetadata"],
    }
    folder = staged.files[0].path.partition(f"/{_OPERATION}=")[0]
    rows = spark.read.parquet(location.child(folder))
    names = [quoted(name) for name in rows.columns if name != _OPERATION]
    values = ", ".join(f"t.{name} = s.{name}" for name in names)
    rows.createOrReplaceTempView("backfill_changes")
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        spark.sql(
            f"MERGE INTO delta.`{location.uri}` t USING backfill_changes s "
            f"ON {' AND '.join(f't.{quoted(name)} <=> s.{quoted(name)}' for name in staged.key)} "
            f"WHEN MATCHED AND s.{_OPERATION} = 'delete' THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {values} "
            f"WHEN NOT MATCHED AND s.{_OPERATION} <> 'delete' THEN INSERT ({', '.join(names)}) "
            f"VALUES ({', '.join(f's.{name}' for name in names)})"
        ).collect()
    finally:
        for name in settings:
            spark.conf.unset(name)
        spark.catalog.dropTempView("backfill_changes")
