"""Functions of the clock: a time takes their place in the text, where they are allowed; everything else stays refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets import delta_table, kafka_source, materialized_view
from backfill_assets.declare.model import RefreshMode
from backfill_assets.errors import QueryError
from backfill_assets.query.clock import at_time, calls_clock
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.query import analyze, spelled
from backfill_assets.query.relational import analyze_relational

T = parse_schema("id BIGINT, name STRING, at TIMESTAMP")
INSTANT = 1_790_000_000_123_456
DAY = "(DATE '2026-09-21')"
MOMENT = "(TIMESTAMP_LTZ '2026-09-21 14:13:20.123456Z')"
LOCAL = "(TIMESTAMP_NTZ '2026-09-21 14:13:20.123456')"
SECONDS = "(1790000000L)"

CALLS = [
    ("now()", MOMENT),
    ("`NOW`( /* at once */ )", MOMENT),
    ("current_timestamp()", MOMENT),
    ("Current_Timestamp", MOMENT),
    ("current_date ()", DAY),
    ("CURRENT_DATE", DAY),
    ("curdate()", DAY),
    ("localtimestamp()", LOCAL),
    ("unix_timestamp()", SECONDS),
    ("unix_timestamp(now())", f"unix_timestamp({MOMENT})"),
    ("date_add(current_date, 1) - curdate()", f"date_add({DAY}, 1) - {DAY}"),
]


@pytest.mark.parametrize(("call", "literal"), CALLS)
def test_a_time_takes_the_place_of_each_call_and_nothing_else_changes(call: str, literal: str) -> None:
    text = "SELECT {0} AS a, 'now()' AS b, t.now, now -- now()\nFROM t WHERE x < {0}"
    query = text.format(call)
    assert at_time(query, INSTANT) == text.format(literal)
    assert calls_clock(query)


@pytest.mark.parametrize(
    "item",
    ["now", "t.current_date", "now(1)", "x.now()", "unix_timestamp(at)", "rand()", "'current_date'", "r'current_date'"],
)
def test_what_only_looks_like_the_clock_keeps_its_place(item: str) -> None:
    query = f"SELECT {item} AS a FROM t"
    assert not calls_clock(query)
    assert at_time(query, INSTANT) == query


@pytest.mark.parametrize("query", ["SELECT now() AS a, 'b FROM t", "SELECT now() AS a FROM t /* "])
def test_a_text_that_cannot_be_read_calls_nothing(query: str) -> None:
    assert not calls_clock(query)


@given(st.integers(0, 4_000_000_000_000_000))
def test_all_functions_say_the_same_moment_to_the_microsecond(instant: int) -> None:
    moment, local, seconds, day = (
        each.strip("() ") for each in at_time("now()|localtimestamp()|unix_timestamp()|curdate()", instant).split("|")
    )
    written = moment.removeprefix("TIMESTAMP_LTZ '").removesuffix("Z'")
    assert local == f"TIMESTAMP_NTZ '{written}'"
    assert day == f"DATE '{written[:10]}'"
    assert (int(seconds.removesuffix("L")), int(written[-6:])) == divmod(instant, 1_000_000)


AMBIGUOUS = [
    "SELECT id AS current_date, current_date AS d FROM t",
    "SELECT id, current_date AS d FROM t WHERE name <> 'Current_Date'",
    "SELECT t.current_date AS a, current_date AS b FROM t",
    "SELECT transform(array(1), current_date -> current_date) AS a FROM t",
    "SELECT `current_timestamp` AS a, current_timestamp AS b FROM t",
    "WITH current_date AS (SELECT id FROM t) SELECT current_date AS a FROM current_date",
    "SELECT current_date FROM t AS a(current_date, b, c)",
]


@pytest.mark.parametrize("query", AMBIGUOUS)
def test_a_word_that_is_a_name_too_is_refused_until_it_is_written_as_a_call(query: str) -> None:
    with pytest.raises(QueryError, match="may be the clock's or a column of that name") as caught:
        spelled(query, ["t"], whole=True, clock=True)
    assert caught.value.reason == "NOT_DETERMINISTIC"
    assert "() for the clock's; if a column is meant" in caught.value.hint


@pytest.mark.parametrize("column", ["Current_Date DATE", "s STRUCT<current_date: DATE>"])
def test_a_word_that_an_upstream_has_as_a_column_is_refused(column: str) -> None:
    tables = {"t": parse_schema(f"id BIGINT, {column}")}
    with pytest.raises(QueryError, match="may be the clock's"):
        at_time("SELECT current_date AS d FROM t", INSTANT, tables)
    assert at_time("SELECT current_date() AS d, now() AS n FROM t", INSTANT, tables) != ""


def test_the_text_of_a_view_keeps_the_functions_and_its_query_has_the_time() -> None:
    query = "SELECT id, Current_Date AS d, count(*) AS n FROM t WHERE at < NOW() GROUP BY id, current_date"
    view = materialized_view("v", query=query, upstreams=[delta_table("t", path="t")], refresh_mode="full")
    assert view.reads_clock
    assert (
        view.text == "select id, current_date as d, count (*) as n from t where at < now () group by id, current_date"
    )
    analyzed = analyze_relational(at_time(view.text, INSTANT, {"t": T}), {"t": T})
    assert DAY in analyzed.template
    assert MOMENT in analyzed.template
    assert "current_date" not in analyzed.template


def test_orders_are_completed_as_in_other_queries() -> None:
    query = "SELECT id, row_number() OVER (ORDER BY at < now()) AS n FROM t ORDER BY current_date LIMIT 3"
    text = spelled(query, ["t"], whole=True, clock=True)
    assert text.endswith("over (order by at < now (), struct (*)) as n from t order by current_date, 1, 2 limit 3")
    assert spelled(text, ["t"], whole=True, clock=True) == text


STILL_REFUSED = [
    ("NOT_DETERMINISTIC", "rand()"),
    ("NOT_DETERMINISTIC", "uuid()"),
    ("NOT_DETERMINISTIC", "monotonically_increasing_id()"),
    ("NOT_DETERMINISTIC", "current_user"),
    ("NOT_DETERMINISTIC", "current_timezone()"),
    ("NOT_DETERMINISTIC", "current_time()"),
    ("NOT_DETERMINISTIC", "current_time"),
    ("NOT_DETERMINISTIC", "localtimestamp"),
    ("NOT_DETERMINISTIC", "builtin.now()"),
    ("NOT_DETERMINISTIC", "now(3)"),
    ("NOT_DETERMINISTIC", "CAST('today' AS DATE)"),
    ("ORDER_DEPENDENT", "first(id)"),
]


@pytest.mark.parametrize(("reason", "item"), STILL_REFUSED)
def test_what_is_not_the_clock_stays_refused_beside_it(reason: str, item: str) -> None:
    query = f"SELECT now() AS at, {item} AS a FROM t"
    with pytest.raises(QueryError) as caught:
        analyze_relational(at_time(spelled(query, ["t"], whole=True, clock=True), INSTANT), {"t": T})
    assert caught.value.reason == reason


def test_a_time_without_a_name_is_no_column() -> None:
    with pytest.raises(QueryError, match="is the clock's time, and has no name") as caught:
        spelled("SELECT id, now() FROM t", ["t"], whole=True, clock=True)
    assert caught.value.reason == "UNNAMED_COLUMN"


REMEDIED = [
    "SELECT id FROM t WHERE at > now()",
    "SELECT id, current_date AS d FROM t",
    "SELECT id, localtimestamp AS d FROM t",
    "SELECT id FROM t WHERE at > 'yesterday'",
    "SELECT date(at) AS d, unix_timestamp() AS s, count(*) AS n FROM t GROUP BY date(at)",
    "SELECT name, max(at) AS d FROM t WHERE at > curdate() GROUP BY name",
    "SELECT id, rank() OVER (ORDER BY at) AS r FROM t WHERE at < current_timestamp()",
    "SELECT id, localtimestamp AS r FROM t JOIN t AS u USING (id)",
]


@pytest.mark.parametrize("query", REMEDIED)
def test_without_full_refreshes_the_clock_is_refused_with_the_remedy(query: str) -> None:
    with pytest.raises(QueryError) as caught:
        analyze(query, {"t": T}, {"t": ("id",)})
    assert caught.value.reason == "NOT_DETERMINISTIC"
    assert 'refresh_mode="full"' in caught.value.hint


@pytest.mark.parametrize("mode", ["auto", "incremental", "incremental_strict"])
def test_a_join_that_reads_the_clock_is_refused_where_it_is_declared(mode: RefreshMode) -> None:
    with pytest.raises(QueryError, match=r"'v': the query calls now\(\)") as caught:
        materialized_view(
            "v",
            query="SELECT id, now() AS n FROM t JOIN t AS u USING (id)",
            upstreams=[delta_table("t", path="t")],
            refresh_mode=mode,
        )
    assert 'refresh_mode="full"' in caught.value.hint


@pytest.mark.parametrize("mode", ["auto", "incremental", "incremental_strict"])
def test_a_view_over_a_source_is_refused_with_the_remedy_and_taken_with_it(mode: RefreshMode) -> None:
    source = kafka_source("t", topic="t", schema="id LONG")
    query = "SELECT id, now() AS at FROM t"
    with pytest.raises(QueryError, match=r"calls now\(\)") as caught:
        materialized_view("v", query=query, upstreams=[source], refresh_mode=mode)
    assert 'refresh_mode="full"' in caught.value.hint
    assert materialized_view("v", query=query, upstreams=[source], refresh_mode="full").reads_clock
