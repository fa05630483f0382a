"""Strategy `arrangement` on real Delta tables: exact at every epoch, although the table changes and is vacuumed
meanwhile."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from backfill_assets.adapters.compute.key_ranges import in_ranges
from backfill_assets.adapters.compute.table_rows import Scratch, table_rows
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.core.progress.positions import KeyRange, SnapshotPosition, TablePosition
from backfill_assets.core.progress.reads import ChangesRead, KeyRead
from backfill_assets.core.strategies.arrangement import done_ranges
from backfill_assets.declare.model import MaterializedView
from backfill_assets.errors import DuplicateKeyError, NoStrategyError, VersionsLostError
from tests.support.lake import Lake
from tests.support.settings import CHECKS, FULL
from tests.support.statements import updated

pytestmark = pytest.mark.e2e


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def by_key(lake: Lake, name: str, query: str, *upstreams: Any, **given: Any) -> MaterializedView:
    return lake.view(name, query, *upstreams, strategy="arrangement", **given)


def test_rows_on_both_sides_of_an_end_within_a_leading_value_are_read(lake: Lake, spark: SparkSession) -> None:
    keys = [(1, 0), (1, 1), (1, 2), (2, 0), (None, 7)]
    lake.append("pairs", [{"a": a, "b": b} for a, b in keys])
    upstream = DeltaUpstream(name="pairs", location=TableLocation(uri=lake.path("pairs")), key=lambda: ("a", "b"))
    rows = spark.read.format("delta").load(lake.path("pairs"))
    for ranges, expected in (
        ([KeyRange(after=None, upto=("1", "0"))], [(1, 0), (None, 7)]),
        ([KeyRange(after=("1", "0"), upto=None)], [(1, 1), (1, 2), (2, 0)]),
        ([KeyRange(after=("1", "0"), upto=("1", "1"))], [(1, 1)]),
    ):
        found = [(row.a, row.b) for row in in_ranges(rows, upstream, ranges).collect()]
        assert Counter(found) == Counter(expected)


def test_nan_is_beyond_every_end_though_no_statistics_tell_of_it(lake: Lake, spark: SparkSession) -> None:
    lake.append("floats", [{"x": 1.5}, {"x": math.nan}])
    upstream = DeltaUpstream(name="floats", location=TableLocation(uri=lake.path("floats")), key=lambda: ("x",))
    rows = spark.read.format("delta").load(lake.path("floats"))
    assert in_ranges(rows, upstream, [KeyRange(after=("10.0",), upto=None)]).count() == 1
    assert in_ranges(rows, upstream, [KeyRange(after=None, upto=("10.0",))]).count() == 1


def chunk(rows: int) -> Limits:
    """One epoch of this many rows."""
    return Limits(chunk_rows=rows, max_rows=1)


def place(record: CommitRecord, table: str) -> TablePosition:
    assert isinstance(record.position, SnapshotPosition)
    return record.position.tables[table]


def check(lake: Lake, *checks: str, view: str = "large") -> None:
    for each in checks:
        outcome = lake.project.check(view, each)
        assert outcome.passed, f"{each}: {outcome.summary}"


def plan_of(lake: Lake, view: str = "large") -> Any:
    """The plan of the newest epoch."""
    record = lake.project.record(view)
    table = lake.project.workspace().table(lake.project.declared[view])
    return table.parts.ledger.plan(record.target, record.incarnation, record.epoch)


def vacuum(lake: Lake, name: str) -> None:
    """Remove every file that the newest version does not have, including change files and deletion vectors."""
    root = Path(lake.path(name))
    upstream = DeltaUpstream(name=name, location=TableLocation(uri=str(root), storage_options={}))
    kept = set[str]()
    for file in upstream.version(upstream.now().version).files:
        action = file.absolute(str(root))
        kept |= {action["path"], action.get("deletionVector", {}).get("pathOrInlineDv", "")}
    for path in (path for kind in ("*.parquet", "*.bin") for path in root.rglob(kind)):
        if "_delta_log" not in path.parts and path.as_uri() not in kept:
            path.unlink()


def delete(lake: Lake, name: str, where: str) -> None:
    """Delete rows with delta-rs, which takes milliseconds."""
    DeltaTable(lake.path(name)).delete(where)


def update(lake: Lake, name: str, where: str, **values: str) -> None:
    """Update rows with delta-rs."""
    updated(DeltaTable(lake.path(name)), values, where)


def exact_at_cursor(
    lake: Lake, query: str, columns: Sequence[str], where: Callable[[TablePosition], str | None]
) -> None:
    """The view is its query over the rows that have been read, according to the test itself."""
    at = place(lake.project.record("large"), "base")
    condition = where(at) or "TRUE"
    wanted = lake.expected("large", query.replace("FROM base", f"FROM (SELECT * FROM base WHERE {condition})"), "base")
    assert lake.found("large", columns) == wanted, f"at version {at.version}, {condition}"


def up_to_cursor(table: TablePosition) -> str | None:
    """SQL, for a key of one number, for what has been read."""
    if table.backfilled:
        return None
    ends = done_ranges(table)
    if not ends:
        return "FALSE"
    (end,) = ends
    assert end.after is None
    assert end.upto is not None
    return f"id <= {end.upto[0]} OR id IS NULL"


MERGE = (
    "MERGE INTO {t} t USING (SELECT id, 'm' AS name, id % 7 AS v FROM range(20, 80)) s ON t.id = s.id "
    "WHEN MATCHED AND s.id % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
STORM = (
    ("DELETE FROM {t} WHERE id % 5 = 1", "INSERT INTO {t} VALUES (1000, 'end', 1), (-5, 'start', 2)"),
    (MERGE,),
    ("OPTIMIZE {t} ZORDER BY (v)",),
    ("UPDATE {t} SET id = id + 2000 WHERE id BETWEEN 0 AND 9", "UPDATE {t} SET id = -id WHERE id BETWEEN 85 AND 95"),
    ("DELETE FROM {t} WHERE id > 40 AND id < 60", "INSERT INTO {t} SELECT id, 'again', 9 FROM range(41, 46)"),
    ("UPDATE {t} SET v = -v, name = NULL WHERE id % 2 = 0",),
)


@pytest.mark.full
def test_the_view_is_its_query_after_every_epoch_whatever_moves_and_is_vacuumed_between(lake: Lake) -> None:
    query, columns = "SELECT id, upper(name) AS name, v * 2 AS twice FROM base WHERE v <> 3", ("id", "name", "twice")
    lake.sql(
        "base",
        "CREATE TABLE {t} (id BIGINT, name STRING, v BIGINT) USING delta TBLPROPERTIES "
        "('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {t} SELECT /*+ REPARTITION(2) */ id, concat('n', id % 7), id % 11 FROM range(100)",
    )
    by_key(lake, "large", query, lake.table("base"))
    kinds = Counter[str]()
    for number, changes in enumerate((*STORM, ())):
        done = lake.project.refresh("large", chunk(40) if changes else Limits()).report
        kinds.update(read.kind for read in plan_of(lake).reads)
        vacuum(lake, "base")
        exact_at_cursor(lake, query, columns, up_to_cursor)
        if number == 3:
            check(lake, "exactly_once")
        lake.sql("base", *changes)
    assert done.record.live
    assert kinds["keys"] == len(STORM) + 1, "the table moved while its history was read"
    assert kinds["changes"] == len(STORM) - 1, "all epochs but the first and the one after OPTIMIZE had some"
    check(lake, *CHECKS)
    assert lake.project.refresh("large").report.epochs == []


def test_a_composite_key_of_few_leading_values_with_null_and_nan_is_cut_within_them(lake: Lake) -> None:
    lake.sql(
        "base",
        "CREATE TABLE {t} (`Key` STRING, x DOUBLE, at TIMESTAMP, v INT) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "INSERT INTO {t} SELECT /*+ REPARTITION(2) */ IF(id % 3 = 0, NULL, concat('it''s ', id % 3)), "
        "CASE WHEN id < 9 THEN double('NaN') WHEN id < 18 THEN NULL WHEN id < 27 THEN -id / 3 ELSE id / 7 END, "
        "IF(id % 12 = 4, NULL, timestamp_micros(1729989000000000 + id)), CAST(id AS INT) FROM range(120)",
    )
    query, columns = "SELECT v, `Key` AS k FROM base", ("v", "k")
    by_key(lake, "large", query, lake.table("base", key=["Key", "x", "at"]))
    lake.project.refresh("large", chunk(15))
    for epoch in range(3):
        if FULL:
            check(lake, "exactly_once", "positions_contiguous")
        assert 0 < lake.project.record("large").rows_total < 110, "three leading values make more than three chunks"
        update(lake, "base", '"Key" IS NULL AND v % 4 = 1 OR isnan(x)', v="v + 1000")
        update(lake, "base", f"v % 100 = {epoch + 49}", x="NULL")
        delete(lake, "base", f"v % 1000 = {epoch}")
        lake.project.refresh("large", chunk(40))
    assert lake.project.refresh("large").report.record.live
    assert lake.found("large", columns) == lake.expected("large", query, "base")
    check(lake, *CHECKS)


AGGREGATE = (
    "SELECT g, count(*) AS n, sum(v) AS total, min(v) AS low, max(v) AS high, avg(x) AS mean FROM base GROUP BY g"
)
GROUPED = ("g", "n", "total", "low", "high", "round(mean, 6)")


@pytest.mark.full
def test_aggregates_lose_their_extremes_only_within_what_was_read(lake: Lake) -> None:
    made = lake.spark.range(160).selectExpr("id", "id % 4 AS g", "(id * 37) % 160 AS v", "id / 8 AS x")
    lake.write("base", made.repartition(3))
    by_key(lake, "large", AGGREGATE, lake.table("base"))
    lake.project.refresh("large", chunk(30))
    storm: list[tuple[Callable[..., None], dict[str, str]]] = [
        (delete, {"where": "v > 140"}),
        (update, {"where": "id IN (3, 150)", "v": "500"}),
        (update, {"where": "v = 500 OR id < 8", "v": "1", "id": "id + 1000"}),
        (update, {"where": "id % 10 = 5", "g": "9"}),
        (delete, {"where": "v < 10 OR g = 2 AND id < 60"}),
    ]
    rounded = AGGREGATE.replace("avg(x)", "round(avg(x), 6)")
    for changed, how in storm:
        vacuum(lake, "base")
        changed(lake, "base", **how)
        assert not lake.project.refresh("large", chunk(30)).report.record.live
        exact_at_cursor(lake, rounded, GROUPED, up_to_cursor)
    lake.project.refresh("large")
    exact_at_cursor(lake, rounded, GROUPED, up_to_cursor)
    assert lake.project.record("large").live
    check(lake, *CHECKS)


@pytest.mark.full
def test_a_union_of_two_tables_goes_by_the_key_of_each(lake: Lake) -> None:
    for name, first in (("a", 0), ("b", 200)):
        rows = lake.spark.range(first, first + 80).selectExpr("id", "id % 5 AS v")
        lake.write(name, rows.repartition(2))
    union = "SELECT v FROM a UNION ALL SELECT v * 10 AS v FROM b WHERE v <> 4"
    by_key(lake, "parent", union, lake.table("a"), lake.table("b"))
    for _ in range(3):
        assert not lake.project.refresh("parent", chunk(30)).report.record.live
        update(lake, "a", "id % 3 = 0", v="v + 1")
        delete(lake, "a", "id % 17 = 3")
        update(lake, "b", "id % 7 = 0", id="1000 - id")
        check(lake, "exactly_once", view="parent")
    assert lake.project.refresh("parent").report.record.live
    assert lake.found("parent", ["v"]) == lake.expected("parent", union, "a", "b")
    check(lake, *CHECKS, view="parent")


@pytest.mark.full
def test_a_view_over_a_view_goes_by_its_hidden_key(lake: Lake) -> None:
    lake.write("a", lake.spark.range(80).selectExpr("id", "id % 5 AS v").repartition(2))
    parent = lake.view("parent", "SELECT v FROM a", lake.table("a"))
    for _ in range(2):  # a file each time, with overlapping keys
        assert len(lake.project.refresh("parent", chunk(30)).report.epochs) == 1
    child = "SELECT v, v % 3 AS w FROM parent"
    by_key(lake, "large", child, parent)
    for epoch in range(3):
        assert not lake.project.refresh("large", chunk(30)).report.record.live
        update(lake, "a", f"id % 4 = {epoch}", v="v + 7")
        lake.append("a", [{"id": 1000 + epoch, "v": 3}])
        lake.project.refresh("parent")
        check(lake, "exactly_once")
    assert lake.project.refresh("large").report.record.live
    assert lake.found("large", ["v", "w"]) == lake.expected("large", child, "parent")
    check(lake, *CHECKS)


@pytest.mark.full
@pytest.mark.parametrize("step", [1, -1], ids=["ascending", "descending"])
def test_a_clustered_table_is_read_once_and_cut_without_reading_it(lake: Lake, step: int) -> None:
    keys = range(120)[::step]
    for part in range(12):
        lake.append("base", ({"id": at, "v": at % 7} for at in keys[part * 10 : part * 10 + 10]))
    by_key(lake, "large", "SELECT id, v FROM base", lake.table("base"))
    files: Counter[str] = Counter()
    while not lake.project.refresh("large", chunk(20)).report.record.live:
        files.update(planned_files(lake))
    files.update(planned_files(lake))
    assert len(files) == 12
    assert set(files.values()) == {1}, "each file in one epoch"
    assert lake.found("large", ["id"]) == {(at,): 1 for at in range(120)}


def planned_files(lake: Lake) -> list[str]:
    """The files that Spark opens for the key ranges of the newest epoch."""
    workspace = lake.project.workspace()
    table = workspace.table(lake.project.declared["large"])
    upstream = table.parts.compute.upstreams["base"]  # type: ignore[attr-defined]
    reads = [read for read in plan_of(lake).reads if isinstance(read, KeyRead)]
    scratch = Scratch(table=table.output.location, path="unused")

    def opened(spark: SparkSession) -> list[str]:
        columns = upstream.columns()
        return [file for read in reads for file in table_rows(spark, upstream, read, columns, scratch).inputFiles()]

    return workspace.runner.run(opened)


@pytest.mark.full
def test_rows_that_come_beyond_the_cursor_are_read_once_and_sparse_ranges_move_it(lake: Lake) -> None:
    for part in range(4):
        lake.append("base", ({"id": at, "v": 0} for at in range(part * 100, part * 100 + 100)))
    by_key(lake, "large", "SELECT id, v FROM base", lake.table("base"))
    lake.project.refresh("large", chunk(100))
    delete(lake, "base", "id >= 100")
    lake.append("base", ({"id": at, "v": 1} for at in (105, 399, 5000)))
    ends = []
    while not (record := lake.project.refresh("large", chunk(1)).report.record).live:
        ends.append(up_to_cursor(place(record, "base")))
        check(lake, "exactly_once")
    assert ends == ["id <= 199 OR id IS NULL", "id <= 299 OR id IS NULL"]
    assert lake.found("large", ["id"]) == {(at,): 1 for at in [*range(100), 105, 399, 5000]}


@pytest.mark.full
def test_versions_with_and_without_a_feed_are_taken_in_one_epoch(lake: Lake) -> None:
    off = {"delta.enableChangeDataFeed": "false", "delta.appendOnly": "true"}
    for part in range(3):
        lake.append("base", ({"id": at, "v": 0} for at in range(part * 10, part * 10 + 10)), configuration=off)
    by_key(lake, "large", "SELECT id, v FROM base", lake.table("base"))
    lake.project.refresh("large", chunk(10))
    lake.append("base", [{"id": -1, "v": 1}, {"id": 100, "v": 1}])
    lake.sql(
        "base",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.appendOnly' = 'false')",
    )
    lake.sql("base", "UPDATE {t} SET v = 5 WHERE id IN (1, 15)", "DELETE FROM {t} WHERE id IN (2, 25)")
    lake.project.refresh("large", chunk(10))
    feeds = [(read.first, read.last) for read in plan_of(lake).reads if isinstance(read, ChangesRead)]
    assert len(feeds) == 2
    check(lake, *CHECKS)
    lake.project.refresh("large")
    assert lake.found("large", ["id", "v"]) == lake.expected("large", "SELECT id, v FROM base", "base")


@pytest.mark.full
def test_a_plan_whose_files_are_gone_is_made_again_but_never_over_a_gap_in_the_log(lake: Lake) -> None:
    for part in range(4):
        lake.append("base", ({"id": at, "v": 0} for at in range(part * 10, part * 10 + 10)))
    by_key(lake, "large", "SELECT id, v FROM base", lake.table("base"))
    lake.project.refresh("large", chunk(10))

    class DiedError(Exception):
        pass

    def die(step: str) -> None:
        if step == "planned":
            raise DiedError

    with pytest.raises(DiedError):
        lake.project.refresh("large", chunk(10), on_step=die)
    lake.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    lake.sql("base", "OPTIMIZE {t}", "VACUUM {t} RETAIN 0 HOURS")
    done = lake.project.refresh("large", chunk(10)).report
    assert [each.epoch for each in done.epochs] == [2]
    check(lake, *CHECKS)
    lake.sql("base", "UPDATE {t} SET v = 1 WHERE id < 20", "OPTIMIZE {t}")
    vacuum(lake, "base")
    with pytest.raises(VersionsLostError):
        lake.project.refresh("large", chunk(10))


@pytest.mark.full
def test_another_row_of_an_own_key_is_refused_though_it_came_ahead_of_the_cursor(lake: Lake) -> None:
    for part in range(3):
        lake.append("base", ({"id": at, "name": f"n{at}"} for at in range(part * 10, part * 10 + 10)))
    by_key(lake, "large", "SELECT name FROM base", lake.table("base"), primary_key="name")
    lake.project.refresh("large", chunk(10))
    lake.append("base", [{"id": 29, "name": "n3"}])
    with pytest.raises(DuplicateKeyError):
        lake.project.refresh("large")


@pytest.mark.parametrize(
    ("key", "reason"), [(None, "NO_KEY"), ("raw", "KEY_NOT_SORTABLE"), (["id", "tags"], "KEY_NOT_SORTABLE")]
)
def test_a_table_without_a_key_that_has_an_order_is_refused(lake: Lake, key: str | None, reason: str) -> None:
    lake.sql(
        "base",
        "CREATE TABLE {t} (id BIGINT, raw BINARY, tags ARRAY<STRING>) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "INSERT INTO {t} VALUES (1, X'00', array('a'))",
    )
    by_key(lake, "large", "SELECT id FROM base", lake.table("base", key=key))
    with pytest.raises(NoStrategyError) as refused:
        lake.project.refresh("large")
    assert refused.value.facts["reason"] == reason
    assert not Path(lake.location("large")).exists()
