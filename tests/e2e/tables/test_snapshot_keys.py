"""Keys of views over Delta tables: composite, null, NaN, hidden, oddly named, of several parts; and Spark's merge."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.backfill.control import Limits
from backfill_assets.backfill.epoch import Staged
from backfill_assets.errors import ForeignWriteError, QueryError
from backfill_assets.model import KafkaSource, MaterializedView
from backfill_assets.operations import refresh, reset
from backfill_assets.resources.merge import merge_large
from backfill_assets.workspace import Table, Workspace
from tests.support.lake import Lake

pytestmark = pytest.mark.e2e

SOME = Limits(chunk_rows=20, max_rows=20)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def exact(lake: Lake, view: str, query: str, columns: list[str], *names: str) -> None:
    assert lake.found(view, columns) == lake.expected(view, query, *names)
    for check in ("unique_key", "exactly_once"):
        outcome = lake.project.check(view, check)
        assert outcome.passed, f"{check}: {outcome.summary}"


class Large(Workspace):
    """A workspace in which every keyed change counts as too large for this process's memory."""

    between: Callable[[], object]
    """What happens after the look and before Spark merges."""

    def table(self, declared: KafkaSource | MaterializedView) -> Table:
        found = super().table(declared)
        found.output.merge_memory = 0
        merge = found.output.merge_large

        def merge_late(*given: Any) -> None:
            self.between()
            merge(*given)

        found.output.merge_large = merge_late
        return found


def large(lake: Lake, between: Callable[[], object] = lambda: None) -> Workspace:
    plain = lake.project.workspace()
    made = Large(declared=plain.declared, store=plain.store, kafka=plain.kafka, spark=plain.spark)
    made.between = between
    return made


ODD = "SELECT `Key` AS `Select`, name AS OddName FROM odd"


@pytest.mark.parametrize("engine", ["delta-rs", pytest.param("spark", marks=pytest.mark.full)])
def test_composite_hidden_keys_with_null_nan_negative_zero_and_keywords_by_either_engine(
    lake: Lake, engine: str
) -> None:
    lake.sql(
        "odd",
        "CREATE TABLE {t} (`Key` STRING, x DOUBLE, `order` INT, name STRING) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "INSERT INTO {t} SELECT IF(id % 6 = 0, NULL, concat('k', id % 6)), IF(id < 6, double('NaN'), "
        "IF(id < 12, NULL, CAST(id AS DOUBLE))), CAST(id AS INT), 'a' FROM range(60)",
        "INSERT INTO {t} VALUES ('zero', double('-0.0'), 60, 'a')",
    )
    lake.view("large", ODD, lake.table("odd", key=["Key", "x"]))
    lake.project.refresh("large")
    assert lake.project.record("large").rows_total == 61
    lake.sql(
        "odd",
        "UPDATE {t} SET name = 'b' WHERE isnan(x) OR `Key` IS NULL OR `Key` = 'zero'",
        "DELETE FROM {t} WHERE x IS NULL AND (`Key` IS NULL OR `Key` = 'k3')",
        "INSERT INTO {t} VALUES (NULL, NULL, 0, 'back'), ('new', double('NaN'), 1, 'new')",
        "UPDATE {t} SET x = x + 1000 WHERE x BETWEEN 20 AND 30",
    )
    if engine == "spark":
        done = refresh(large(lake), "large", Limits(), run_id="large").report
    else:
        done = lake.project.refresh("large").report
    assert done.record.engine == engine
    assert (done.record.rows_total, len(done.epochs)) == (61, 1)
    exact(lake, "large", ODD, ["`Select`", "OddName"], "odd")
    assert lake.project.refresh("large").report.epochs == []
    if engine == "spark":
        assert_stale_merge_changes_nothing(lake)


def assert_stale_merge_changes_nothing(lake: Lake) -> None:
    """A merge that a run of the life before had planned comes after the reset: its numbers are used up."""
    stale = lake.project.record("large")
    made: list[Staged] = []
    workspace = large(lake)
    table = workspace.table(workspace.declared["large"])
    lake.sql("odd", "UPDATE {t} SET name = 'stale' WHERE `order` > 50")

    def stage_too(step: str) -> None:
        if step == "planned":
            plan = table.parts.ledger.plan(stale.target, stale.incarnation, stale.epoch + 1)
            assert plan is not None
            made.append(table.parts.compute.stage(plan, "stale", at=table.output.look().version))

    workspace.on_step = stage_too
    refresh(workspace, "large", Limits(), run_id="large")
    reset(lake.project.workspace(), "large")
    before = table.output.look()
    assert before.record is not None
    assert (before.record.incarnation, before.record.epoch) != (stale.incarnation, stale.epoch)
    late = stale.model_copy(update={"epoch": stale.epoch + 2, "attempt": "stale"})
    merge_large(workspace.runner, table.output.location, late, made[0])
    after = table.output.look()
    assert (after.version, after.record) == (before.version, before.record)
    assert sum(lake.found("large", ["OddName"]).values()) == 0


@pytest.mark.full
def test_what_slips_in_before_sparks_own_merge_is_seen_and_not_built_upon(lake: Lake) -> None:
    for first in (0, 10):
        lake.append("base", ({"id": at, "v": at} for at in range(first, first + 10)))
    query = "SELECT id, v FROM base"
    lake.view("copy", query, lake.table("base"))
    lake.project.refresh("copy", Limits(chunk_rows=10))
    place = f"delta.`{lake.location('copy')}`"

    lake.sql("base", "UPDATE {t} SET v = v + 1 WHERE id < 5")
    refresh(large(lake, lambda: lake.spark.sql(f"OPTIMIZE {place}")), "copy", Limits(), run_id="maintained")
    workspace = lake.project.workspace()
    output = workspace.table(workspace.declared["copy"]).output
    found = output.look()
    assert found.record is not None
    assert found.record.base is not None
    assert (found.record.engine, found.at) == ("spark", found.record.base + 2)
    assert lake.found("copy", ["id", "v"]) == lake.expected("copy", query, "base")

    for statement in (f"DELETE FROM {place} WHERE id = 7", f"ALTER TABLE {place} ADD COLUMN more INT"):
        lake.sql("base", "UPDATE {t} SET v = v + 1 WHERE id < 5")
        seen = f"version {output.look().version + 1} of the table changed data"
        with pytest.raises(ForeignWriteError, match=seen):
            refresh(large(lake, partial(lake.spark.sql, statement)), "copy", Limits(), run_id="meddled")
        assert lake.project.record("copy").engine == "spark", "the commit itself has landed"
        with pytest.raises(ForeignWriteError, match=seen):
            lake.project.refresh("copy")
        reset(lake.project.workspace(), "copy")
        lake.project.refresh("copy")
    exact(lake, "copy", query, ["id", "v"], "base")


def test_columns_that_are_mapped_by_name(lake: Lake) -> None:
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
