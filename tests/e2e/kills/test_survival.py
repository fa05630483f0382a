"""What a table survives: log cleanup, a lost state store, restarts, reset, drop, and changed declarations."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.app import heartbeat
from backfill_assets.app.controls import set_controls
from backfill_assets.app.lifecycle import drop, maintain, rebuild, reset
from backfill_assets.app.status import status
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.app.wiring.table import Table
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.errors import (
    BackfillError,
    DefinitionChangedError,
    FencedError,
    PositionsLostError,
    StateLostError,
)
from backfill_assets.testing.crash_points import CrashPoint
from tests.support.project import Project, forget_at_once
from tests.support.runner import declared

pytestmark = pytest.mark.e2e

QUERY = "SELECT id, amount * 2 AS twice FROM orders"
CHUNKED = Limits(chunk_rows=6)


@pytest.fixture
def orders(project: Project) -> Project:
    """Source `orders` and view `large`, declared over a topic of twelve records."""
    topic = project.topic()
    project.declare(*declared(topic))
    more(project, 0)
    return project


def test_positions_outlive_log_cleanup_once_restated_and_are_never_guessed_without(orders: Project) -> None:
    orders.refresh("large", CHUNKED)
    before = orders.record("large")
    maintain(orders.workspace(), "large")
    restated = table_of(orders, "large").output.look().at
    clean_up_log(orders, "large", below=restated)
    assert orders.record("large").position == before.position
    more(orders, 12)
    orders.refresh("orders")
    assert [each.epoch for each in orders.refresh("large", CHUNKED).report.epochs] == [3, 4]
    assert ids(orders) == Counter(range(24))

    clean_up_log(orders, "large", below=table_of(orders, "large").output.look().version + 1)
    for attempt in (orders.refresh, lambda name: drop(orders.workspace(), name)):
        with pytest.raises(PositionsLostError, match="log was cleaned up") as caught:
            attempt("large")
        assert "reset large" in caught.value.hint
    assert status(orders.workspace(), "large").state == "broken"
    assert ids(orders) == Counter(range(24)), "nothing was begun again in silence"
    reset(orders.workspace(), "large")
    orders.refresh("large")
    assert_exact(orders, rows=24)


@pytest.mark.full
def test_a_log_expires_beyond_its_retention_and_takes_nothing_along_that_is_needed(
    orders: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "TIDY_EVERY", 2)
    orders.refresh("large", CHUNKED)
    first_life = orders.record("large").incarnation
    reset(orders.workspace(), "large")
    forget_at_once(table_of(orders, "large").output.location)
    orders.refresh("large", Limits(chunk_rows=1))
    log = Path(table_of(orders, "large").output.location.uri) / "_delta_log"
    more(orders, 12)
    orders.refresh("orders")
    before = orders.record("large").epoch
    assert [each.epoch for each in orders.refresh("large", CHUNKED).report.epochs] == [before + 1, before + 2]
    assert not (log / f"{before:020d}.json").exists(), "the run itself has shortened the log"
    assert_exact(orders, rows=24)
    maintain(orders.workspace(), "large")
    assert len(list(log.glob("*.json"))) < 4
    assert_exact(orders, rows=24)
    output = table_of(orders, "large").output
    ledger, target = orders.workspace().state.ledger(), output.target
    assert ledger.incarnations(target) == {first_life, orders.record("large").incarnation}
    drop(orders.workspace(), "large")
    assert ledger.incarnations(target) == set(), "also of a life that the log has forgotten"


def test_maintaining_a_busy_table_is_not_stopped_by_an_epoch_in_between(orders: Project) -> None:
    orders.refresh("large", CHUNKED)
    more(orders, 12)
    orders.refresh("orders")
    workspace = orders.workspace()
    epochs: list[CommitRecord] = []

    def go_on(step: str) -> None:
        if step == "verified" and not epochs:
            epochs.extend(orders.refresh("large", CHUNKED).report.epochs)

    workspace.on_step = go_on
    assert maintain(workspace, "large") == []
    assert [each.epoch for each in epochs] == [3, 4]
    assert_exact(orders, rows=24)

    def end(step: str) -> None:
        if step == "verified":
            workspace.on_step = lambda _step: None
            drop(orders.workspace(), "large")

    workspace = orders.workspace(on_step=end)
    with pytest.raises(FencedError):
        maintain(workspace, "large")


def test_a_ledger_that_was_lost_is_rebuilt_and_a_drop_deletes_the_plans_of_all_lives(orders: Project) -> None:
    orders.refresh("large", CHUNKED)
    reset(orders.workspace(), "large")
    orders.refresh("large", CHUNKED)
    ledger = orders.workspace().state.ledger()
    assert len(ledger.incarnations("views/large")) == 2
    shutil.move(orders.root / "warehouse" / "_state" / "plans", orders.root / "plans")
    with pytest.raises(StateLostError):
        orders.refresh("large")
    assert "large" in " ".join(rebuild(orders.workspace()))
    more(orders, 12)
    orders.refresh("orders")
    orders.refresh("large")
    assert_exact(orders, rows=24)
    shutil.copytree(orders.root / "plans", orders.root / "warehouse" / "_state" / "plans", dirs_exist_ok=True)
    assert len(ledger.incarnations("views/large")) == 2
    drop(orders.workspace(), "large")
    assert ledger.incarnations("views/large") == set()


def test_files_that_were_committed_outlive_a_sweep_though_the_log_forgot_their_commits(orders: Project) -> None:
    orders.refresh("large", CHUNKED)
    output = table_of(orders, "large").output
    committed = {path for path in Path(output.location.uri).rglob("*.parquet") if "_delta_log" not in path.parts}
    maintain(orders.workspace(), "large")
    clean_up_log(orders, "large", below=output.look().at)
    assert maintain(orders.workspace(), "large") == []
    assert len(committed) > 1
    assert all(path.exists() for path in committed), (
        "readers of older versions may be at work: vacuum knows for how long"
    )


@pytest.mark.full
def test_a_state_store_that_was_lost_or_restored_is_rebuilt_and_continues_exactly(orders: Project) -> None:
    state = orders.root / "warehouse" / "_state"
    orders.refresh("large", CHUNKED)
    shutil.copytree(state / "plans", orders.root / "old")
    more(orders, 12)
    orders.refresh("orders")
    orders.refresh("large", CHUNKED)
    lost_in: list[Callable[[], object]] = [
        lambda: shutil.rmtree(state),
        lambda: restore_backup(orders.root / "old", state / "plans"),
    ]
    for number, lose in enumerate(lost_in, start=2):
        lose()
        more(orders, 12 * number)
        for name in ("orders", "large"):
            with pytest.raises(StateLostError) as caught:
                orders.refresh(name)
            assert "backfill rebuild" in caught.value.hint
        assert rebuild(orders.workspace()) == ["sources/orders", "views/large"]
        epoch = orders.record("large").epoch
        orders.refresh("orders")
        assert [each.epoch for each in orders.refresh("large").report.epochs] == [epoch + 1]
        assert_exact(orders, rows=12 * (number + 1))


def test_what_an_operator_set_survives_restarts_and_holds_between_epochs(orders: Project) -> None:
    def pause() -> None:
        set_controls(orders.workspace(), "large", paused=True, by="test")

    done = orders.refresh("large", Limits(chunk_rows=3), on_step=CrashPoint("staged", action=pause))
    assert (done.report.stopped, len(done.report.epochs)) == (Stop.PAUSED, 1)
    still_stopped: list[dict[str, Any]] = [{}, {"paused": False, "throttle": 0}]
    for settings in still_stopped:
        set_controls(orders.workspace(), "large", by="test", **settings)
        done = orders.refresh("large")
        assert (done.report.stopped, done.report.epochs) == (Stop.PAUSED, [])
    set_controls(orders.workspace(), "large", throttle=5, by="test")
    done = orders.refresh("large", Limits(rows_per_second=1000))
    read = [after.done - before for before, after in zip([3, 8], done.report.epochs, strict=True)]
    assert read == [5, 4]
    assert done.report.seconds >= 1
    set_controls(orders.workspace(), "large", throttle="off", by="test")
    more(orders, 12)
    orders.refresh("orders")
    assert len(orders.refresh("large").report.epochs) == 1
    assert ids(orders) == Counter(range(24))


@pytest.mark.full
def test_drop_leaves_nothing_and_what_is_created_again_is_exact(orders: Project) -> None:
    orders.refresh("large", CHUNKED)
    orders.refresh("orders")
    lives = [orders.record("large").incarnation]
    for name in ("orders", "large"):
        assert orders.check(name, "rows_conserved").passed
        set_controls(orders.workspace(), name, paused=False, throttle=7, by="test")
        (Path(table_of(orders, name).output.location.uri) / f"{orders.record(name).incarnation}-9-abcdef123456").mkdir()
    reset(orders.workspace(), "large")
    assert ids(orders) == Counter()
    lives.append(orders.record("large").incarnation)
    orders.refresh("large", CHUNKED)
    assert ids(orders) == Counter(range(12))
    for name in ("large", "orders"):
        drop(orders.workspace(), name)
        drop(orders.workspace(), name)
        assert_gone(orders, name)
    orders.refresh("large", CHUNKED)
    orders.refresh("orders")
    assert orders.record("large").incarnation not in lives
    assert_exact(orders, rows=12)


def test_a_changed_declaration_is_refused_by_name(orders: Project) -> None:
    orders.refresh("large")
    for changed, named in (
        ({"query": "SELECT id FROM orders"}, ["query"]),
        ({"schema": "id LONG, amount DOUBLE, note STRING"}, ["schema"]),
        ({"schema": "id STRING", "format": "raw", "query": "SELECT id FROM orders"}, ["parser", "query", "schema"]),
    ):
        declare_changed(orders, **changed)
        with pytest.raises(DefinitionChangedError) as caught:
            orders.refresh("large")
        assert caught.value.facts["changed"] == named
        assert "backfill reset large" in caught.value.hint
    with pytest.raises(DefinitionChangedError, match="parser, schema"):
        orders.refresh("orders")
    reset(orders.workspace(), "orders")
    reset(orders.workspace(), "large")
    orders.refresh("large")
    assert sorted(json.loads(key)["id"] for key in ids(orders)) == list(range(12))


def test_reset_accepts_other_columns_and_their_files_can_be_compacted_and_filtered(orders: Project) -> None:
    orders.refresh("large", CHUNKED)
    declare_changed(
        orders,
        query="SELECT CAST(id AS STRING) AS id, CAST(if(id % 4 = 0, 'NaN', '0.5') AS DOUBLE) AS score, "
        "TIMESTAMP_NTZ '2024-02-29 12:00:00' AS at FROM orders",
    )
    reset(orders.workspace(), "large")
    orders.refresh("large", CHUNKED)
    maintain(orders.workspace(), "large")
    more(orders, 12)
    orders.refresh("orders")
    orders.refresh("large")
    maintain(orders.workspace(), "large")
    for condition, rows in (("score > 1", 6), ("at = TIMESTAMP_NTZ '2024-02-29 12:00:00'", 24)):
        assert count_by_spark(orders, condition) == rows, condition
    for check in CHECKS:
        assert orders.check("large", check).passed, check


def more(project: Project, first: int) -> None:
    topic = declared_topic(project)
    project.produce(topic, [{"id": number, "amount": number / 4} for number in range(first, first + 12)])


def declared_topic(project: Project) -> str:
    return project.workspace().registry.source("orders").topic


def declare_changed(
    project: Project, *, query: str = QUERY, schema: str = "id LONG, amount DOUBLE", **given: Any
) -> None:
    """Declare `orders` and `large` with something changed."""
    orders = kafka_source("orders", topic=declared_topic(project), schema=schema, **given)
    project.declare(orders, materialized_view("large", query=query, upstreams=[orders]))


def count_by_spark(project: Project, condition: str) -> int:
    """The number of rows of `large` that Spark finds; it skips files by their statistics."""
    table = table_of(project, "large")
    uri = table.output.location.uri
    return table.runner.run(lambda spark: spark.read.format("delta").load(uri).where(condition).count())


def table_of(project: Project, name: str) -> Table:
    return project.workspace().table(project.declared[name])


def ids(project: Project) -> Counter[Any]:
    return Counter(key for (key,) in project.rows("large", "id").elements())


def clean_up_log(project: Project, name: str, *, below: int) -> None:
    """Age all commits below a version, and let delta-rs clean up with a retention that somebody lowered."""
    location = table_of(project, name).output.location
    table = location.load()
    assert table is not None
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 1 hours"}, raise_if_not_exists=False)
    earlier = location.load(below)
    assert earlier is not None
    earlier.create_checkpoint()
    log = Path(location.uri) / "_delta_log"
    for file in log.glob("0*"):
        if int(file.name[:20]) < below:
            os.utime(file, (0, 0))
    table.cleanup_metadata()
    assert not (log / f"{below - 1:020d}.json").exists()


def restore_backup(old: Path, place: Path) -> None:
    shutil.rmtree(place)
    shutil.copytree(old, place)


def assert_gone(project: Project, name: str) -> None:
    """No data, plan, staged folder, setting, lease, proof or consumer group is left; only the log with its marker."""
    output = table_of(project, name).output
    target = f"{'views' if name == 'large' else 'sources'}/{name}"
    state = project.workspace().state
    assert [each.name for each in Path(output.location.uri).iterdir()] == ["_delta_log"]
    assert not output.look().exists
    record = output.look().record
    assert record is not None
    assert state.ledger().entries(target, record.incarnation, since=0, until=99) == []
    assert target not in state.leases()
    assert target not in state.all_controls()
    assert all(state.passed(target, check) is None for check in CHECKS)
    groups = project.admin.list_consumer_groups().result(timeout=30)
    assert [each.group_id for each in groups.valid] == []
    with pytest.raises(BackfillError):
        reset(project.workspace(), name)


def assert_exact(project: Project, *, rows: int) -> None:
    project.refresh("orders")
    project.refresh("large")
    assert ids(project) == Counter(range(rows))
    assert project.rows("orders", "id").total() == rows
    for name in ("orders", "large"):
        for check in ("positions_contiguous", "ledger_matches_table", "rows_conserved"):
            outcome = project.check(name, check)
            assert outcome.passed, (name, check, outcome)
