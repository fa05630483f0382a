"""Settings other than Spark's own, for everything on which results may depend, and a process that runs with them.

`python -m tests.support.hostile` reads requests as lines of JSON from its input, and answers each with a line.
"""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backfill_assets import kafka_source, materialized_view
from backfill_assets.adapters.runtime.session_settings import is_open
from backfill_assets.app.refresh import refresh
from backfill_assets.app.table_checks import CHECKS, run_check
from backfill_assets.app.wiring.table import Table
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.declare.model import Declared
from tests.support.lake import Lake
from tests.support.project import SAMPLES
from tests.support.settings import FULL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["KAFKA_ROWS", "RECORDS", "TABLE_QUERIES", "Teller", "change", "declare", "hostile", "prepare"]

ROOT = Path(__file__).parents[2]
SECONDS = 60

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
"""Settings that are not boolean, each with a value other than its default; and table defaults."""

FLIPPED = {"true": "false", "false": "true"}


def hostile(spark: "SparkSession") -> dict[str, str]:
    """Every setting of a session that the product does not leave unchanged, with a value other than Spark's default."""
    return {**{name: FLIPPED[value] for name, value in _switches(spark)}, **OTHERS}


def _switches(spark: "SparkSession") -> Iterator[tuple[str, str]]:
    """The boolean settings of this Spark and this Delta, with their defaults."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()

    def of(name: str) -> Any:
        return jvm.java.lang.Class.forName(f"{name}$", True, loader).getField("MODULE$").get(None)

    of("org.apache.spark.sql.delta.sources.DeltaSQLConf")  # its settings are registered once it is loaded
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
    """A table, created by Spark with its defaults, with deletion vectors, mapped columns and days before 1582."""
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
    """The changes of the table between two runs."""
    lake.sql("base", "UPDATE {t} SET name = 'changed' WHERE id < 3", "DELETE FROM {t} WHERE id = 9")


def declare(lake: Lake, view: str, topic: str) -> None:
    """A view over Kafka, or a view of rows or of groups over the table."""
    if view in TABLE_QUERIES:
        lake.view(view, TABLE_QUERIES[view], lake.table("base"))
    else:
        orders = kafka_source("orders", topic=topic, schema="id LONG, amount DECIMAL(12,2), at TIMESTAMP, tags STRING")
        lake.project.declare(orders, materialized_view(view, query=KAFKA_QUERY, upstreams=[orders]))


def refreshed(workspace: Workspace) -> dict[str, Any]:
    """Bring all tables up to date; returns the engine that wrote each."""
    return {
        name: refresh(workspace, name, Limits(), run_id=uuid.uuid4().hex).report.record.engine
        for name in workspace.declared
    }


def followed(workspace: Workspace) -> dict[str, Any]:
    """Bring all tables up to date, with Spark's merge for all changes."""
    return refreshed(
        MergedBySpark(declared=workspace.declared, store=workspace.store, kafka=workspace.kafka, spark=workspace.spark)
    )


def checked(workspace: Workspace) -> dict[str, Any]:
    """Run the checks that read rows on the view (in the full proof, all checks on all tables); returns the failures, and how
    many passed."""
    names = list(workspace.declared)[-1:] if not FULL else workspace.declared
    checks = CHECKS if FULL else ("exactly_once", "rows_conserved")
    outcomes = [run_check(workspace, name, check, full=True, seed=SAMPLES) for name in names for check in checks]
    failed = [outcome.summary for outcome in outcomes if not outcome.passed]
    return {"passed": len(outcomes) - len(failed), "failed": failed}


class MergedBySpark(Workspace):
    """A workspace in which all keyed changes are too large for this process."""

    def table(self, declared: Declared) -> Table:
        """Unchanged, except for the memory that a merge may use."""
        found = super().table(declared)
        found.output.merge_memory = 0
        return found


def started(workspace: Workspace) -> int:
    """Start Spark."""
    return workspace.runner.run(lambda spark: spark.range(1).count())


STORY = {"started": started, "refreshed": refreshed, "followed": followed, "checked": checked}


class Teller:
    """The process, seen from outside."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.hostile"],
            cwd=ROOT, env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def tell(self, lake: Lake, view: str, topic: str, part: str) -> Any:
        """Run a part of the scenario with a view; returns the process's answer."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps([str(lake.project.root), lake.project.servers, view, topic, part]) + "\n")
        stdin.flush()
        told = stdout.readline()
        assert told, f"the process has ended with exit code {self._process.wait(SECONDS)}; its errors are above"
        return json.loads(told)

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=SECONDS)


def main() -> None:
    """Run the requested parts."""
    answers, sys.stdout = sys.stdout, sys.stderr  # output of libraries is not an answer
    for line in sys.stdin:
        root, servers, view, topic, part = json.loads(line)
        lake = Lake(Path(root), servers)
        declare(lake, view, topic)
        answers.write(json.dumps(STORY[part](lake.project.workspace())) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
