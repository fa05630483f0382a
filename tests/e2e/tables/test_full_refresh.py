"""Real tables whose changes are far larger than the tables: the view is recomputed, and updated in one commit."""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.compute import differences, parts_that_differ, scans
from backfill_assets.app.lifecycle import maintain
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.epoch.protocol import STEPS
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.progress.reads import FullRead
from backfill_assets.core.strategies import full_refresh
from backfill_assets.errors import DuplicateKeyError
from backfill_assets.testing.crash_points import CrashPoint
from tests.support.commits import epochs, losers
from tests.support.lake import Lake
from tests.support.processes import Processes
from tests.support.runner import LAKE_QUERY, order_of, over_lake
from tests.support.settings import CHECKS, FULL, one_in_gate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.e2e

ROWS = 30_000 if FULL else 3_000
COLUMNS = ("id", "twice")
REWRITES = 3
"""A table has to be overwritten this often until its changes are large enough."""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A table, and a live view over it."""
    if not FULL:
        monkeypatch.setattr(full_refresh, "FEWEST_BYTES", ROWS)
    lake = Lake(tmp_path)
    rewrite(lake, times=1)
    lake.project.declare(*over_lake(tmp_path))
    assert lake.project.refresh("large").report.record.live
    return lake


def rewrite(lake: Lake, name: str = "base", *, times: int = REWRITES, first: int = 0, rows: int = ROWS) -> None:
    """Overwrite a table with numbers that do not compress."""
    for _ in range(times):
        random = Random(f"{name} {first} {version(lake, name)}")
        values = pa.array([random.getrandbits(40) for _ in range(rows)])
        lake.append(name, pa.table({"id": range(first, first + rows), "v": values}), mode="overwrite")


def touch(lake: Lake, name: str = "base", *, times: int = REWRITES) -> None:
    """Overwrite a table with its own rows: a large change log without any change."""
    rows = DeltaTable(lake.path(name)).to_pyarrow_table()
    for _ in range(times):
        lake.append(name, rows, mode="overwrite")


def told(lake: Lake, view: str = "large") -> Counter[tuple[str, int]]:
    """The change feed of the view's newest version: the change of each row."""
    table = DeltaTable(lake.location(view))
    feed = pa.table(table.load_cdf(starting_version=table.version())).to_pylist()
    return Counter((row["_change_type"], row["id"]) for row in feed)


def version(lake: Lake, name: str = "base") -> int:
    place = Path(lake.path(name))
    return DeltaTable(place).version() if place.exists() else -1


def refreshed(lake: Lake, view: str = "large", *, epochs: int = 1) -> CommitRecord:
    report = lake.project.refresh(view).report
    assert (report.stopped, len(report.epochs), report.record.live) == (Stop.CAUGHT_UP, epochs, True)
    return report.record


def assert_right(
    lake: Lake,
    query: str,
    *names: str,
    view: str = "large",
    columns: tuple[str, ...] = COLUMNS,
    checks: Iterable[str] = CHECKS,
) -> None:
    """The view is its query, and the checks agree."""
    found = lake.found(view, columns)
    assert found == lake.expected(view, query, *names)
    assert found.total() > 0
    for check in checks:
        outcome = lake.project.check(view, check)
        assert outcome.passed, (check, outcome.summary)


def test_a_view_is_replaced_and_what_comes_after_is_followed(lake: Lake) -> None:
    before = lake.project.record("large")
    rewrite(lake, rows=ROWS - 5)
    record = refreshed(lake)
    assert (record.engine, record.epoch) == ("overwrite", before.epoch + 1)
    assert (record.rows_deleted, record.rows_total) == (before.rows_total, record.rows_written)
    assert_right(lake, LAKE_QUERY, "base")

    lake.sql("base", "DELETE FROM {t} WHERE id < 3", "UPDATE {t} SET v = 7 WHERE id = 5")
    assert refreshed(lake).engine == "arrow"
    assert_right(lake, LAKE_QUERY, "base", checks=())


@pytest.mark.full
def test_views_over_a_view_that_was_replaced_once_follow_it(lake: Lake) -> None:
    doubled = "SELECT id, twice * 2 AS twice FROM large"
    ends = "SELECT count(*) AS id, id % 10 AS twice FROM large GROUP BY id % 10"
    large = lake.declared("large")
    lake.view("child", doubled, large)
    lake.view("groups", ends, large)
    for view in ("child", "groups"):
        lake.project.refresh(view)
    rewrite(lake, rows=ROWS - 5)
    assert refreshed(lake).engine == "overwrite"
    for view, query in (("child", doubled), ("groups", ends)):
        assert refreshed(lake, view).engine != "overwrite"
        assert_right(lake, query, "large", view=view, checks=())

    lake.sql("base", "DELETE FROM {t} WHERE id < 3")
    assert refreshed(lake).engine == "arrow"
    assert refreshed(lake, "child").rows_deleted == 3
    assert_right(lake, doubled, "large", view="child", checks=("exactly_once", "rows_conserved"))


FEW = Counter({("update_preimage", 5): 1, ("update_postimage", 5): 1, ("delete", 7): 1, ("insert", ROWS): 1})


def change_few(lake: Lake) -> None:
    touch(lake)
    lake.sql("base", "UPDATE {t} SET v = v + 1 WHERE id = 5", f"DELETE FROM {{t}} WHERE id IN (7, {ROWS})")
    lake.append("base", [{"id": ROWS, "v": 1}])


@pytest.mark.parametrize("counted", one_in_gate("a share", "by parts", "all"))
def test_readers_see_only_differences_if_few_rows_differ(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, counted: str
) -> None:
    if counted == "a share":
        monkeypatch.setattr(differences, "COUNTED_ROWS", 0)
    if counted == "by parts":
        monkeypatch.setattr(parts_that_differ, "LEAST_ROWS", 0)
    change_few(lake)
    record = refreshed(lake)
    assert (record.engine, record.rows_written, record.rows_updated, record.rows_deleted) == ("arrow", 2, 1, 1)
    plan = lake.project.workspace().state.ledger().plan(record.target, record.incarnation, record.epoch)
    assert plan is not None
    assert all(isinstance(each, FullRead) for each in plan.reads), "they were not followed"
    assert told(lake) == FEW
    assert_right(lake, LAKE_QUERY, "base")
    touch(lake)
    record = refreshed(lake)
    assert (record.engine, record.rows_written, record.rows_deleted) == ("append", 0, 0), "nothing differs"
    assert_right(lake, LAKE_QUERY, "base", checks=())


def test_tables_of_which_a_small_view_was_computed_are_not_read_again_to_count_them(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differences, "COUNTED_ROWS", 2)
    total = "SELECT sum(a.v) AS total FROM base a JOIN base b USING (id)"
    lake.view("total", total, lake.table("base"), refresh_mode="full")
    lake.project.refresh("total")
    lake.sql("base", "UPDATE {t} SET v = v + 1 WHERE id = 5")
    counted: list[object] = []

    def alone(rows: "DataFrame") -> int:
        counted.append(rows)
        return rows.count()

    monkeypatch.setattr(scans, "_alone", alone)
    assert refreshed(lake, "total").rule == "full"
    assert_right(lake, total, "base", view="total", columns=("total",), checks=())
    assert not counted


@pytest.mark.full
def test_groups_that_differ_are_replaced_and_no_others(lake: Lake) -> None:
    sums = "SELECT id % 100 AS id, sum(v) AS twice, max(v) AS most FROM base GROUP BY id % 100"
    lake.view("sums", sums, lake.table("base"))
    lake.project.refresh("sums")
    touch(lake)
    lake.sql("base", "UPDATE {t} SET v = v + 1 WHERE id = 5", "DELETE FROM {t} WHERE id % 100 = 7")
    assert refreshed(lake, "sums").engine == "arrow"
    assert told(lake, "sums") == Counter({("update_preimage", 5): 1, ("update_postimage", 5): 1, ("delete", 7): 1})
    assert_right(lake, sums, "base", view="sums", columns=("id", "twice", "most"))


@pytest.mark.full
def test_a_duplicate_key_among_few_differences_is_refused(lake: Lake) -> None:
    touch(lake)
    before = lake.project.rows("large", *COLUMNS)
    for v in (1, 2):  # a key that the view has, and one that it does not have
        lake.append("base", [{"id": 7, "v": v}] if v == 1 else [{"id": ROWS, "v": 1}, {"id": ROWS, "v": 2}])
        with pytest.raises(DuplicateKeyError):
            lake.project.refresh("large")
        assert lake.project.rows("large", *COLUMNS) == before
        DeltaTable(lake.path("base")).delete(f"v < 3 AND id IN (7, {ROWS})")
    refreshed(lake)
    assert_right(lake, LAKE_QUERY, "base", checks=())


@pytest.mark.full
def test_groups_and_several_tables_are_recomputed_also_where_delta_has_to_read_them(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.sql(
        "parts",
        "CREATE TABLE {t} (id BIGINT, v BIGINT, part INT) USING delta PARTITIONED BY (part) TBLPROPERTIES "
        "('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')",
    )
    filled = "INSERT OVERWRITE {t} SELECT id + 1000000, xxhash64(id, %d), CAST(id %% 3 AS INT) FROM range(0, 30000)"
    lake.sql("parts", filled % 0)
    rewrite(lake, times=1)
    both = "SELECT id, v AS twice FROM base UNION ALL SELECT id, v AS twice FROM parts WHERE part <> 1"
    sums = "SELECT id % 100 AS id, sum(v) AS twice, max(v) AS most FROM base GROUP BY id % 100"
    lake.view("large", both, lake.table("base"), lake.table("parts"), primary_key="id")
    lake.view("sums", sums, lake.table("base"))
    for view in ("large", "sums"):
        lake.project.refresh(view)
    rewrite(lake, times=2)
    lake.sql("parts", *(filled % seed for seed in (1, 2)), "DELETE FROM {t} WHERE id % 7 = 0")
    rewrite(lake, times=3)
    assert refreshed(lake).engine == "overwrite"
    assert_right(lake, both, "base", "parts")
    assert refreshed(lake, "sums").engine == "overwrite"
    assert_right(lake, sums, "base", view="sums", columns=("id", "twice", "most"))


@pytest.mark.full
def test_a_table_that_was_emptied_empties_the_view(lake: Lake) -> None:
    rewrite(lake)
    DeltaTable(lake.path("base")).delete()
    record = refreshed(lake)
    assert (record.engine, record.rows_total, record.rows_written) == ("overwrite", 0, 0)
    assert lake.found("large", COLUMNS) == Counter()
    lake.append("base", [{"id": 1, "v": 2}])
    refreshed(lake)
    assert_right(lake, LAKE_QUERY, "base")


def test_a_duplicate_key_is_refused_until_it_is_corrected(lake: Lake) -> None:
    rewrite(lake)
    before = lake.project.rows("large", *COLUMNS)
    lake.append("base", [{"id": 7, "v": 1}])
    with pytest.raises(DuplicateKeyError, match=r"first: \(7,\)"):
        lake.project.refresh("large")
    assert lake.project.rows("large", *COLUMNS) == before
    DeltaTable(lake.path("base")).delete("id = 7 AND v = 1")
    assert refreshed(lake).engine == "overwrite"
    assert_right(lake, LAKE_QUERY, "base", checks=("exactly_once",))


@pytest.mark.full
def test_a_view_that_is_incremental_or_would_take_long_follows(lake: Lake) -> None:
    lake.view("steady", LAKE_QUERY, lake.table("base"), refresh_mode="incremental")
    lake.project.refresh("steady")
    rewrite(lake)
    assert refreshed(lake, "steady").engine == "arrow"
    assert_right(lake, LAKE_QUERY, "base", view="steady", checks=())
    done = lake.project.refresh("large", Limits(chunk_rows=ROWS // 10)).report
    assert [each.engine for each in done.epochs] == ["arrow"] * REWRITES
    assert_right(lake, LAKE_QUERY, "base", checks=())


@pytest.mark.full
def test_a_planned_version_that_was_vacuumed_gives_way_to_a_newer_one(lake: Lake) -> None:
    rewrite(lake)
    lake.project.refresh("large", Limits(max_rows=0))

    class Died(BaseException):
        pass

    def die() -> None:
        raise Died

    with pytest.raises(Died):
        lake.project.refresh("large", on_step=CrashPoint("planned", action=die))
    rewrite(lake)
    DeltaTable(lake.path("base")).vacuum(0, dry_run=False, enforce_retention_duration=False)
    record = refreshed(lake)
    assert isinstance(record.position, SnapshotPosition)
    assert (record.engine, record.position.tables["base"].version) == ("overwrite", version(lake))
    assert_right(lake, LAKE_QUERY, "base")


@pytest.mark.full
@pytest.mark.parametrize("change", [rewrite, change_few])
def test_a_kill_at_any_step_replaces_the_view_once(
    lake: Lake, processes: Processes, change: Callable[[Lake], None]
) -> None:
    for step in STEPS:
        before = lake.project.record("large")
        change(lake)
        processes.kill(order_of(lake.project), {"refresh": "large", "chunk_rows": ROWS}, step)
        assert lake.project.record("large").epoch == before.epoch + (step == "committed"), step
        assert len(losers(lake.project, "large")) == int(step in {"staged", "verified"})
        planned = lake.project.workspace().state.ledger().plan(before.target, before.incarnation, before.epoch + 1)
        assert (planned is None) == (step == "looked")
        assert planned is None or all(isinstance(each, FullRead) for each in planned.reads)
        lake.project.refresh("large")
        assert lake.found("large", COLUMNS) == lake.expected("large", LAKE_QUERY, "base")
        assert losers(lake.project, "large") == []
    assert epochs(lake.project, "large") == list(range(lake.project.record("large").epoch + 1)), "each epoch once"
    maintain(lake.project.workspace(), "large", vacuum_hours=0)
    assert_right(lake, LAKE_QUERY, "base")
