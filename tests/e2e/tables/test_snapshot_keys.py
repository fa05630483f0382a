"""Keys of views over Delta tables: composite, null, NaN, hidden, with unusual names, of several parts; and Spark's
merge."""

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from backfill_assets.app.lifecycle import reset
from backfill_assets.app.refresh import refresh
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.records import Staged
from backfill_assets.errors import ExternalWriteError, QueryError
from backfill_assets.query.working_columns import WORKING
from tests.support.lake import Lake
from tests.support.large import large
from tests.support.settings import FULL

pytestmark = pytest.mark.e2e

SOME = Limits(chunk_rows=20, max_rows=20)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def exact(lake: Lake, view: str, query: str, columns: list[str], *names: str) -> None:
    assert lake.found(view, columns) == lake.expected(view, query, *names)
    for check in ("unique_key", "exactly_once") if FULL else ("exactly_once",):
        outcome = lake.project.check(view, check)
        assert outcome.passed, f"{check}: {outcome.summary}"


COPY = "SELECT id, v FROM base"
COPY_V = "SELECT v FROM base"
ODD = "SELECT `Key` AS `Select`, name AS OddName FROM odd"


def test_composite_hidden_keys_with_null_nan_negative_zero_and_keywords_by_either_engine(lake: Lake) -> None:
    schema = pa.schema({"Key": pa.string(), "x": pa.float64(), "order": pa.int32(), "name": pa.string()})
    rows = [
        {
            "Key": None if at % 6 == 0 else f"k{at % 6}",
            "x": math.nan if at < 6 else None if at < 12 else float(at),
            "order": at,
            "name": "a",
        }
        for at in range(60)
    ]
    rows.append({"Key": "zero", "x": -0.0, "order": 60, "name": "a"})
    lake.append("odd", pa.Table.from_pylist(rows, schema=schema))
    lake.view("large", ODD, lake.table("odd", key=["Key", "x"]))
    lake.project.refresh("large")
    assert lake.project.record("large").rows_total == 61
    for engine, workspace in (("arrow", lake.project.workspace()), ("spark", large(lake))):
        table = DeltaTable(lake.path("odd"))
        table.update({"name": f"'{engine}'"}, predicate='isnan(x) OR "Key" IS NULL OR "Key" = \'zero\'')
        table.delete('x IS NULL AND ("Key" IS NULL OR "Key" = \'k3\')')
        back = [
            {"Key": None, "x": None, "order": 0, "name": f"back {engine}"},
            {"Key": f"new {engine}", "x": math.nan, "order": 1, "name": "new"},
        ]
        lake.append("odd", pa.Table.from_pylist(back, schema=schema))
        DeltaTable(lake.path("odd")).update({"x": "x + 1000"}, predicate="x BETWEEN 20 AND 30")
        done = refresh(workspace, "large", Limits(), run_id=engine).report
        assert (done.record.engine, len(done.epochs)) == (engine, 1)
        exact(lake, "large", ODD, ["`Select`", "OddName"], "odd")
    assert lake.project.refresh("large").report.epochs == []
    assert_stale_merge_changes_nothing(lake)


def test_keys_may_have_the_names_of_columns_with_which_changes_are_computed(lake: Lake) -> None:
    names = ["Op", "_rows", *sorted(WORKING - {"__op", "__rows"}), "key_0", "part", "source", "target"]

    def keyed(*numbers: int) -> list[dict[str, int]]:
        return [{**dict.fromkeys(names, at), "v": at % 3} for at in numbers]

    lake.append("base", keyed(*range(9)))
    large_view = lake.view("large", COPY_V, lake.table("base", key=names))
    lake.view("child", "SELECT v + 1 AS w FROM large", large_view)
    for view in ("large", "child"):
        lake.project.refresh(view)
    for engine, workspace in (("arrow", lake.project.workspace()), ("spark", large(lake))):
        DeltaTable(lake.path("base")).update({"v": "v + 10"}, predicate='"Op" < 3')
        DeltaTable(lake.path("base")).delete(f'"Op" = {5 if engine == "arrow" else 6}')
        lake.append("base", keyed(100 if engine == "arrow" else 101))
        assert refresh(workspace, "large", Limits(), run_id=engine).report.record.engine == engine
        exact(lake, "large", COPY_V, ["v"], "base")
    lake.project.refresh("child")
    exact(lake, "child", "SELECT v + 1 AS w FROM large", ["w"], "large")


def assert_stale_merge_changes_nothing(lake: Lake) -> None:
    """A merge that was planned in the previous life comes after the reset: its version is taken."""
    stale = lake.project.record("large")
    made: list[Staged] = []
    workspace = large(lake)
    table = workspace.table(workspace.declared["large"])
    table.output.look()
    DeltaTable(lake.path("odd")).update({"name": "'stale'"}, predicate='"order" > 50')

    def stage_too(step: str) -> None:
        if step == "planned":
            plan = table.parts.ledger.plan(stale.target, stale.incarnation, stale.epoch + 1)
            assert plan is not None
            made.append(table.parts.compute.stage(plan, "stale", at=table.output.look().version))

    workspace.on_step = stage_too
    refresh(workspace, "large", Limits(), run_id="large")
    then = replace(table.output, location=replace(table.output.location))  # what another process has loaded
    then.look()
    reset(lake.project.workspace(), "large")
    found = lake.project.workspace()
    output = found.table(found.declared["large"]).output
    before = output.look()
    assert before.record is not None
    assert (before.record.incarnation, before.record.epoch) != (stale.incarnation, stale.epoch)
    late = stale.model_copy(update={"epoch": stale.epoch + 2, "attempt": "stale"})
    then.commit(late.model_copy(update={"engine": "spark"}), made[0])
    after = output.look()
    assert (after.version, after.record) == (before.version, before.record)
    assert sum(lake.found("large", ["OddName"]).values()) == 0


@pytest.fixture
def copied(lake: Lake) -> Lake:
    """A view `copy` of a table, in two files."""
    for ids in (range(10), range(10, 30, 2)):
        lake.append("base", ({"id": at, "v": at} for at in ids))
    lake.view("copy", COPY, lake.table("base"))
    lake.project.refresh("copy", Limits(chunk_rows=10))
    DeltaTable(lake.path("base")).update({"v": "v + 1"}, predicate="id < 5")
    return lake


@pytest.mark.full
def test_after_maintenance_in_between_sparks_merge_is_made_again(copied: Lake) -> None:
    compact = partial(DeltaTable(copied.location("copy")).optimize.compact)
    done = refresh(large(copied, compact), "copy", Limits(), run_id="maintained").report
    assert (done.record.engine, len(done.epochs)) == ("spark", 1)
    assert copied.found("copy", ["id", "v"]) == copied.expected("copy", COPY, "base")


def test_sparks_merge_rewrites_files_with_changed_rows_alone_and_its_feed_says_what_became_of_each(
    copied: Lake,
) -> None:
    place = copied.location("copy")
    DeltaTable(copied.path("base")).delete("id = 9")
    copied.append("base", [{"id": at, "v": at} for at in (15, 99)])  # one lies within the bounds of the file that stays
    before = set(DeltaTable(place).file_uris())
    refresh(large(copied), "copy", Limits(), run_id="fed")
    assert (len(before), len(before & set(DeltaTable(place).file_uris()))) == (2, 1)
    newest = DeltaTable(place).version()
    merged = max(version for version in range(newest + 1) if "MERGE" in entry(place, version))
    feed = copied.spark.read.format("delta").option("readChangeFeed", "true")
    rows = feed.option("startingVersion", merged).option("endingVersion", merged).load(place)
    found = Counter((row["id"], row["v"], row["_change_type"]) for row in rows.collect())
    kinds = ((0, "update_preimage"), (1, "update_postimage"))
    updated = [(at, at + more, kind) for at in range(5) for more, kind in kinds]
    assert found == Counter([*updated, (9, 9, "delete"), (15, 15, "insert"), (99, 99, "insert")])
    assert copied.found("copy", ["id", "v"]) == copied.expected("copy", COPY, "base")


@pytest.mark.full
@pytest.mark.parametrize(
    "statement", ["DELETE FROM {} WHERE id = 7", "ALTER TABLE {} ADD COLUMN more INT"], ids=["rows", "columns"]
)
def test_what_slips_in_before_sparks_merge_keeps_it_from_being_committed(copied: Lake, statement: str) -> None:
    workspace = copied.project.workspace()
    output = workspace.table(workspace.declared["copy"]).output
    seen = f"version {output.look().version + 1} of the table changed data"
    epoch = copied.project.record("copy").epoch
    meddle = partial(copied.spark.sql, statement.format(f"delta.`{copied.location('copy')}`"))
    with pytest.raises(ExternalWriteError, match=seen):
        refresh(large(copied, meddle), "copy", Limits(), run_id="meddled")
    assert copied.project.record("copy").epoch == epoch, "nothing was committed"
    with pytest.raises(ExternalWriteError, match=seen):
        copied.project.refresh("copy")
    reset(copied.project.workspace(), "copy")
    copied.project.refresh("copy")
    exact(copied, "copy", COPY, ["id", "v"], "base")


def entry(location: str, version: int) -> str:
    """The text of a commit."""
    return (Path(location) / "_delta_log" / f"{version:020d}.json").read_text()


@pytest.mark.full
def test_columns_that_are_mapped_by_name_are_read(lake: Lake) -> None:
    lake.sql(
        "mapped",
        "CREATE TABLE {t} (id BIGINT, `old name` STRING, part STRING, gone INT) USING delta PARTITIONED BY (part) "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name')",
        "INSERT INTO {t} SELECT /*+ REPARTITION(3) */ id, 'a', IF(id % 2 = 0, NULL, 'p q'), 1 FROM range(50)",
        "ALTER TABLE {t} RENAME COLUMN `old name` TO `new name`",
        "ALTER TABLE {t} DROP COLUMN gone",
        "DELETE FROM {t} WHERE id = 3",
    )
    query = "SELECT id, `new name` AS name, part FROM mapped"
    lake.view("large", query, lake.table("mapped"))
    lake.project.refresh("large", SOME)
    exact_now = partial(exact, lake, "large", query, ["id", "name", "part"], "mapped")
    lake.sql("mapped", "UPDATE {t} SET `new name` = 'b' WHERE id < 30", "DELETE FROM {t} WHERE id > 40")
    assert lake.project.refresh("large").report.record.live
    exact_now()


def test_a_hidden_key_whose_name_delta_cannot_hold_is_refused(lake: Lake) -> None:
    lake.sql(
        "spaced",
        "CREATE TABLE {t} (`the id` BIGINT, name STRING) USING delta TBLPROPERTIES "
        "('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name')",
    )
    lake.view("large", "SELECT name FROM spaced", lake.table("spaced", key="the id"))
    with pytest.raises(QueryError) as refused:
        lake.project.refresh("large")
    assert refused.value.reason == "COLUMN_NAME"


@pytest.mark.full
def test_union_of_two_tables_and_of_one_table_twice(lake: Lake) -> None:
    for name, first in (("a", 0), ("b", 20)):
        lake.append(name, ({"id": at, "v": at % 5} for at in range(first, first + 40)))
    tables = lake.table("a"), lake.table("b")
    two = "SELECT id, v FROM a UNION ALL SELECT id, v * 2 AS v FROM b WHERE v <> 4"
    twice = "SELECT id, v FROM a UNION ALL SELECT -id, v FROM a WHERE v > 2"
    lake.view("two", two, *tables)
    lake.view("twice", twice, tables[0])
    lake.project.refresh("two", SOME)
    lake.project.refresh("twice")
    lake.append("a", [{"id": 99, "v": 3}])
    lake.sql("a", "UPDATE {t} SET v = v + 1 WHERE id < 10")
    lake.sql("b", "DELETE FROM {t} WHERE id % 2 = 0")
    lake.project.refresh("twice")
    assert lake.project.refresh("two").report.record.live
    exact(lake, "two", two, ["id", "v"], "a", "b")
    exact(lake, "twice", twice, ["id", "v"], "a")


def test_copies_of_a_key_that_come_and_go_between_refreshes_leave_what_the_table_holds(lake: Lake) -> None:
    query = "SELECT id, v, tags FROM copies"
    lake.sql(
        "copies",
        "CREATE TABLE {t} (id BIGINT, v STRING, tags MAP<STRING, INT>) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "INSERT INTO {t} VALUES (1, 'old', map('a', 1)), (2, 'kept', NULL), (4, 'same', map())",
    )
    lake.view("large", query, lake.table("copies"))
    lake.project.refresh("large")
    lake.sql(
        "copies",
        "INSERT INTO {t} VALUES (3, 'right', map('b', 2)), (3, 'wrong', NULL), (1, 'new', map('a', 1))",
        "DELETE FROM {t} WHERE v = 'wrong'",
        "DELETE FROM {t} WHERE v = 'old'",
        "UPDATE {t} SET v = 'other' WHERE id = 4",
        "UPDATE {t} SET v = 'same' WHERE id = 4",
        "INSERT INTO {t} VALUES (5, 'brief', NULL)",
        "DELETE FROM {t} WHERE id = 5",
    )
    done = lake.project.refresh("large")
    assert (done.report.record.rows_written, done.report.record.rows_updated) == (2, 1)
    exact_ids = lake.found("large", ["id", "v"])
    assert sorted(exact_ids) == [(1, "new"), (2, "kept"), (3, "right"), (4, "same")]
    assert lake.project.check("large", "rows_conserved").passed
