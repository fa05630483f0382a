"""The queries of Nexmark: the rules by which views follow changes, as the docs list them, and what is refused."""

from collections.abc import Iterable

import pytest

from backfill_assets.errors import QueryError
from backfill_assets.query.relational import RelationalQuery
from tests.support.listed_rules import DOCS, listed, row
from tests.support.nexmark import COLUMNS, QUERIES, REFUSED, analyzed, rule_of, tables_of

TABLES = ("auction", "bid", "person", "side_input")


def told(query: str, changed: Iterable[str]) -> str:
    return rule_of(query, [*changed]) or "row-wise"


def test_the_page_lists_the_rule_for_changes_of_each_table() -> None:
    expected = [
        row(name, *(told(query, [table]) if table in tables_of(query) else "" for table in TABLES))
        for name, query in QUERIES.items()
    ]
    header = "| view | what it asks for | `auction` | `bid` | `person` | `side_input` |"
    assert listed("nexmark.md", header, without=1) == expected


def test_only_what_asks_for_all_rows_together_is_computed_in_full() -> None:
    assert {name for name, query in QUERIES.items() if rule_of(query, tables_of(query)) == "full"} == {"q107"}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_benchmark_asks_of_the_clock_or_approximately_is_refused(name: str) -> None:
    reason, query = REFUSED[name]
    with pytest.raises(QueryError) as caught:
        analyzed(query)
    assert caught.value.reason == reason
    page = (DOCS / "nexmark.md").read_text(encoding="utf-8")
    assert f"- {name} " in page
    assert f"(`{reason}`)" in page


def test_all_tables_are_read_and_views_without_a_rule_of_their_own_are_few() -> None:
    assert {table for query in QUERIES.values() for table in tables_of(query)} == set(COLUMNS)
    assert sum(not isinstance(analyzed(query), RelationalQuery) for query in QUERIES.values()) == 7
