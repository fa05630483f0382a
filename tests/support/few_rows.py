"""Stages the same rows by Spark and by this process, in a store that both reach; for a process of its own."""

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from backfill_assets.adapters.compute import staged_rows as staging
from backfill_assets.adapters.compute.scans import Scans
from backfill_assets.adapters.compute.staged_rows import StagingFolder, Tasks, write_changes, write_rows
from backfill_assets.adapters.delta.column_metadata import FIXED_LENGTH
from backfill_assets.adapters.spark.resource import SparkResource, do_nothing
from backfill_assets.adapters.storage.put_if_absent import check_store
from backfill_assets.adapters.storage.warehouse import TableLocation, Warehouse
from backfill_assets.core.epoch.records import Plan
from backfill_assets.core.progress.positions import IngestPosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["staged_rows"]

VALUES = """VALUES
    ('insert', false, 9007199254740993L, 1.234567890123456789BD, double('NaN'), timestamp'9999-12-31 23:59:59.999999Z', 'a'),
    ('insert', true, NULL, NULL, -0.0D, timestamp'1500-06-01 00:00:00.000001Z', ''),
    ('insert', true, 1L, -0.1BD, 4.9E-324D, NULL, repeat('\\U0001F600', 90)),
    ('insert', false, 2L, 0.0BD, double('Infinity'), timestamp'2020-01-01 00:00:00Z', NULL),
    ('update', true, -9223372036854775808L, NULL, NULL, NULL, 'b '),
    ('update', false, 9223372036854775807L, 1BD, 1.1D, NULL, 'B'),
    ('delete', false, 3L, NULL, NULL, NULL, 'c')
    AS given(__op, odd, id, wei, x, at, word)"""
QUERY = f"""SELECT __op, odd, id, CAST(wei AS DECIMAL(38,18)) AS wei, x, at, CAST(at AS TIMESTAMP_NTZ) AS local,
    CAST(at AS DATE) AS day, word, CAST(word AS BINARY) AS raw, array(x, NULL) AS many,
    named_struct('d', wei, 't', at) AS named, map('k', x) AS by
    FROM {VALUES}"""


def staged_rows(uri: str, storage: str) -> dict[str, Any]:
    """What is counted and read back of rows that this process has written, and Spark, and what Spark reads of the query."""
    warehouse = Warehouse(uri=uri, storage_options=json.loads(storage))
    check_store(warehouse)
    runner = SparkResource().runner(warehouse)
    try:
        return runner.run(lambda spark: _staged(spark, warehouse.table("views/a")))
    finally:
        runner.close()


def _staged(spark: "SparkSession", table: TableLocation) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, most in (("few", staging.FEW_BYTES), ("much", 0)):
        staging.FEW_BYTES = most
        folder, rows = StagingFolder(table=table, name=f"11111111-1-{kind}", reach=do_nothing), spark.sql(QUERY)
        more = {"bytes": "sum(length(raw)) FILTER (WHERE length(raw) < 9)"}
        counts = write_changes(rows, folder, "odd", tasks=Tasks(1), scans=_scans(), more=more)
        found[kind] = {
            "counts": counts,
            "by": sorted(_writer(each.path) for each in folder.files()),
            "rows": _texts(folder.read(spark, "rows")),
            "columns": sorted({tuple(name for name, _ in each.columns) for each in folder.files()}),
            "wanted": _texts(rows.drop("odd")),
            "logs": [path for path in table.objects().names(folder.name) if "_delta_log" in path],
        }
    staging.FEW_BYTES = 0
    long = spark.sql(f"SELECT id, 'abcdefgh' AS code FROM {VALUES}").withMetadata("code", {FIXED_LENGTH: "char(5)"})
    place = StagingFolder(table=table, name="11111111-1-long", reach=do_nothing)
    found["long"] = write_rows(long, place, {"insert": "count(1)"}, tasks=Tasks(1), scans=_scans())
    odd = StagingFolder(table=table, name="11111111-1-odd", reach=do_nothing)
    write_rows(
        spark.sql(f"SELECT id AS `a, b=c` FROM {VALUES}"), odd, {"insert": "count(1)"}, tasks=Tasks(1), scans=_scans()
    )
    found["odd"] = [*odd.read(spark, "").columns, len(odd.files())]
    nothing = StagingFolder(table=table, name="11111111-2-none", reach=do_nothing)
    counts = write_rows(
        spark.sql(QUERY).where("FALSE"), nothing, {"insert": "count(1)"}, tasks=Tasks(1), scans=_scans()
    )
    return {**found, "none": {**counts, "files": len(nothing.files())}}


def _texts(rows: "DataFrame") -> list[str]:
    """Every value of every row, with the bits of numbers, in an order that does not depend on where it was read."""
    columns = sorted(name for name in rows.columns)
    found = rows.select(*columns).collect()
    return sorted(each for each, count in Counter(map(str, found)).items() for _ in range(count))


def _writer(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[:11] if name.startswith("part-00000-") else name[:5]


def _scans() -> Scans:
    nowhere = IngestPosition(topic="t", topic_id="t", history={}, begin={}, next={})
    return Scans(
        plan=Plan(
            target="views/a",
            incarnation="11111111",
            epoch=1,
            fingerprint={},
            reads=(),
            before=nowhere,
            after=nowhere,
            live=True,
        )
    )
