"""The queries of Nexmark as views over Delta tables that change in every way: equal to Spark's answer after every step."""

from functools import partial
from pathlib import Path
from random import Random

import pytest

from tests.support.followed_tables import FIRST, Rows, copies_after, followed, held_after, rows_of
from tests.support.lake import Lake
from tests.support.nexmark import KEYS, QUERIES, rule_of, tables_of
from tests.support.nexmark_world import STEPS, change, fill, is_lone
from tests.support.settings import CHECKS, FULL, one_in_gate

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("spark")]

_LAST = len(STEPS) if FULL else 1
"""How many steps there are; in the gate only the first."""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Copies of the tables after each step."""
    return copies_after(Lake(tmp_path_factory.mktemp("nexmark")), Random("nexmark"), fill, change, _LAST)


def follow(lake: Lake, name: str, query: str, step: int) -> Rows | None:
    """The rows of a view after it has followed a step, by the rule for what changed; none if nothing did."""
    changed = [each for each in tables_of(query) if step == FIRST or each in STEPS[step]]
    if (record := followed(lake, name, changed)) is None:
        return None
    rule = rule_of(query, changed)
    # Bids that name no auction are nulls, by which NOT IN is not followed; and each bid moves the average of all.
    in_full = step == FIRST or (name in {"q102", "q104"} and "bid" in changed)
    lacks_rows = "LIMIT" in query and record.why_full == "first_rows"
    assert record.rule == ("full" if rule and (in_full or lacks_rows) else rule)
    return rows_of(lake, name, query, tables_of(query))


@pytest.mark.parametrize("name", one_in_gate("q9", *(name for name in QUERIES if name != "q9")))
def test_a_view_is_equal_to_its_query_after_every_step(history: dict[int, Path], tmp_path: Path, name: str) -> None:
    lake, query = Lake(tmp_path), QUERIES[name]
    tables = [lake.table(each, KEYS.get(each)) for each in tables_of(query)]
    lake.view(name, query, *tables, refresh_mode="incremental")
    for step, rows in held_after(lake, history, partial(follow, lake, name, query)):
        # A null among the rows of NOT IN refuses all others.
        assert (rows.total() == 0) == (name == "q104" and is_lone(step))
    lake.passes(name, CHECKS)
