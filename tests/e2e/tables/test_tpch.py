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
    "q15": {"lineitem"},
}
"""The tables whose changes have no rule."""

BY_VALUE = {"q11": {"nation", "partsupp", "supplier"}, "q22": {"customer"}}
"""Those whose changes are followed only while a subquery gives the value that it gave."""

DRAWN = 50
"""How many worlds are drawn until the query gives rows. Those of three joins and narrow conditions may be empty."""


def analyzed(name: str) -> RelationalQuery:
    return analyze_relational(
        QUERIES[name], {table: parse_schema(COLUMNS[table]) for table in tables_of(QUERIES[name])}
    )


def without_nulls(query: RelationalQuery, tables: Tables) -> Tables:
    """The rows of tables without those that a rule does not allow."""
    asked = {(query.occurrences[place], column) for place, column in query.steps(query.upstreams).nulls}
    at = {name: [each.name for each in query.columns[name]].index(column) for name, column in asked if name in tables}
    return {name: [row for row in rows if name not in at or row[at[name]] is not None] for name, rows in tables.items()}


def filled(spark: "SparkSession", query: RelationalQuery, random: Random) -> Tables:
    """Tables of which the query gives rows: the first that were drawn, or others."""
    for _ in range(DRAWN):
        drawn = without_nulls(query, {table: rows_of(table, random) for table in query.upstreams})
        with frames(spark, drawn, COLUMNS) as now:
            if visible(query, now):
                return drawn
    raise AssertionError(f"none of {DRAWN} worlds gives rows")


def follows(query: RelationalQuery, changed: list[str]) -> bool:
    """Whether changes are followed whatever values subqueries give."""
    steps = query.steps(changed)
    return steps.rule != "full" and not steps.parameters


@pytest.mark.parametrize("name", QUERIES)
def test_changes_follow_a_rule_wherever_there_is_one(spark: "SparkSession", name: str) -> None:
    query, random = analyzed(name), Random(name)
    assert {table for table in query.upstreams if query.steps([table]).rule == "full"} == IN_FULL.get(name, set())
    assert {table for table in query.upstreams if query.steps([table]).parameters} == BY_VALUE.get(name, set())
    old = filled(spark, query, random)
    for sets in (query.upstreams, *((table,) for table in query.upstreams)):
        changed = [table for table in sets if follows(query, [table])]
        if not changed or not follows(query, changed):
            continue
        new = old | without_nulls(query, {table: changed_rows(table, old[table], random) for table in changed})
        with frames(spark, old, COLUMNS) as before, frames(spark, new, COLUMNS) as now:
            expected = visible(query, now)
            assert after(query, before, now, changed) == expected, (changed, query.steps(changed))
        old = new
