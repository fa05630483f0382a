"""Views follow changes by what their query computes: days, hours, windows, texts in one case, remainders."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from backfill_assets.query.computed_keys import FORMS
from backfill_assets.query.ddl import Column, parse_schema
from backfill_assets.query.key_classes import KeyClass
from backfill_assets.query.kinds import kind_of_type
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.relational import RelationalQuery, analyze_relational
from tests.support.followed_frames import Tables, after, frames, visible
from tests.support.lake import Lake
from tests.support.settings import FULL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("spark")]

SCHEMA = "at TIMESTAMP, n TIMESTAMP_NTZ, d DATE, s STRING, c CHAR(4), k INT, l BIGINT"
AT_ONCE = [
    *(f"{name}({column})" for name in ("year", "quarter", "month", "day", "dayofmonth") for column in ("at", "n", "d")),
    *(f"{name}(at)" for name in ("dayofweek", "dayofyear", "weekofyear", "hour", "minute", "second", "last_day")),
    *(f"{name}({column})" for name in ("date", "to_date") for column in ("at", "n", "d")),
    *(f"date_trunc('{unit}', at)" for unit in ("year", "QUARTER", "month", "week", "DAY", "hour", "minute")),
    *(f"trunc({column}, '{unit}')" for column in ("at", "d") for unit in ("year", "MM", "week")),
    *(f"date_format({each})" for each in ("at, 'yyyy-MM-dd HH:mm:ss'", "d, 'yyyy.MM'", "n, 'dd/MM/yyyy'", "at, 'HH'")),
    *(f"{name}({column})" for name in ("lower", "UPPER", "trim", "ltrim", "rtrim") for column in ("s", "c")),
    *("substring(s, 1, 2)", "substr(c, 2)", "left(s, 3)", "trim(LEADING 'x' FROM s)"),
    *("k % 7", "l % 7", "mod(k, 10)", "k DIV 3", "l div 1000"),
    *(f"CAST({column} AS STRING)" for column in ("at", "n", "d", "k", "l", "c")),
    *("k::bigint", "CAST(d AS TIMESTAMP)", "CAST(n AS TIMESTAMP)", "CAST(date_trunc('month', at) AS DATE)"),
    *("coalesce(s, 'none')", "coalesce(c, 'none')", "coalesce(l, 0)", "coalesce(lower(s), 'it')"),
    "CASE WHEN k > 1 AND l < 9.5 THEN 'big' WHEN s = 'a' OR d IS NULL THEN s ELSE 'x' END",
    *(
        "CASE k WHEN 0 THEN 1 ELSE 2 END",
        "CASE WHEN NOT (k IN (0, 7)) THEN l ELSE 0 END",
        "CASE WHEN k <> 0 THEN c END",
    ),
    *("year(date(at))", "lower(trim(s))", "hour(at) % 6", "date(date_trunc('week', n))"),
]
"""Expressions over one row."""
WINDOWS = ["window(at, '10 seconds').start", "window(at, '1 hour').end", "CAST(window(at, '1 DAY').start AS DATE)"]
"""Those of which a query may have one."""


@pytest.fixture(scope="module")
def values(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a table with values of each type, extremes and nulls among them."""
    path = tmp_path_factory.mktemp("values")
    spark.sql(f"CREATE TABLE delta.`{path}` ({SCHEMA}) USING delta")
    moments = ("2024-02-29 23:59:59.999999", "1969-12-31 23:59:59.5", "0001-01-01 00:00:00", "9999-12-31 12:00:00")
    rows = [
        f"(TIMESTAMP'{at}', TIMESTAMP_NTZ'{at}', DATE'{at[:10]}', {text}, {text}, {number}, {number})"
        for at, text, number in zip(
            moments, ("' Ab '", "''", "'xxÉ'", "'a'"), (-7, 2147483647, -2147483648, 0), strict=True
        )
    ]
    spark.sql(f"INSERT INTO delta.`{path}` VALUES {', '.join(rows)}, (NULL, NULL, NULL, NULL, NULL, NULL, NULL)")
    yield f"delta.`{path}`"
    spark.sql(f"DROP TABLE delta.`{path}`")


def computed(text: str) -> KeyClass:
    """The key of a query that groups by an expression."""
    columns = tuple(Column(*each.split()) for each in SCHEMA.split(", "))
    query = f"SELECT x, count(DISTINCT y) AS n FROM (SELECT {text} AS x, l AS y FROM t) GROUP BY x"
    (found,) = analyze_relational(query, {"t": columns}).classes.classes
    assert found.computed == {0}, text
    return found


def test_what_is_computed_for_all_rows_is_what_the_query_computes(spark: "SparkSession", values: str) -> None:
    """It has the type that it is said to have, so that values that are equal have equal hashes."""
    for texts in (AT_ONCE, *([each] for each in WINDOWS)):
        keys = [computed(each) for each in texts]
        pairs = [
            f"{text} AS a{at}, {key.columns[0]} AS b{at}"
            for at, (text, key) in enumerate(zip(texts, keys, strict=True))
        ]
        found = spark.sql(f"SELECT {', '.join(pairs)} FROM {values}")
        kinds = [kind_of_type(found.schema[f"b{at}"].dataType.simpleString().upper()) for at in range(len(texts))]
        assert kinds == [each.kind for each in keys]
        types = found.schema
        assert [types[f"a{at}"].dataType for at in range(len(texts))] == [
            types[f"b{at}"].dataType for at in range(len(texts))
        ]
        other = [f"count_if(NOT a{at} <=> b{at}) AS other{at}" for at in range(len(texts))]
        several = [f"count(DISTINCT a{at}) > 1 AS several{at}" for at in range(len(texts))]
        row = found.selectExpr("count(*) AS n", *other, *several).first()
        assert row is not None
        assert row["n"] == (4 if texts[0] in WINDOWS else 5)
        assert [text for at, text in enumerate(texts) if row[f"other{at}"] or not row[f"several{at}"]] == []


def test_each_form_is_tried() -> None:
    tried = {
        type(node) for text in AT_ONCE for node in parse(f"SELECT {text} AS x", tokenize(f"SELECT {text} AS x")).walk()
    }
    assert tried >= FORMS.keys()


COLUMNS = {"a": "id INT, at TIMESTAMP, s STRING", "b": "day DATE, s STRING"}


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        pytest.param("SELECT date(at) AS x, count(DISTINCT s) AS n FROM a GROUP BY 1", 3, id="groups of days"),
        pytest.param(
            "SELECT window.end AS x, count(DISTINCT s) AS n FROM a GROUP BY window(at, '1 hour')",
            2,
            id="windows of time",
        ),
        pytest.param(
            "SELECT id, rank() OVER (PARTITION BY lower(s) ORDER BY id) AS r FROM a",
            4,
            id="windows over texts",
            marks=pytest.mark.full,
        ),
        pytest.param(
            "SELECT a.id, b.s FROM a LEFT JOIN b ON b.day = date(a.at)", 4, id="a join", marks=pytest.mark.full
        ),
        pytest.param(
            "SELECT b.day FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE date(a.at) = b.day)",
            1,
            id="NOT EXISTS",
            marks=pytest.mark.full,
        ),
        pytest.param("SELECT lower(s) AS s FROM a EXCEPT SELECT s FROM b", 2, id="EXCEPT", marks=pytest.mark.full),
        pytest.param(
            "SELECT CASE WHEN s = 'x' THEN 'one' ELSE s END AS x, count(DISTINCT id) AS n FROM a GROUP BY 1",
            4,
            id="choices",
            marks=pytest.mark.full,
        ),
    ],
)
def test_a_view_is_equal_to_its_query(spark: "SparkSession", query: str, rows: int) -> None:
    old = _tables(["2024-01-01 10:10", "2024-01-01 10:50", "2024-01-02 10:10"], ["x", "X", "y"], ["2024-01-01"])
    new = _tables(
        ["2024-01-01 10:10", "2024-01-02 10:50", None, "2024-01-02 10:10"], ["x", "Y", "y", "z"], ["2024-01-02"]
    )
    made = analyzed(query)
    assert made.steps(["a", "b"]).rule == "restricted"
    with frames(spark, old, COLUMNS) as before, frames(spark, new, COLUMNS) as now:
        expected = visible(made, now)
        assert expected.total() == rows
        assert after(made, before, now, made.upstreams) == expected


HOPPING = [
    "SELECT window.start AS x, count(DISTINCT s) AS n FROM a GROUP BY window(at, '3 hours', '1 hour')",
    "SELECT x, percentile(id, 0.5) AS m FROM (SELECT id, window(at, '5 minutes', '2 minutes').end AS x FROM a) GROUP BY x",
    "WITH w AS (SELECT window(at, '1 day', '8 hours').start AS x, s FROM a), n AS (SELECT x, s, count(*) AS n FROM w "
    "GROUP BY x, s) SELECT n.x, n.s, n.n FROM n JOIN (SELECT x, max(n) AS most FROM n GROUP BY x) AS m "
    "ON n.x = m.x AND n.n = m.most",
    "SELECT DISTINCT window(a.at, '2 hours', '30 minutes').start AS x, b.s FROM a LEFT JOIN b ON a.s = b.s",
    "SELECT b.day, b.s, w.n FROM b LEFT JOIN (SELECT window(at, '2 days', '1 day').start AS x, count(DISTINCT s) AS n "
    "FROM a GROUP BY 1) AS w ON CAST(b.day AS TIMESTAMP) = w.x",
]
"""Queries in which a row of `a` is in several windows of time."""


@pytest.mark.parametrize("seed", [1, *(pytest.param(each, marks=pytest.mark.full) for each in range(2, 21))])
@pytest.mark.parametrize("query", HOPPING if FULL else HOPPING[2:3])
def test_rows_in_several_windows_of_time_are_found_once_and_all_of_them(
    spark: "SparkSession", query: str, seed: int
) -> None:
    random, made = Random(seed), analyzed(query)
    assert made.steps(["a"]).rule == "restricted"
    assert any(each.hops for each in made.classes.classes)
    old = [_event(random, at) for at in range(40)]
    kept = [each for each in old if random.random() < 0.8]
    new = [_event(random, at) if random.random() < 0.1 else each for at, each in enumerate(kept)]
    new += [_event(random, at) for at in range(40, 44)]
    beside: list[tuple[object, ...]] = [(date(2024, 1, day), random.choice("xyz")) for day in range(1, 9)]
    tables: tuple[Tables, Tables] = ({"a": old, "b": beside}, {"a": new, "b": beside[random.randrange(2) :]})
    with frames(spark, tables[0], COLUMNS) as before, frames(spark, tables[1], COLUMNS) as now:
        expected = visible(made, now)
        assert expected.total() > 5
        assert after(made, before, now, made.upstreams) == expected, seed


def _event(random: Random, number: int) -> tuple[object, ...]:
    """A row of `a`: within some hours, or at the turn of a window before 1970, or at no time."""
    begin = random.choice([
        datetime(2024, 1, 1),
        datetime(2024, 1, 1),
        datetime(2024, 1, 2, 23),
        datetime(1969, 12, 31, 22),
    ])
    minutes = timedelta(minutes=random.choice([0, 60, 120, 180, random.randrange(300)]))
    before = timedelta(microseconds=random.choice([0, 0, 1]))
    return number, random.choice([None, *[begin + minutes - before] * 7]), random.choice(["x", "y", "z", None])


def analyzed(query: str) -> RelationalQuery:
    tables = {
        name: parse_schema(schema) for name, schema in COLUMNS.items() if re.search(rf"(FROM|JOIN) {name}\b", query)
    }
    return analyze_relational(query, tables)


def _tables(moments: list[str | None], texts: list[str], days: list[str]) -> Tables:
    times = [None if each is None else datetime.fromisoformat(each) for each in moments]
    return {
        "a": [(at, *each) for at, each in enumerate(zip(times, texts, strict=True))],
        "b": [(date.fromisoformat(each), "x") for each in [*days, "2025-05-05"]],
    }


def test_few_changes_are_followed_by_the_days_that_they_touch(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    lake.append("events", ({"at": begin + timedelta(hours=at), "who": at % 7, "hour": at} for at in range(720)))
    query = "SELECT date(at) AS day, count(DISTINCT who) AS people FROM events GROUP BY date(at)"
    lake.view("daily", query, lake.table("events", None), refresh_mode="incremental_strict")
    lake.project.refresh("daily")
    assert lake.found("daily", ["day", "people"]).total() == 30
    hopping = (
        "SELECT window.start AS begins, count(DISTINCT who) AS people FROM events "
        "GROUP BY window(at, '12 hours', '4 hours')"
    )
    lake.view("hopping", hopping, lake.table("events", None), refresh_mode="incremental_strict")
    lake.project.refresh("hopping")
    lake.sql("events", "INSERT INTO {t} VALUES (TIMESTAMP'2024-01-03 05:05:05', 99, 720), (NULL, 1, 721)")
    lake.sql("events", "DELETE FROM {t} WHERE hour < 24")
    record = lake.project.refresh("hopping").report.record
    assert (record.rule, record.keys_touched) == ("restricted", 11)
    assert record.rows_reached < 100
    found = lake.found("hopping", ["begins", "people"])
    assert found == lake.expected("hopping", hopping, "events")
    assert found.total() == 176
    record = lake.project.refresh("daily").report.record
    assert (record.rule, record.keys_touched) == ("restricted", 3)
    assert record.rows_reached < 100
    found = lake.found("daily", ["day", "people"])
    assert found == lake.expected("daily", query, "events")
    assert found.total() == 30
