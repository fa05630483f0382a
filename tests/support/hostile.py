"""Settings that are not Spark's own, for all that results may depend on, and a story that is told under them.

Each part of it is told in a process of its own, `python -m tests.support.hostile ROOT SERVERS TOPIC PART`, in lines of JSON.
"""

import json
import sys
import uuid
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backfill_assets import kafka_source, materialized_view
from backfill_assets.backfill.control import Limits
from backfill_assets.operations import refresh
from backfill_assets.proofs import CHECKS, run_check
from backfill_assets.resources.session_settings import is_open
from backfill_assets.workspace import Declared, Table, Workspace
from tests.support.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["KAFKA_ROWS", "RECORDS", "TABLE_QUERIES", "change", "declare", "hostile", "prepare"]

DEFAULTS = "spark.databricks.delta.properties.defaults"
OTHERS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Asia/Kolkata",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.legacy.ctePrecedencePolicy": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.sources.partitionOverwriteMode": "DYNAMIC",
    "spark.sql.sources.default": "json",
    "spark.sql.sources.useV1SourceList": "",
    "spark.sql.defaultCatalog": "elsewhere",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PropagateEmptyRelation",
    "spark.sql.optimizer.windowGroupLimitThreshold": "0",
    "spark.sql.columnNameOfCorruptRecord": "theirs",
    "spark.sql.files.maxRecordsPerFile": "1",
    "spark.sql.functionResolution.sessionOrder": "first",
    "spark.sql.binaryOutputStyle": "HEX",
    "spark.sql.timeTravelVersionKey": "theirs",
    "spark.sql.pivotMaxValues": "1",
    "spark.sql.redaction.string.regex": "(?i)theirs",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.databricks.delta.stalenessLimit": "1h",
    "spark.databricks.delta.write.txnAppId": "theirs",
    "spark.databricks.delta.write.txnVersion": "99",
    "spark.databricks.delta.commitInfo.userMetadata": "theirs",
    "spark.databricks.delta.autoCompact.enabled": "true",
    "spark.databricks.delta.optimizeWrite.enabled": "true",
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "true",
    f"{DEFAULTS}.columnMapping.mode": "name",
    f"{DEFAULTS}.enableDeletionVectors": "true",
    f"{DEFAULTS}.enableRowTracking": "true",
    f"{DEFAULTS}.enableTypeWidening": "true",
    f"{DEFAULTS}.enableInCommitTimestamps": "true",
    f"{DEFAULTS}.enableChangeDataFeed": "false",
    f"{DEFAULTS}.checkpointPolicy": "v2",
    f"{DEFAULTS}.appendOnly": "true",
    f"{DEFAULTS}.dataSkippingNumIndexedCols": "0",
    "spark.sql.a.setting.that.nobody.knows.yet": "theirs",
}
"""Settings that are neither true nor false, each with another value than its default; and table defaults."""

FLIPPED = {"true": "false", "false": "true"}


def hostile(spark: "SparkSession") -> dict[str, str]:
    """Every setting of a session that is not left as it is found, with another value than Spark's default."""
    return {**{name: FLIPPED[value] for name, value in _switches(spark)}, **OTHERS}


def _switches(spark: "SparkSession") -> Iterator[tuple[str, str]]:
    """The settings of this Spark and this Delta that are true or false, with their defaults."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()

    def of(name: str) -> Any:
        return jvm.java.lang.Class.forName(f"{name}$", True, loader).getField("MODULE$").get(None)

    of("org.apache.spark.sql.delta.sources.DeltaSQLConf")  # its settings are there once it is loaded
    settings = of("org.apache.spark.sql.internal.SQLConf")
    entries = settings.getConfigEntries().iterator()
    while entries.hasNext():
        entry = entries.next()
        name, value = str(entry.key()), str(entry.defaultValueString())
        if value in FLIPPED and not is_open(name) and not settings.isStaticConfigKey(name):
            yield name, value


RECORDS = [
    {"id": at, "amount": f"{at}.50", "at": f"2024-03-10T23:30:{at:02d}Z", "tags": "a,b" if at % 2 else None}
    for at in range(1, 5)
]
KAFKA_QUERY = (
    "SELECT id, amount / 3 AS third, date(at) AS day, date_format(at, 'yyyy-MM-dd HH:mm') AS minute, "
    "size(split(tags, ',')) AS tags, concat('a\\nb', tags) AS text FROM orders WHERE id > 1"
)
KAFKA_ROWS = [
    (2, Decimal("0.833333"), date(2024, 3, 10), "2024-03-10 23:30", None, None),
    (3, Decimal("1.166667"), date(2024, 3, 10), "2024-03-10 23:30", 2, "a\nba,b"),
    (4, Decimal("1.500000"), date(2024, 3, 10), "2024-03-10 23:30", None, None),
]
TABLE_QUERIES = {
    "rows": "SELECT ID AS id, upper(name) AS name, at, CAST(day AS STRING) AS day, size(parts) AS parts FROM base",
    "groups": "SELECT date(at) AS day, count(*) AS rows, sum(amount) AS total, avg(amount) AS mean FROM base GROUP BY 1",
}


def prepare(lake: Lake) -> None:
    """A table, made by Spark as it is by default, with deletion vectors, mapped columns and days of long ago."""
    lake.sql(
        "base",
        "CREATE TABLE {t} (id BIGINT, name STRING, amount DECIMAL(12,2), at TIMESTAMP, day DATE, parts ARRAY<STRING>) "
        "USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true', "
        "'delta.columnMapping.mode' = 'name')",
        "INSERT INTO {t} SELECT id, concat('n', id), id + 0.25, timestamp'1800-01-01 23:30:00Z' + "
        "make_interval(0, 0, 0, id), date'1500-01-01', IF(id % 2 = 0, NULL, array('x')) FROM range(0, 40, 1, 2)",
        "DELETE FROM {t} WHERE id = 7",
    )


def change(lake: Lake) -> None:
    """What happens to the table between two runs."""
    lake.sql("base", "UPDATE {t} SET name = 'changed' WHERE id < 3", "DELETE FROM {t} WHERE id = 9")


def declare(lake: Lake, topic: str) -> None:
    """A view over Kafka; one of rows and one of groups over the table."""
    orders = kafka_source("orders", topic=topic, schema="id LONG, amount DECIMAL(12,2), at TIMESTAMP, tags STRING")
    lake.project.declare(orders, materialized_view("large", query=KAFKA_QUERY, upstreams=[orders]))
    for name, query in TABLE_QUERIES.items():
        lake.view(name, query, lake.table("base"))


def refreshed(workspace: Workspace) -> Iterator[dict[str, Any]]:
    """Bring all up to date."""
    for name in workspace.declared:
        done = refresh(workspace, name, Limits(), run_id=uuid.uuid4().hex)
        yield {"table": name, "engine": done.report.record.engine}


def followed(workspace: Workspace) -> Iterator[dict[str, Any]]:
    """Bring all up to date, with Spark's merge for all changes; then run all checks on all."""
    large = MergedBySpark(
        declared=workspace.declared, store=workspace.store, kafka=workspace.kafka, spark=workspace.spark
    )
    yield from refreshed(large)
    for name in large.declared:
        for check in CHECKS:
            outcome = run_check(large, name, check, full=True)
            yield {"table": name, "check": check, "passed": outcome.passed, "summary": outcome.summary}


class MergedBySpark(Workspace):
    """A workspace in which all keyed changes are too large for this process."""

    def table(self, declared: Declared) -> Table:
        """As ever, but for the memory that a merge may take."""
        found = super().table(declared)
        found.output.merge_memory = 0
        return found


STORY = {"refreshed": refreshed, "followed": followed}


def main(root: str, servers: str, topic: str, part: str) -> None:
    """Tell a part of the story; a line for each thing that was done."""
    lake = Lake(Path(root), servers)
    declare(lake, topic)
    for each in STORY[part](lake.project.workspace()):
        sys.stdout.write(json.dumps(each) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
