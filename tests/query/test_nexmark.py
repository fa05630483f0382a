"""The queries of Nexmark: the rules by which views follow changes, as the docs list them, and what is refused."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from backfill_assets.errors import QueryError
from backfill_assets.query.relational import RelationalQuery
from tests.support.nexmark import COLUMNS, QUERIES, REFUSED, analyzed, rule_of, tables_of

PAGE = Path(__file__).parents[2] / "docs" / "nexmark.md"
TABLES = ("auction", "bid", "person", "side_input")


def row(*cells: str) -> str:
    return "|" + "|".join(f" {each} " if each else " " for each in cells) + "|"


def told(query: str, changed: Iterable[str]) -> str:
    return rule_of(query, [*changed]) or "row-wise"


def listed(header: str, *, without: int | None = None) -> list[str]:
    """The rows of the page's table with this header, less a column that only people read."""
    text = PAGE.read_text(encoding="utf-8")
    _, _, rest = text.partition(f"{header}\n")
    lines = [re.split(r" ?\| ?", line)[1:-1] for line in rest.split("\n\n")[0].splitlines()[1:]]
    return [row(*(cell for at, cell in enumerate(cells) if at != without)) for cells in lines]


def test_the_page_lists_the_rule_for_changes_of_each_table() -> None:
    expected = [
        row(name, *(told(query, [table]) if table in tables_of(query) else "" for table in TABLES))
        for name, query in QUERIES.items()
    ]
    assert listed("| view | what it asks for | `auction` | `bid` | `person` | `side_input` |", without=1) == expected


def test_only_what_asks_for_all_rows_together_is_computed_in_full() -> None:
    assert {name for name, query in QUERIES.items() if rule_of(query, tables_of(query)) == "full"} == {"q107"}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_benchmark_asks_of_the_clock_or_approximately_is_refused(name: str) -> None:
    reason, query = REFUSED[name]
    with pytest.raises(QueryError) as caught:
        analyzed(query)
    assert caught.value.reason == reason
    assert f"- {name} " in PAGE.read_text(encoding="utf-8")
    assert f"(`{reason}`)" in PAGE.read_text(encoding="utf-8")


def test_all_tables_are_read_and_views_without_a_rule_of_their_own_are_few() -> None:
    assert {table for query in QUERIES.values() for table in tables_of(query)} == set(COLUMNS)
    assert sum(not isinstance(analyzed(query), RelationalQuery) for query in QUERIES.values()) == 7
