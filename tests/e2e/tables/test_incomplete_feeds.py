"""Views over a table whose rows have no key, and which delta-rs updates: its change data feed lacks rows that become equal
to others."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.compute.table_rows import Scratch, table_rows
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.progress.reads import ChangesRead
from tests.support.lake import Lake
from tests.support.settings import one_in_gate

pytestmark = pytest.mark.e2e

VIEWS = {
    "joined": "SELECT b.id, b.x, o.name FROM base b JOIN other o ON b.x = o.id",
    "groups": "SELECT b.id, sum(b.x) AS s, max(o.name) AS m FROM base b LEFT JOIN other o ON b.x = o.id GROUP BY b.id",
    "distinct": "SELECT DISTINCT id, x FROM base",
}
PLACED: dict[str, dict[str, Any]] = {"whole": {}, "parted": {"partition_by": ["part"]}}
ROWS = [{"id": at % 3, "x": at % 5, "part": at % 2} for at in range(12)] + [{"id": 0, "x": None, "part": 0}]


def made(root: Path, **given: Any) -> Lake:
    lake = Lake(root)
    lake.append("base", ROWS[:6], **given)
    lake.append("base", ROWS[6:], **given)
    lake.append("other", [{"id": at % 4, "name": f"n{at}"} for at in range(6)])
    return lake


def changed(lake: Lake) -> None:
    """Three updates that make rows equal to others, and between them an append of rows that are like others, and a delete."""
    table = DeltaTable(lake.path("base"))
    table.update(updates={"x": "3"}, predicate="id = 0")
    table.update(updates={"x": "x + 1"}, predicate="id = 1")
    lake.append("base", [*ROWS[:3], ROWS[1]])
    table.update_incremental()
    table.delete("id = 2 AND x = 2")
    table.update(updates={"id": "1"}, predicate="x = 3")


def test_spark_says_how_many_rows_it_has_changed(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append("base", ROWS)
    new = "SELECT * FROM VALUES (0, 9, 0), (7, 9, 1) AS t(id, x, part)"
    merge = f"MERGE INTO {{t}} t USING ({new}) s ON t.id = s.id AND t.x = 0 WHEN MATCHED THEN UPDATE SET * "
    statements = (
        f"{merge} WHEN NOT MATCHED THEN INSERT *",
        "UPDATE {t} SET x = 4 WHERE id = 1",
        "DELETE FROM {t} WHERE id = 2",
    )
    lake.sql("base", *statements, spark=True)
    upstream = DeltaUpstream("base", TableLocation(uri=lake.path("base")))
    counted = len([each for each in ROWS if each["id"] == 0 and each["x"] == 0])
    assert counted == 1
    assert [each.rows for each in upstream.commits(0, 3)] == [2 * counted + 1, 8, 4]


@pytest.mark.parametrize("placed", PLACED)
def test_spark_finds_just_what_changed(tmp_path: Path, placed: str) -> None:
    lake = made(tmp_path, **PLACED[placed])
    changed(lake)
    location = TableLocation(uri=lake.path("base"))
    upstream, first, last = DeltaUpstream("base", location), 2, DeltaTable(location.uri).version()
    read = ChangesRead(source="base", table_id="", first=first, last=last, rows=1)
    assert [each.incomplete for each in upstream.changes(read)] == [True, True, False, False, True]
    rows = table_rows(lake.spark, upstream, read, upstream.columns(), Scratch(table=location, path="scratch"))
    come, go = Counter[Any](), Counter[Any]()
    for *row, change in map(tuple, rows.collect()):
        (come if change in {"insert", "update_postimage"} else go)[tuple(row)] += 1
    before, after = (Counter(map(tuple, lake.rows(location.uri, at).collect())) for at in (first - 1, last))
    assert (come, go) == (after - before, before - after)


@pytest.mark.parametrize("placed", one_in_gate(*PLACED))
def test_every_change_reaches_views(tmp_path: Path, placed: str) -> None:
    lake = made(tmp_path, **PLACED[placed])
    for name, query in VIEWS.items():
        tables = [each for each in ("base", "other") if f" {each}" in query]
        lake.view(name, query, *(lake.table(each, None) for each in tables), refresh_mode="incremental")
        lake.project.refresh(name)
    changed(lake)
    for name, query in VIEWS.items():
        assert lake.project.refresh(name).report.record.rule != "full"
        tables = [each for each in ("base", "other") if f" {each}" in query]
        assert lake.shown(name) == lake.expected(name, query, *tables) != {}
        lake.passes(name, ("exactly_once", "rows_conserved"))
