"""Hints for Spark are refused: the error says which hint, where it is, why, and what to do."""

import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.query import analyze

T = parse_schema("id BIGINT, name STRING")

HINTED = [
    ("SELECT /*+ BROADCAST(u) */ t.id FROM t JOIN u USING (id)", "/*+ BROADCAST(u) */ in line 1, column 8:"),
    (
        "SELECT id\nFROM (\n  SELECT /*+ MERGE(t),\n COALESCE(2) */ id FROM t)",
        "/*+ MERGE(t), COALESCE(2) */ in line 3, column 10:",
    ),
    ("SELECT /*+ REPARTITION(3) */ id FROM t", "/*+ REPARTITION(3) */ in line 1, column 8:"),
    ("SELECT id FROM t UNION ALL\nSELECT /*+ of nobody */ id FROM u", "/*+ of nobody */ in line 2, column 8:"),
    ("SELECT /*+ x */ id, count(*) AS n FROM t GROUP BY id", "/*+ x */ in line 1, column 8:"),
]


@pytest.mark.parametrize(("query", "named"), HINTED)
def test_a_hint_is_refused_with_its_place_the_reason_and_what_to_do(query: str, named: str) -> None:
    with pytest.raises(QueryError) as caught:
        analyze(query, {"t": T, "u": T}, {"t": ("id",), "u": ("id",)})
    assert caught.value.reason == "UNSUPPORTED"
    assert f"the query has the hint {named}" in caught.value.message
    assert "over changed rows alone" in caught.value.message
    assert caught.value.hint.startswith("leave it out")


def test_a_hint_is_named_before_anything_that_is_wrong_because_of_it() -> None:
    source = kafka_source("orders", topic="orders", schema="id LONG", bronze="new")
    with pytest.raises(
        QueryError, match=r"view 'v': the query has the hint /\*\+ COALESCE\(1\) \*/ in line 1, column 8"
    ):
        materialized_view("v", query="SELECT /*+ COALESCE(1) */ id FROM orders", upstreams=[source])


@pytest.mark.parametrize("query", ["SELECT /*+ BROADCAST(u) id FROM t", "SELECT id FROM t /* all of it"])
def test_a_comment_or_hint_that_does_not_end_is_named(query: str) -> None:
    with pytest.raises(QueryError, match="ends within a comment or a hint") as caught:
        analyze(query, {"t": T}, {"t": ("id",)})
    assert (caught.value.reason, caught.value.hint) == ("SYNTAX", "close it with */")


def test_what_only_looks_like_a_hint_is_taken() -> None:
    analyzed = analyze("SELECT '/*+ x */' AS a /* + x */ FROM t", {"t": T}, {"t": ("id",)})
    assert analyzed.output_columns == ("a",)
