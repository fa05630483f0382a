"""The queries of TPC-H: the rules by which views follow changes of each table, as the docs list them."""

import pytest

from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.relational import RelationalQuery
from tests.support.listed_rules import listed, row
from tests.support.tpch import COLUMNS, QUERIES, analyzed, rule_of, tables_of

TABLES = tuple(sorted(COLUMNS))


def conditions(query: str) -> str:
    """While what the rules for changes of any table hold."""
    found = analyzed(query)
    if not isinstance(found, RelationalQuery):
        return ""
    return " and ".join(sorted({words for name in tables_of(query) for words in found.steps([name]).conditions}))


def test_the_page_lists_the_rule_for_changes_of_each_table() -> None:
    expected = [
        row(
            name,
            *((rule_of(query, [each]) or "groups") if each in tables_of(query) else "" for each in TABLES),
            conditions(query),
        )
        for name, query in QUERIES.items()
    ]
    header = row("view", "what it asks for", *(f"`{each}`" for each in TABLES), "while")
    assert listed("tpch.md", header, without=1) == expected


def test_all_queries_are_there_and_read_all_tables() -> None:
    assert list(QUERIES) == [f"q{number}" for number in range(1, 23)]
    assert {table for query in QUERIES.values() for table in tables_of(query)} == set(COLUMNS)


def test_no_query_is_computed_in_full_and_one_has_groups_of_one_table() -> None:
    assert not [name for name, query in QUERIES.items() if rule_of(query, tables_of(query)) == "full"]
    assert {name for name, query in QUERIES.items() if isinstance(analyzed(query), AggregateQuery)} == {"q1"}


@pytest.mark.parametrize("name", ["q3", "q10", "q18", "q21"])
def test_groups_without_a_limit_are_followed_one_by_one(name: str) -> None:
    query = QUERIES[name].partition("ORDER BY")[0]
    assert {rule_of(query, [table]) for table in tables_of(query)} == {"additive"}
