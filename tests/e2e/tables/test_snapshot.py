"""Strategy `snapshot` on real Delta tables: history from one pinned version, then every version of the change log."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.compute.table_rows import Scratch, table_rows
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.progress.reads import ChangesRead, SnapshotRead
from tests.support.lake import Lake
from tests.support.settings import CHECKS, FULL

pytestmark = pytest.mark.e2e

QUERY = "SELECT id, upper(name) AS name, amount * 2 AS twice FROM orders WHERE amount > 10"
COLUMNS = ("id", "name", "twice")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def check(lake: Lake, *checks: str, view: str = "large") -> None:
    for each in checks:
        outcome = lake.project.check(view, each)
        assert outcome.passed, f"{each}: {outcome.summary}"


def test_history_is_read_in_chunks_and_changes_of_every_kind_follow(lake: Lake) -> None:
    for first in range(0, 1000, 125):
        lake.append("orders", ({"id": at, "name": f"n{at % 7}", "amount": at % 50} for at in range(first, first + 125)))
    lake.view("large", QUERY, lake.table("orders"))
    done = lake.project.refresh("large", Limits(chunk_rows=300))
    assert done.report.stopped is Stop.CAUGHT_UP
    assert len(done.report.epochs) == 4
    assert sum(each.rows_read for each in done.report.epochs) == 1000
    assert done.report.record.live
    if FULL:
        check(lake, *CHECKS)
    assert lake.found("large", COLUMNS) == lake.expected("large", QUERY, "orders")

    lake.append("orders", ({"id": at, "name": "new", "amount": 40} for at in range(1000, 1100)))
    lake.sql(
        "orders",
        "UPDATE {t} SET amount = amount + 20 WHERE id % 9 = 0",
        "DELETE FROM {t} WHERE id % 11 = 0",
        "UPDATE {t} SET amount = 0 WHERE id BETWEEN 200 AND 300",
        "OPTIMIZE {t}",
    )
    done = lake.project.refresh("large")
    assert done.report.record.engine == "arrow"
    assert sum(lake.found("large", COLUMNS).values()) == done.report.record.rows_total
    assert lake.found("large", COLUMNS) == lake.expected("large", QUERY, "orders")
    check(lake, *CHECKS)
    assert lake.project.refresh("large").report.epochs == []


@pytest.mark.full
def test_deletion_vectors_partitions_of_any_value_and_folders_with_spaces(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "a b")
    lake.sql(
        "orders",
        "CREATE TABLE {t} (id BIGINT, place STRING, day DATE, number INT, amount INT) USING delta "
        "PARTITIONED BY (place, day, number) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', "
        "'delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {t} SELECT id, element_at(array('a b', 'x/y', 'p=1%2F', NULL), CAST(id % 4 AS INT) + 1), "
        "IF(id % 4 < 2, NULL, DATE'2024-02-29'), IF(id % 4 = 0, NULL, 7), 1 FROM range(0, 200, 1, 1)",
        "DELETE FROM {t} WHERE id % 7 = 0",
        "DELETE FROM {t} WHERE id % 7 = 1",
    )
    assert any("deletionVector" in each for each in logged(lake, "orders")), "deletes are written as vectors"
    query = "SELECT * FROM orders"
    columns = ("id", "place", "day", "number", "amount")
    lake.view("large", query, lake.table("orders"))
    first = lake.project.refresh("large", Limits(chunk_rows=60, max_rows=60))
    assert not first.report.record.live
    check(lake, "exactly_once")
    lake.sql("orders", "DELETE FROM {t} WHERE id % 7 = 2", "UPDATE {t} SET amount = 2, place = 'a b' WHERE id % 7 = 3")
    second = lake.project.refresh("large", Limits(chunk_rows=60, max_rows=60))
    check(lake, "exactly_once")
    third = lake.project.refresh("large")
    epochs = [each for done in (first, second, third) for each in done.report.epochs]
    assert sum(each.rows_read for each in epochs if each.engine == "append") == sum(
        1 for at in range(200) if at % 7 > 1
    )
    assert third.report.record.live
    assert lake.found("large", columns) == lake.expected("large", query, "orders")
    check(lake, *CHECKS)


@pytest.mark.full
def test_a_view_that_rested_for_weeks_reads_on_as_long_as_the_files_are_there(lake: Lake) -> None:
    """By default, Delta refuses versions that are older than the retention of removed files, vacuumed or not."""
    made = lake.spark.range(0, 40).selectExpr("id", "id % 4 AS part", "id AS amount")
    lake.write("orders", made.coalesce(1), by=["part"])
    lake.age("orders", since=0, days=40)
    highest = "SELECT part, max(amount) AS amount, count(*) AS n FROM orders GROUP BY part"
    lake.view("large", "SELECT * FROM orders", lake.table("orders"))
    lake.view("highest", highest, lake.table("orders"))
    for view in ("large", "highest"):
        lake.project.refresh(view)
    lake.sql(
        "orders",
        "DELETE FROM {t} WHERE id >= 36",
        "UPDATE {t} SET amount = amount - 10 WHERE id = 35",
        "DELETE FROM {t} WHERE id = 34",
    )
    lake.age("orders", since=1, days=20)
    assert lake.project.refresh("large").report.record.live
    assert lake.found("large", ("id", "amount")) == lake.expected("large", "SELECT id, amount FROM orders", "orders")
    for _ in range(3):
        assert len(lake.project.refresh("highest", Limits(chunk_rows=1, max_rows=1)).report.epochs) == 1
        assert lake.found("highest", ("part", "amount", "n")) == lake.expected("highest", highest, "orders")
        check(lake, "exactly_once", view="highest")
    assert lake.project.refresh("highest").report.epochs == []


@pytest.mark.full
def test_each_chunk_reads_its_own_files_and_no_others(lake: Lake) -> None:
    lake.append("orders", ({"id": at, "part": at} for at in range(5000)), partition_by=["part"])
    lake.append("orders", [{"id": 5000, "part": 1}])
    lake.view("large", "SELECT id FROM orders", lake.table("orders"))
    taken: list[set[Path]] = []
    done = lake.project.refresh("large", Limits(chunk_rows=2000), on_step=only_planned_files(lake, taken))
    assert sum(each.rows_read for each in done.report.epochs) == 5001
    assert [sum(map(len, taken)), len(set.union(*taken)), len(taken)] == [5001, 5001, 3], "each file in one chunk"
    assert lake.found("large", ["id"]) == {(at,): 1 for at in range(5001)}


@pytest.mark.full
def test_one_large_file_is_never_cut_and_its_rows_are_read_once(lake: Lake) -> None:
    lake.write("orders", lake.spark.range(0, 2_000_000, 1, 1))
    lake.view("large", "SELECT id, id % 7 AS day FROM orders", lake.table("orders"), strategy="snapshot")
    (epoch,) = lake.project.refresh("large", Limits(chunk_rows=1000)).report.epochs
    assert (epoch.rows_read, epoch.rows_written, epoch.live) == (2_000_000, 2_000_000, True)
    held = lake.spark.read.format("delta").load(lake.location("large"))
    assert [tuple(row) for row in held.selectExpr("count(*)", "count(DISTINCT id)", "sum(day)").collect()] == [
        (2_000_000, 2_000_000, sum(at % 7 for at in range(2_000_000)))
    ]


def only_planned_files(lake: Lake, taken: list[set[Path]]) -> Callable[[str], None]:
    """While a chunk is computed, all files of the table are moved away except those in its plan, which are recorded."""
    folder, aside = Path(lake.path("orders")), lake.root / "aside"

    def on_step(step: str) -> None:
        if step == "planned":
            record = lake.project.record("large")
            plan = lake.project.workspace().state.ledger().plan(record.target, record.incarnation, record.epoch + 1)
            assert plan is not None
            (read,) = plan.table_reads
            assert isinstance(read, SnapshotRead)
            upstream = lake.project.workspace().inputs(lake.declared("large")).tables["orders"]
            taken.append({folder / each.path for each in upstream.chosen(read)})
            move(set(folder.rglob("*.parquet")) - taken[-1], folder, aside)
        if step == "staged":
            move(set(aside.rglob("*.parquet")), aside, folder)

    return on_step


def move(files: set[Path], source: Path, target: Path) -> None:
    for file in files:
        to = target / file.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        file.rename(to)


def logged(lake: Lake, name: str) -> list[str]:
    """The log of a table, commit by commit."""
    return [each.read_text() for each in sorted(Path(lake.path(name)).glob("_delta_log/*.json"))]


def test_one_row_an_empty_table_and_one_that_is_emptied_meanwhile(lake: Lake) -> None:
    for name, rows in (("one", 1), ("none", 0), ("emptied", 30)):
        lake.append(name, pa.table({"id": pa.array(range(rows), pa.int64())}))
        lake.view(f"of_{name}", f"SELECT id FROM {name}", lake.table(name))
    assert lake.project.refresh("of_none").report.record.live
    assert lake.project.refresh("of_one").report.record.rows_total == 1
    lake.append("emptied", [{"id": 100}])
    assert not lake.project.refresh("of_emptied", Limits(chunk_rows=1, max_rows=1)).report.record.live
    lake.sql("emptied", "DELETE FROM {t}")
    lake.append("none", [{"id": 5}])
    for name in ("one", "none", "emptied"):
        done = lake.project.refresh(f"of_{name}").report
        assert done.record.live
        assert lake.found(f"of_{name}", ["id"]) == lake.expected(f"of_{name}", f"SELECT id FROM {name}", name)
        assert lake.project.refresh(f"of_{name}").report.epochs == []
    assert lake.project.record("of_emptied").rows_total == 0


def test_changes_by_every_command_that_delta_has_are_followed(lake: Lake) -> None:
    lake.write("orders", lake.spark.range(100).selectExpr("id", "id % 10 AS amount", "'x' AS name").repartition(4))
    query, columns = "SELECT * FROM orders", ("id", "amount", "name")
    lake.view("large", query, lake.table("orders"))
    lake.project.refresh("large", Limits(chunk_rows=20, max_rows=20))
    lake.sql("orders", "ALTER TABLE {t} ADD COLUMN (note STRING)")
    lake.project.refresh("large", Limits(chunk_rows=20, max_rows=20))
    if FULL:
        check(lake, "exactly_once")
    lake.sql(
        "orders",
        "MERGE INTO {t} t USING (SELECT id, id + 1 AS amount, 'm' AS name, 'n' AS note FROM range(90, 120)) s "
        "ON t.id = s.id WHEN MATCHED AND s.id < 95 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        "OPTIMIZE {t} ZORDER BY (amount)",
    )
    assert lake.project.refresh("large").report.record.live
    assert lake.found("large", columns) == lake.expected("large", f"SELECT {', '.join(columns)} FROM orders", "orders")
    merged = DeltaTable(lake.path("orders")).version()
    lake.write(
        "orders",
        lake.spark.range(50, 80).selectExpr("id", "id AS amount", "'o' AS name", "'n' AS note"),
        mode="overwrite",
    )
    lake.project.refresh("large")
    assert lake.found("large", columns) == lake.expected("large", f"SELECT {', '.join(columns)} FROM orders", "orders")
    if FULL:
        lake.sql("orders", f"RESTORE TABLE {{t}} TO VERSION AS OF {merged}")
    else:
        DeltaTable(lake.path("orders")).restore(merged)
    lake.sql("orders", "UPDATE {t} SET amount = -1 WHERE id < 5")
    done = lake.project.refresh("large").report
    assert done.record.rows_total == 115
    assert lake.found("large", columns) == lake.expected("large", f"SELECT {', '.join(columns)} FROM orders", "orders")
    check(lake, *CHECKS)


@pytest.mark.full
def test_change_files_hold_what_the_feed_gives_wherever_they_are_taken_for_it(lake: Lake) -> None:
    lake.write("orders", lake.spark.range(100).selectExpr("id", "id % 10 AS amount").repartition(2))
    lake.append("orders", [{"id": 100, "amount": 1}, {"id": 101, "amount": None}])
    lake.sql(
        "orders",
        "UPDATE {t} SET amount = amount + 1 WHERE id % 3 = 0",
        "MERGE INTO {t} t USING (SELECT id, 7L AS amount FROM range(90, 110)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id < 95 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        "ALTER TABLE {t} ADD COLUMN (note STRING)",
        "INSERT INTO {t} VALUES (200, 1, 'new')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "DELETE FROM {t} WHERE id = 50",
        "UPDATE {t} SET note = 'u' WHERE id = 51",
        "DELETE FROM {t}",
    )
    upstream = DeltaUpstream("orders", TableLocation(uri=lake.path("orders")))
    direct = {number: taken_directly(lake, upstream, number, number) for number in range(1, upstream.now().version + 1)}
    assert {number for number, taken in direct.items() if taken} == {1, 2, 3, 5, 8}
    assert taken_directly(lake, upstream, 1, 3)
    assert taken_directly(lake, upstream, 3, 5), "with the column that came within"


def taken_directly(lake: Lake, upstream: DeltaUpstream, first: int, last: int) -> bool:
    """Whether versions are read from their files alone; if so, these must give exactly the rows of Delta's own feed."""
    read = ChangesRead(source="orders", table_id="", first=first, last=last, rows=1)
    if upstream.change_files(read) is None:
        return False
    rows = table_rows(lake.spark, upstream, read, upstream.columns(), Scratch(table=upstream.location, path="unused"))
    feed = lake.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", first)
    told = feed.option("endingVersion", last).load(upstream.location.uri).select(*rows.columns)
    assert Counter(rows.collect()) == Counter(told.collect()) != Counter()
    return True
