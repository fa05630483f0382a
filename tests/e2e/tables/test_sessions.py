"""Sessions of events: Spark merges those that overlap wherever it groups rows by them, a view where its query says so."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.lake import Lake
from tests.support.settings import FULL, one_in_gate

pytestmark = pytest.mark.e2e

_SESSION = "session_window(at, '10 seconds')"
QUERIES = {
    "merged": f"SELECT k, {_SESSION} AS s, count(*) AS n FROM events GROUP BY k, {_SESSION}",
    "named": f"SELECT session_window AS s, k, count(DISTINCT id) AS n FROM events GROUP BY {_SESSION}, k",
    "alone": f"SELECT k, {_SESSION} AS s FROM events",
    "outside": f"SELECT s.start AS begins, s.end AS ends, count(*) AS n FROM (SELECT {_SESSION} AS s FROM events) GROUP BY s",
    "beside": f"SELECT k, s, sum(id) AS n FROM (SELECT id, k, {_SESSION} AS s FROM events) GROUP BY k, s",
    "distinct": f"SELECT DISTINCT k, s FROM (SELECT k, {_SESSION} AS s FROM events)",
}
RULES = {"alone": "linear", "outside": "full"}
"""The rules by which changes are followed, where they are not `restricted`."""


def events(*seconds: tuple[int, int | None, float]) -> Iterable[dict[str, object]]:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    return ({"id": at, "k": key, "at": begin + timedelta(seconds=second)} for at, key, second in seconds)


def assert_right(lake: Lake, view: str, query: str, table: str) -> None:
    columns = [each for each in lake.rows(lake.location(view)).columns if not each.startswith("__")]
    found = lake.found(view, columns)
    assert found == lake.expected(view, query, table)
    assert found.total() > 0
    assert lake.project.check(view).passed


def change(lake: Lake, step: int) -> None:
    """Change the events in a way that shows where sessions are merged."""
    match step:
        case 0:  # a session gets longer, and has as many events as before
            lake.sql("events", "UPDATE {t} SET at = at + INTERVAL '3' SECOND WHERE id = 8")
        case 1:  # two events that nothing but their sessions tells apart, and these overlap
            lake.append("events", events((11, 4, 70), (12, 4, 73)))
        case 2:  # two sessions become one
            lake.append("events", events((9, 1, 13), (10, 1, 22)))
        case _:  # and fall apart
            lake.sql("events", "DELETE FROM {t} WHERE id = 9")


@pytest.mark.parametrize("name", one_in_gate(*QUERIES))
def test_sessions_are_merged_where_the_query_groups_by_them_and_nowhere_else(tmp_path: Path, name: str) -> None:
    lake, query = Lake(tmp_path), QUERIES[name]
    lake.append("events", events((1, 1, 0), (2, 1, 4), (3, 1, 30), (4, 2, 4), (5, None, 4), (6, 1, 33)))
    lake.append("events", events((7, 3, 50), (8, 3, 53)))
    lake.view(name, query, lake.table("events"), refresh_mode="incremental")
    lake.project.refresh(name)
    for step in range(4 if FULL else 1):
        change(lake, step)
        assert lake.project.refresh(name).report.record.rule == RULES.get(name, "restricted")
        assert_right(lake, name, query, "events")


@pytest.mark.full
def test_a_view_over_sessions_takes_them_as_values(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append("events", events((1, 1, 0), (2, 1, 4), (3, 1, 30), (4, 2, 4)))
    alone = lake.view("alone", QUERIES["alone"], lake.table("events"))
    lake.view("counted", query := "SELECT s, count(*) AS n FROM alone GROUP BY s", alone, refresh_mode="incremental")
    for second in (4, 5, 6):
        lake.append("events", events((10 + second, 3, second)))
        for view in ("alone", "counted"):
            lake.project.refresh(view)
        assert_right(lake, "counted", query, "alone")
