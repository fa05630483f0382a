"""A row is in several windows of time, so it has several values of a key: by which tiles rows are found, and where not."""

import pytest

from backfill_assets.query.computed_keys import Hops
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.key_classes import KeyClass
from backfill_assets.query.relational import analyze_relational

HOUR = 3_600_000_000
TABLES = {"a": "id BIGINT, k INT, at TIMESTAMP", "b": "id BIGINT, at TIMESTAMP, local TIMESTAMP_NTZ"}
HOP = "window(at, '9 hours', '3 hours').start AS x"
IN_WINDOWS = f"(SELECT {HOP}, k FROM a)"


def classes_of(query: str) -> tuple[KeyClass, ...]:
    tables = {name: parse_schema(columns) for name, columns in TABLES.items() if f" {name}" in query}
    return analyze_relational(query, tables).classes.classes


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {HOP}, median(id) AS m FROM a GROUP BY 1",
        "SELECT window.start AS x, median(k) AS m FROM a GROUP BY window(at, '9 hours', '3 hours')",
        f"SELECT x, median(k) AS m FROM {IN_WINDOWS} GROUP BY x",
        f"SELECT x, median(k) AS m FROM (SELECT k, {HOP} FROM (SELECT at, k FROM a WHERE k > 1)) GROUP BY x",
        f"SELECT x, median(n) AS m FROM (SELECT n, {HOP} FROM (SELECT at, count(*) AS n FROM a GROUP BY at)) GROUP BY x",
        f"SELECT DISTINCT {HOP} FROM a",
        f"SELECT x FROM {IN_WINDOWS} AS q LEFT JOIN (SELECT id FROM b) AS r ON r.id = q.k GROUP BY x",
    ],
)
def test_rows_are_found_by_the_tiles_of_which_windows_are_made(query: str) -> None:
    key = next(each for each in classes_of(query) if each.hops)
    assert dict(key.columns) == {0: "CAST(WINDOW(`at`, '9 hours', '3 hours').start AS TIMESTAMP)"}
    assert key.hops == {0: Hops("CAST(window(`at`, '3 hours').start AS TIMESTAMP)", 0, 3 * HOUR, 3)}
    assert key.output == "x"


def test_windows_that_end_within_a_tile_have_one_more_and_ends_tell_them_too() -> None:
    (key,) = classes_of("SELECT window(at, '5 hours', '2 Hour').end AS x, median(k) AS m FROM a GROUP BY 1")
    assert key.hops == {0: Hops("CAST(window(`at`, '2 Hour').start AS TIMESTAMP)", -5 * HOUR, 2 * HOUR, 3)}
    assert key.hops[0].tiles("x") == (
        f"transform(sequence(0, 2), n -> timestamp_micros(unix_micros(x) + {-5 * HOUR}L + n * {2 * HOUR}L))"
    )


def test_two_places_may_have_several_values_of_one_key_and_another_one_value() -> None:
    (key,) = classes_of(
        f"SELECT q.x, q.k, s.id FROM {IN_WINDOWS} AS q LEFT JOIN (SELECT x, max(n) AS n FROM (SELECT x, k, count(*) AS n "
        f"FROM {IN_WINDOWS} GROUP BY x, k) GROUP BY x) AS r ON q.x = r.x AND q.k = r.n LEFT JOIN b AS s ON s.at = q.x"
    )
    assert ({*key.hops}, key.columns[2]) == ({0, 1}, "at")


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (
            "SELECT window(at, '3 hours', '9 hours').end AS x, median(id) AS m FROM a GROUP BY 1",
            "some are in no window",
        ),
        (
            "SELECT window(at, '9 hours', '3 hours', '1 hour').end AS x, median(k) AS m FROM a GROUP BY 1",
            "they begin later",
        ),
        (
            "SELECT window(at, interval 9 hours, '1 hour').end AS x, median(k) AS m FROM a GROUP BY 1",
            "of unknown length",
        ),
        ("SELECT window(local, '9 hours', '3 hours').end AS x, median(id) AS m FROM b GROUP BY 1", "local times"),
        (
            "SELECT a.id FROM a LEFT JOIN b ON window(a.at, '2 hours', '1 hour').start = b.at",
            "it joins before it is told",
        ),
        ("SELECT a.id FROM a JOIN b ON true WHERE window(a.at, '2 hours', '1 hour').start = b.at", "the same in WHERE"),
        (
            "SELECT id, rank() OVER (PARTITION BY window(at, '2 hours', '1 hour').start ORDER BY id) AS r FROM a",
            "a window of rows",
        ),
        (
            "SELECT date(window(at, '2 hours', '1 hour').start) AS x, median(k) AS m FROM a GROUP BY 1",
            "computed of several",
        ),
        (
            "SELECT b.at, count(DISTINCT a.k) AS n FROM a JOIN b ON window(a.at, '2 hours', '1 hour').start = b.at "
            "GROUP BY 1",
            "the same for groups",
        ),
        (
            "SELECT window(at, '2 hours', '1 hour').start AS x, rank() OVER "
            "(PARTITION BY window(at, '2 hours', '1 hour').start ORDER BY id) AS r FROM a",
            "rows of windows, though the result tells it",
        ),
        ("SELECT median(k) AS m FROM a GROUP BY window(at, '2 hours', '1 hour')", "the result does not tell it"),
    ],
)
def test_what_has_several_values_is_no_key_where(query: str, why: str) -> None:
    assert not any(each.computed for each in classes_of(query)), why
