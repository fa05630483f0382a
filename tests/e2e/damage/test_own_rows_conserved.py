"""Rows of the view itself that Spark does not read, without an error, stop the epoch that is computed from the others."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from deltalake import DeltaTable

from backfill_assets import kafka_source, materialized_view
from backfill_assets.adapters.compute import key_checks, rules, selectable_rows
from backfill_assets.app.refresh import refresh
from backfill_assets.core.epoch.limits import Limits
from tests.support.careless import IGNORE, careless, damaged
from tests.support.conserved import VIEWS, made, newest, refused, some
from tests.support.lake import Lake
from tests.support.large import large
from tests.support.over_connect import over_connect
from tests.support.project import Project
from tests.support.settings import one_in_gate

pytestmark = pytest.mark.e2e

JOINED = "FROM base b JOIN other o ON b.id % 3 = o.id"
OWN = {
    **VIEWS,
    "additive": f"SELECT o.name, sum(b.amount) AS total {JOINED} GROUP BY o.name",
    "restricted": "SELECT id, count(DISTINCT amount) AS n FROM base GROUP BY id",
}


def own(folder: Path) -> Lake:
    """A lake with a view for each way in which a view's rows are read, each refreshed."""
    lake = made(folder)
    for name, query in OWN.items():
        if name not in VIEWS:
            lake.view(
                name,
                query,
                *(lake.table(each) for each in ("base", "other") if each in query),
                refresh_mode="incremental",
            )
    lake.view("whole", VIEWS["joined"], lake.table("base"), lake.table("other"), refresh_mode="full")
    return lake


@pytest.mark.parametrize("view", one_in_gate("groups", "rows", "joined", "additive", "restricted"))
def test_a_damaged_file_of_a_view_is_missed_by_its_next_epoch(
    tmp_path: Path, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectable_rows, "MOST_LOCAL", 0)
    monkeypatch.setattr(key_checks, "MOST_ROWS", -1)
    lake = own(tmp_path)
    lake.project.refresh(view)
    lake.append("base", some(100))
    table = DeltaTable(lake.location(view))
    held = table.to_pyarrow_table().num_rows
    with damaged(newest(lake.location(view))):
        said = refused(lake.project, view)
    assert f"epoch 2: Spark read 0 rows of version {table.version()} of 'views/{view}', expected {held}" in said
    lake.project.refresh(view)
    assert lake.project.check(view).passed


@pytest.mark.parametrize("ids", one_in_gate("touched", "beyond"))
def test_a_damaged_file_of_a_view_in_which_rows_are_looked_for_is_named(tmp_path: Path, ids: str) -> None:
    lake = own(tmp_path)
    lake.project.refresh("restricted")
    own_file = newest(lake.location("restricted"))
    lake.append("base", [{"id": 5 if ids == "touched" else 100, "amount": 1}])
    with damaged(own_file):
        if ids == "touched":
            said = refused(lake.project, "restricted")
            assert own_file.name in said
            assert "nothing was committed; restore the file" in said
        else:
            assert lake.project.refresh("restricted").report.record.rows_written == 1, "by its bounds it is not needed"
    lake.project.refresh("restricted")
    assert lake.project.check("restricted").passed


@pytest.mark.parametrize("first", [5, pytest.param(500, marks=pytest.mark.full), 1000])
def test_a_damaged_file_of_groups_is_missed_if_it_may_have_touched_ones(
    tmp_path: Path, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where many changes touch groups between two of them, and few files of a view lie there."""
    monkeypatch.setattr(selectable_rows, "MOST_LOCAL", 0)
    monkeypatch.setattr(rules, "_MANY_GROUPS", 0)
    lake = made(tmp_path)
    tables = [lake.table(name) for name in ("base", "other")]
    lake.view("ids", f"SELECT b.id, sum(b.amount) AS total {JOINED} GROUP BY b.id", *tables, refresh_mode="incremental")
    lake.project.refresh("ids")
    own_file = newest(lake.location("ids"))
    lake.append("base", some(1000))
    lake.project.refresh("ids")
    assert len(DeltaTable(lake.location("ids")).file_uris()) == 2
    lake.append("base", [{"id": each, "amount": 1} for each in (first, first + 1)])
    with damaged(own_file):
        if first == 5:
            assert "epoch 3: Spark read 0 rows of version 4 of 'views/ids', expected 40" in refused(lake.project, "ids")
        else:
            assert lake.project.refresh("ids").report.record.rule == "additive", "by its bounds it is not needed"
    lake.project.refresh("ids")
    assert lake.shown("ids").total() > 2
    assert lake.project.check("ids", "exactly_once").passed


@pytest.mark.full
def test_a_view_that_is_replaced_does_not_need_its_rows(tmp_path: Path) -> None:
    lake = own(tmp_path)
    lake.project.refresh("whole")
    lake.append("base", some(100))
    with damaged(newest(lake.location("whole"))):
        refresh(careless(lake.project.workspace(), IGNORE), "whole", Limits(), run_id="careless")
    assert lake.project.record("whole").epoch == 2
    assert lake.project.check("whole").passed


@pytest.mark.full
@pytest.mark.parametrize("gone", ["id = 5", "id >= 0"])
def test_a_damaged_file_of_a_view_is_missed_though_nothing_would_be_written(
    tmp_path: Path, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectable_rows, "MOST_LOCAL", 0)
    lake = own(tmp_path)
    lake.project.refresh("restricted")
    DeltaTable(lake.path("base")).delete(gone)
    with damaged(newest(lake.location("restricted"))):
        said = refused(lake.project, "restricted")
    assert "Spark read 0 rows of version 3 of 'views/restricted', expected 40" in said
    lake.project.refresh("restricted")
    assert lake.project.check("restricted").passed


@pytest.mark.full
@pytest.mark.parametrize("change", ["amount + 100", "0"], ids=["updates", "deletes"])
def test_a_file_of_a_view_that_is_damaged_while_a_merge_begins_is_missed(tmp_path: Path, change: str) -> None:
    lake = own(tmp_path)
    lake.project.refresh("rows")
    DeltaTable(lake.path("base")).update(updates={"amount": change}, predicate="id < 8")
    own_file = newest(lake.location("rows"))
    with ExitStack() as until_then:
        workspace = large(lake, lambda: until_then.enter_context(damaged(own_file)))
        said = refused(lake.project, "rows", workspace=workspace)
    assert "views/rows: a merge put " in said
    lake.project.refresh("rows")
    assert lake.project.check("rows").passed


def test_a_damaged_file_of_groups_over_a_source_is_missed(project: Project) -> None:
    topic = project.topic(partitions=1)
    source = kafka_source("clicks", topic=topic, schema="id LONG, part LONG")
    query = "SELECT part, count(*) AS n FROM clicks GROUP BY part"
    project.declare(source, materialized_view("parts", query=query, upstreams=[source]))
    for start in (0, 10):
        project.produce(topic, ({"id": at, "part": at % 3} for at in range(start, start + 10)))
        project.refresh("clicks")
        if not start:
            project.refresh("parts")
    table = project.workspace().table(project.declared["parts"]).output.location
    with damaged(newest(table.uri)):
        said = refused(project, "parts")
    assert "of 'views/parts', expected 3" in said
    project.refresh("parts")
    assert project.check("parts").passed


def over_a_server(folder: str) -> list[str]:
    """What runs say whose Spark is a server and reads all rows, with a damaged file of the view."""
    selectable_rows.MOST_LOCAL, key_checks.MOST_ROWS = 0, -1
    lake = own(Path(folder))
    found = []
    for view in OWN:
        lake.project.refresh(view)
    lake.append("base", some(100))
    for view in OWN:
        with damaged(newest(lake.location(view))):
            found.append(refused(lake.project, view))
    return found


@pytest.mark.full
def test_a_server_tells_how_much_it_has_read_of_the_view(remote: str, tmp_path: Path) -> None:
    found = over_connect(remote, over_a_server, tmp_path)
    assert [f"of 'views/{view}', expected " in said for view, said in zip(OWN, found, strict=True)] == [True] * len(OWN)
