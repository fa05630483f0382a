"""Hints for Spark, and LIMIT ALL, change no rows: they are left out of every kind of query."""

import re

import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.query import analyze, spelled

T = parse_schema("id BIGINT, name STRING")

LEFT_OUT = [
    ("SELECT /*+ BROADCAST(u) */ t.id FROM t JOIN u USING (id)", "select t.id from t join u using ( id )"),
    ("SELECT id\nFROM (\n  SELECT /*+ MERGE(t),\n COALESCE(2) */ id FROM t)", "select id from (select id from t)"),
    ("SELECT /*+ REPARTITION(3) */ id FROM t", "select id from t"),
    ("SELECT id FROM t UNION ALL\nSELECT /*+ of nobody */ id FROM u", "select id from t union all select id from u"),
    ("SELECT /*+ x */ id, count(*) AS n FROM t GROUP BY id", "select id, count(*) as n from t group by id"),
    ("SELECT id FROM t LIMIT ALL", "select id from t"),
    ("(SELECT id FROM t limit\nall) UNION SELECT 1 LIMIT ALL", "(select id from t) union select 1"),
]


@pytest.mark.parametrize(("query", "left"), LEFT_OUT)
def test_a_hint_is_left_out_of_the_query(query: str, left: str) -> None:
    tables = {name: T for name in ("t", "u") if re.search(rf"\b{name}\b", left)}
    found = spelled(query, list(tables))
    assert found.replace(" ", "") == left.replace(" ", "")
    assert analyze(query, tables, dict.fromkeys(tables, ("id",))).text == found


def test_a_view_over_records_has_none() -> None:
    source = kafka_source("orders", topic="orders", schema="id LONG", bronze="new")
    view = materialized_view("v", query="SELECT /*+ COALESCE(1) */ id FROM orders", upstreams=[source])
    assert view.text == "select id from orders"


@pytest.mark.parametrize("query", ["SELECT /*+ BROADCAST(u) id FROM t", "SELECT id FROM t /* all of it"])
def test_a_comment_or_hint_that_does_not_end_is_named(query: str) -> None:
    with pytest.raises(QueryError, match="ends within a comment or a hint") as caught:
        analyze(query, {"t": T}, {"t": ("id",)})
    assert (caught.value.reason, caught.value.hint) == ("SYNTAX", "close it with */")


def test_what_only_looks_like_a_hint_is_taken() -> None:
    analyzed = analyze("SELECT '/*+ x */' AS a /* + x */ FROM t", {"t": T}, {"t": ("id",)})
    assert analyzed.output_columns == ("a",)
