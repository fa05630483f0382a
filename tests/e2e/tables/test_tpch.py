"""The queries of TPC-H as views: which rule follows changes of which table, and that what it gives is right."""

from random import Random
from typing import TYPE_CHECKING

import pytest

from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.relational import RelationalQuery, analyze_relational
from tests.support.followed_frames import Tables, after, frames, visible
from tests.support.tpch import COLUMNS, QUERIES, changed_rows, rows_of, tables_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.full]

IN_FULL = {
    "q2": {"nation", "part", "partsupp", "region", "supplier"},
    "q11": {"nation", "partsupp", "supplier"},
    "q15": {"lineitem"},
    "q16": {"partsupp", "supplier"},
    "q20": {"part"},
    "q22": {"customer"},
}
"""The tables whose changes have no rule."""


def analyzed(name: str) -> RelationalQuery:
    return analyze_relational(
        QUERIES[name], {table: parse_schema(COLUMNS[table]) for table in tables_of(QUERIES[name])}
    )


@pytest.mark.parametrize("name", QUERIES)
def test_changes_follow_a_rule_wherever_there_is_one(spark: "SparkSession", name: str) -> None:
    query, random = analyzed(name), Random(name)
    assert {table for table in query.upstreams if query.steps([table]).rule == "full"} == IN_FULL.get(name, set())
    old: Tables = {table: rows_of(table, random) for table in query.upstreams}
    seen = 0
    for sets in (query.upstreams, *((table,) for table in query.upstreams)):
        changed = [table for table in sets if query.steps([table]).rule != "full"]
        if not changed or query.steps(changed).rule == "full":
            continue
        new = old | {table: changed_rows(table, old[table], random) for table in changed}
        with frames(spark, old, COLUMNS) as before, frames(spark, new, COLUMNS) as now:
            expected = visible(query, now)
            assert after(query, before, now, changed) == expected, (changed, query.steps(changed))
        seen += expected.total()
        old = new
    assert seen > 0 or name in {"q2", "q11"}
