"""The queries of TPC-H: what the rule for changes of each table alone gives is right."""

from random import Random
from typing import TYPE_CHECKING

import pytest

from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.relational import RelationalQuery, analyze_relational
from tests.support.followed_frames import Tables, after, frames, visible
from tests.support.tpch import COLUMNS, QUERIES, tables_of
from tests.support.tpch_world import changed_rows, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.full]

DRAWN = 50
"""How many worlds are drawn until the query gives rows. Those of three joins and narrow conditions may be empty."""


def analyzed(name: str) -> RelationalQuery:
    """A query of all rows: the first ones are asked of epochs, not of the rules."""
    query = QUERIES[name].partition("ORDER BY")[0]
    return analyze_relational(query, {table: parse_schema(COLUMNS[table]) for table in tables_of(query)})


def filled(spark: "SparkSession", query: RelationalQuery, random: Random) -> Tables:
    """Tables of which the query gives rows: the first that were drawn, or others."""
    for _ in range(DRAWN):
        drawn: Tables = {table: rows_of(table, random) for table in query.upstreams}
        with frames(spark, drawn, COLUMNS) as now:
            if visible(query, now):
                return drawn
    raise AssertionError(f"none of {DRAWN} worlds gives rows")


@pytest.mark.parametrize("name", QUERIES)
def test_changes_of_each_table_follow_its_rule(spark: "SparkSession", name: str) -> None:
    query, random = analyzed(name), Random(name)
    old = filled(spark, query, random)
    for table in query.upstreams:
        steps = query.steps([table])
        if steps.rule == "full" or steps.parameters:
            continue
        new = old | {table: changed_rows(table, old[table], random)}
        with frames(spark, old, COLUMNS) as before, frames(spark, new, COLUMNS) as now:
            assert after(query, before, now, [table]) == visible(query, now), (table, steps)
        old = new
