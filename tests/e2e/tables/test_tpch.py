"""The queries of TPC-H as views over Delta tables that change in every way: equal to Spark's answer after every step."""

from functools import partial
from pathlib import Path
from random import Random

import pytest

from tests.support.followed_tables import FIRST, Rows, copies_after, followed, held_after, rows_of
from tests.support.lake import Lake
from tests.support.settings import CHECKS, FULL, one_in_gate
from tests.support.tpch import KEYS, QUERIES, rule_of, tables_of
from tests.support.tpch_world import STEPS, change, fill

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("spark")]


_LAST = len(STEPS) if FULL else 1
"""How many steps there are; in the gate only the first."""

_IN_FULL = {
    "q11": {0: "parameters", 1: "parameters"},
    "q15": {0: "parameters", 1: "parameters"},
    "q16": {1: "nulls", 2: "nulls"},
    "q22": {0: "parameters", 1: "parameters"},
}
"""The steps that queries do not follow by a rule, and why. In the last step, values stay and no line changes; suppliers
without a key come in the one before. Queries with LIMIT do not follow where too few of the first rows are known."""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Copies of the tables after each step."""
    return copies_after(Lake(tmp_path_factory.mktemp("tpch")), Random("tpch 5"), fill, change, _LAST)


def follow(lake: Lake, name: str, query: str, step: int) -> Rows | None:
    """The rows of a view after it has followed a step, by the rule for what changed; none if nothing did."""
    changed = [each for each in tables_of(query) if step == FIRST or each in STEPS[step]]
    if (record := followed(lake, name, changed)) is None:
        return None
    rule = rule_of(query, changed)
    why = "first" if step == FIRST else _IN_FULL.get(name, {}).get(step, "")
    if "LIMIT" in query and record.why_full == "first_rows":
        why = "first_rows"
    assert (record.rule, record.why_full) == (("full", why) if why and rule else (rule, ""))
    return rows_of(lake, name, query, tables_of(query))


@pytest.mark.parametrize("name", one_in_gate("q3", *(name for name in QUERIES if name != "q3")))
def test_a_view_is_equal_to_its_query_after_every_step(history: dict[int, Path], tmp_path: Path, name: str) -> None:
    lake, query = Lake(tmp_path), QUERIES[name]
    tables = [lake.table(each, KEYS.get(each)) for each in tables_of(query)]
    lake.view(name, query, *tables, refresh_mode="incremental")
    for _, rows in held_after(lake, history, partial(follow, lake, name, query)):
        assert any(value is not None for row in rows for value in row), "no step is proved by nothing"
    lake.passes(name, CHECKS)
