"""Errors of Spark that affect product and proof alike are found by another reader of the same files and topics."""

import uuid
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from backfill_assets import delta_table, kafka_source, materialized_view
from backfill_assets.app.proof_case import Case
from backfill_assets.app.proof_samples import read_again
from backfill_assets.app.refresh import refresh
from backfill_assets.app.table_checks import CHECKS, Outcome, run_check
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.proof_scope import Everything
from tests.support.broker import configure
from tests.support.careless import IGNORE, careless, change_rows, damaged, drop_rows
from tests.support.damage import first, missing, recompact
from tests.support.lake import Lake
from tests.support.project import Project
from tests.support.settings import one_in_gate

pytestmark = pytest.mark.e2e

LEGACY = {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}
"""Days before 1582 are read as Julian dates, in files that do not name their writer."""

KINDS = """
    SELECT id, CAST(id AS TINYINT) AS b, float(IF(id = 1, 'NaN', '-0')) AS f, IF(id = 2, NULL, x'00ff') AS bytes,
        timestamp'1500-01-01 12:30:00.123456Z' + make_interval(0, 0, 0, 0, 0, 0, id) AS at,
        timestamp_ntz'9999-12-31 00:00' AS ntz, date'0001-01-01' AS day,
        CAST(-1.5 AS DECIMAL(38,18)) AS d, map('a', array(id, NULL)) AS m,
        IF(id = 3, NULL, named_struct('x', array(named_struct('y', 'z')), 't', timestamp'2024-01-01 00:00:00Z')) AS s
    FROM range(0, 4, 1, 1)
"""
"""Rows with values that readers may confuse with others."""

VIEWS = {
    "rows": "SELECT id, day, amount, parts FROM base WHERE amount < 100",
    "groups": "SELECT day, count(*) AS n FROM base GROUP BY day",
}


def row(at: int) -> dict[str, Any]:
    return {"id": at, "day": date(1500 + at % 3, 1, 1), "amount": Decimal(at), "parts": [{"x": at}] if at % 2 else None}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table of two files with days before 1582, and views over it."""
    lake = Lake(tmp_path)
    for start in (0, 20):
        lake.append("base", [row(at) for at in range(start, start + 20)])
    for name, query in VIEWS.items():
        lake.view(name, query, lake.table("base"))
    return lake


def checked(workspace: Workspace, name: str) -> Outcome:
    """The full proof; all other checks, and the cheap one, pass."""
    refresh(workspace, name, Limits(), run_id=uuid.uuid4().hex)
    for check in CHECKS:
        outcome = run_check(workspace, name, check, full=check != "exactly_once")
        assert outcome.passed, outcome
    assert run_check(workspace, name, "exactly_once", full=False).passed
    return run_check(workspace, name, "exactly_once", full=True)


@pytest.mark.parametrize("view", one_in_gate(*VIEWS))
def test_rows_that_a_session_hides_from_product_and_proof_are_missed(
    lake: Lake, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_rows(monkeypatch, "id % 4 <> 0", "id")
    outcome = checked(lake.project.workspace(), view)
    assert not outcome.passed
    assert "base: rows 0 to 20 of file part-" in outcome.summary
    assert "of 20 rows that another reader finds, Spark misses 5, and it returns 5 others" in outcome.summary
    assert (outcome.facts["missing"], outcome.facts["unexpected"]) == (0, 0), "Spark agrees with itself"


@pytest.mark.parametrize("view", one_in_gate(*VIEWS))
def test_days_that_a_session_moves_are_seen(lake: Lake, view: str) -> None:
    outcome = checked(careless(lake.project.workspace(), LEGACY), view)
    assert not outcome.passed
    assert "of 20 rows that another reader finds, Spark misses 20, and it returns 20 others" in outcome.summary


def test_a_damaged_file_that_a_session_passes_over_is_named(lake: Lake) -> None:
    lake.project.refresh("rows")
    file = min(Path(lake.path("base")).glob("*.parquet"))
    with damaged(file):
        (violation,) = again(careless(lake.project.workspace(), IGNORE), "rows")
    assert violation.startswith(f"base: another reader than Spark cannot read file {file.name}")


def again(workspace: Workspace, name: str) -> list[str]:
    """What other readers find, whatever Spark says of the table by itself."""
    table = workspace.table(workspace.registry.find(name))
    look = table.output.look()
    assert look.record is not None
    everything = Everything(reason="test")
    case = Case(workspace=workspace, table=table, look=look, record=look.record, since=everything, seed="seed")
    return read_again(case, Outcome(passed=True, summary="")).violations


def test_what_the_query_makes_of_rows_read_again_must_be_in_the_view(lake: Lake) -> None:
    lake.project.refresh("rows")
    assert again(lake.project.workspace(), "rows") == []
    recompact(lake.project, "rows", missing)
    (violation,) = again(lake.project.workspace(), "rows")
    assert violation.startswith(
        "1 of 40 rows that the query returns for what a reader other than Spark finds are not in the view"
    )


@pytest.mark.full
@pytest.mark.parametrize("times", one_in_gate("INT96", "TIMESTAMP_MICROS"))
def test_readers_agree_on_values_of_every_kind_and_a_seed_draws_the_same_again(lake: Lake, times: str) -> None:
    lake.spark.conf.set("spark.sql.parquet.outputTimestampType", times)
    lake.write("kinds", lake.spark.sql(KINDS))
    lake.view("keyed", "SELECT * FROM kinds", lake.table("kinds"))
    lake.view("unkeyed", "SELECT * FROM bag", delta_table("bag", path=lake.path("kinds")))
    for view in ("keyed", "unkeyed"):
        lake.project.refresh(view)
        outcome = lake.project.check(view, seed="")
        assert outcome.passed, outcome
        assert outcome.facts["rows_read_again"] == 8, "of the table and of the view"
        same = run_check(lake.project.workspace(), view, "exactly_once", full=True, seed=outcome.facts["sample_seed"])
        assert same.facts == outcome.facts


@pytest.mark.full
def test_readers_agree_on_texts_that_are_not_valid_utf_8(lake: Lake, project: Project) -> None:
    lake.write("texts", lake.spark.sql("SELECT id, CAST(X'61FF' AS STRING) AS text FROM range(3)"))
    lake.view("keyed", "SELECT * FROM texts", lake.table("texts"))
    lake.project.refresh("keyed")
    outcome = lake.project.check("keyed", seed="")
    assert outcome.passed, outcome
    assert outcome.facts["rows_read_again"] == 2 * 3
    topic = project.topic(partitions=1)
    project.produce(topic, [b"a\xff", b"good"])
    project.declare(kafka_source("raw", topic=topic, schema="text STRING", format="raw"))
    project.refresh("raw")
    outcome = project.check("raw", seed="")
    assert outcome.passed, outcome


@pytest.mark.full
def test_rows_that_it_takes_delta_to_read_are_left_out_and_counted(lake: Lake) -> None:
    vectors = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    lake.sql("base", vectors, "DELETE FROM {t} WHERE id = 5")
    lake.project.refresh("rows")
    outcome = lake.project.check("rows", seed="")
    assert outcome.passed, outcome
    assert outcome.facts["files_not_readable_again"] == {"base": 1}
    assert outcome.facts["rows_read_again"] == 20 + 39


SCHEMA = "id LONG, name STRING, odd BOOLEAN, amount DECIMAL(9,2), ratio DOUBLE"
RECORDS = [{"id": at, "name": f"n{at}", "odd": at % 2 == 1, "amount": at + 0.125, "ratio": at / 7} for at in range(28)]


@pytest.fixture
def clicks(project: Project) -> Project:
    """A source whose topic also has bad records, and a view over it."""
    topic = project.topic(partitions=2)
    source = kafka_source("clicks", topic=topic, schema=SCHEMA)
    project.declare(source, materialized_view("all", query="SELECT id, name FROM clicks", upstreams=[source]))
    project.produce(topic, [*RECORDS, b"no JSON", None])
    return project


def test_records_that_a_session_hides_from_product_and_proof_are_missed(
    clicks: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_rows(monkeypatch, "load", "offset % 4 <> 0", "offset")
    outcome = checked(clicks.workspace(), "clicks")
    assert not outcome.passed
    assert len(outcome.violations) == 8
    assert "offset 0: a record that a Kafka client other than Spark's finds is not in the table" in outcome.summary


def test_records_read_again_are_in_the_source_and_in_its_views_as_they_are(clicks: Project) -> None:
    for name in ("clicks", "all"):
        clicks.refresh(name)
        outcome = clicks.check(name, seed="")
        assert outcome.passed, outcome
        assert outcome.facts["rows_read_again"] == (30 if name == "clicks" else 30 + len(RECORDS))
    facts = clicks.check("clicks", seed="").facts
    assert (facts["records_read_again"], facts["offsets_read_again"]) == (30, {"0": "0 to 15", "1": "0 to 15"})
    recompact(clicks, "all", missing)
    topic = clicks.declared["clicks"].topic  # type: ignore[union-attr]
    for policy in ("delete", "compact"):  # of old records: those of the newest segment stay
        configure(clicks, topic, "cleanup.policy", policy)
        assert "1 of 28 rows that the query returns" in again(clicks.workspace(), "all")[0], policy
    recompact(clicks, "clicks", first(lambda _row: {"name": "other"}))
    (violation,) = again(clicks.workspace(), "clicks")
    assert violation.startswith("partition ")
    assert violation.endswith("in the record, 'other' in the table")
