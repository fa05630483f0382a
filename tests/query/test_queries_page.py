"""What the page on queries says of its examples, and of those of the benchmarks, is what the analysis finds."""

import re
from pathlib import Path

import pytest

from backfill_assets.errors import QueryError
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.query import Query, analyze
from backfill_assets.query.relational import RelationalQuery
from backfill_assets.query.text_checks import check_text
from tests.support import nexmark, tpch

TEXT = (Path(__file__).parents[2] / "docs" / "queries.md").read_text(encoding="utf-8")
TABLES = {name: parse_schema(columns) for name, columns in re.findall(r"`([abc]) \((id BIGINT, [^)]*)\)`", TEXT)}
IN_WORDS = {"lower", "upper", "trim", "substring", "left"}
"""Functions of texts that the page names without arguments."""


def listed(header: str) -> list[list[str]]:
    """The cells of the page's table with this header."""
    _, _, rest = TEXT.partition(f"{header}\n")
    lines = rest.split("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")] for line in lines]


def named(query: str) -> list[str]:
    return [name for name in TABLES if re.search(rf"\b(FROM|JOIN) {name}\b", query)]


def analyzed(query: str) -> Query:
    names = named(query)
    return analyze(query, {name: TABLES[name] for name in names}, dict.fromkeys(names, ("id",)))


def told(query: Query, table: str) -> str:
    """How changes of a table are followed, as a cell of the page says it."""
    if not isinstance(query, RelationalQuery):
        return "groups" if isinstance(query, AggregateQuery) else "row-wise"
    steps = query.steps([table])
    return f"`{steps.rule}`" + (f" while {' and '.join(steps.conditions)}" if steps.conditions else "")


EXAMPLES = listed("| query | changes of `a` | of `b` | of `c` |")
REFUSED = listed("| query | code |")


@pytest.mark.parametrize(("query", "cells"), [(query.strip("`"), cells) for query, *cells in EXAMPLES])
def test_the_page_tells_by_which_rule_changes_of_each_table_are_followed(query: str, cells: list[str]) -> None:
    names, found = named(query), analyzed(query)
    assert cells == [told(found, name) if name in names else "" for name in TABLES]


def test_the_page_has_an_example_of_each_rule_and_condition() -> None:
    cells = {cell for _, *cells in EXAMPLES for cell in cells if cell}
    rules = {"`linear`", "`additive`", "`restricted`", "`full`", "row-wise", "groups"}
    conditions = {
        "`restricted` while NOT IN compares no null",
        "`linear` while subqueries for one value give the same",
        "`linear` while enough of the first rows are known",
    }
    assert rules | conditions <= cells
    assert (len(TABLES), len(EXAMPLES) > 40, len(REFUSED) > 15) == (3, True, True)


@pytest.mark.parametrize(("query", "code"), [(query.strip("`"), code.strip("`")) for query, code in REFUSED])
def test_the_page_tells_with_which_code_a_query_is_refused(query: str, code: str) -> None:
    refuse = check_text if code == "UNKNOWN_FUNCTION" else analyzed
    with pytest.raises(QueryError) as caught:
        refuse(query)
    assert caught.value.reason == code


def expressions(text: str) -> list[str]:
    """The expressions that a part of the page names; functions of texts get a column."""
    found = re.findall(r"`([^`]+)`", text.replace("\n", " "))
    arguments = {"substring": "who, 1, 2", "left": "who, 2"}
    return [f"{each}({arguments.get(each, 'who')})" if each in IN_WORDS else each for each in found if each != "BIGINT"]


_KEYS, _, _REST = TEXT.partition("A key may be **computed**")[2].partition("Other expressions are no keys")
_NO_KEYS = _REST.partition(" Rows of a table")[0]
_OF_THE_OTHERS = ("CAST(id AS STRING)", "CAST(at AS DATE)", "CAST(k AS BIGINT)", "lower(trim(who))")
"""Conversions, and one expression within another, which the page tells in words."""


@pytest.mark.parametrize("expression", [*expressions(_KEYS), *_OF_THE_OTHERS])
def test_the_page_tells_which_expressions_are_keys(expression: str) -> None:
    assert rule_of_groups(expression) == "restricted"


@pytest.mark.parametrize("expression", expressions(_NO_KEYS))
def test_the_page_tells_which_expressions_are_no_keys(expression: str) -> None:
    assert rule_of_groups(expression.replace("text", "who")) == "full"


def rule_of_groups(expression: str) -> str:
    """The rule of groups by an expression whose aggregate has none of its own."""
    shown = "window.start" if expression.startswith("window") else expression
    found = analyzed(f"SELECT {shown} AS e, count(DISTINCT price) AS n FROM a GROUP BY {expression}")
    assert isinstance(found, RelationalQuery)
    return found.steps(["a"]).rule


def in_full_or_if(queries: dict[str, RelationalQuery]) -> tuple[set[str], dict[str, set[str]]]:
    """The queries that are computed in full after a change of some table, and the others that have conditions."""
    steps = {name: [found.steps([table]) for table in found.upstreams] for name, found in queries.items()}
    full = {name for name, each in steps.items() if any(step.rule == "full" for step in each)}
    conditions = {name: {words for step in each for words in step.conditions} for name, each in steps.items()}
    return full, {name: words for name, words in conditions.items() if words and name not in full}


def test_what_the_page_says_of_the_benchmarks() -> None:
    whole = {name: tpch.analyzed(query) for name, query in tpch.QUERIES.items()}
    full, asked = in_full_or_if({name: each for name, each in whole.items() if isinstance(each, RelationalQuery)})
    nulls, value, first = (
        {"NOT IN compares no null"},
        {"subqueries for one value give the same"},
        {"enough of the first rows are known"},
    )
    limited = dict.fromkeys(("q2", "q3", "q10", "q18", "q21"), first)
    assert (full, asked) == (set(), {"q16": nulls, "q11": value, "q15": value, "q22": value, **limited})
    assert f"All {len(whole)} queries of TPC-H follow changes of every table" in TEXT
    added = {name: nexmark.analyzed(query) for name, query in nexmark.QUERIES.items()}
    full, asked = in_full_or_if({name: each for name, each in added.items() if isinstance(each, RelationalQuery)})
    assert (full, asked) == ({"q107"}, {"q102": value, "q104": nulls, "q105": first})
    assert f"Of the {len(added)} queries of Nexmark {len(added) - len(full)} do" in TEXT
