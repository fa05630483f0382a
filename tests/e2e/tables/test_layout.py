"""Views over several tables lie in files by their keys: few changes are in few files, and `maintain` restores that."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.compute import laid_out
from backfill_assets.adapters.delta.layout import commit_layout, is_laid_out
from backfill_assets.adapters.delta.staging import collect
from backfill_assets.app.lifecycle import maintain
from backfill_assets.core.epoch import merge_groups
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.errors import StagingError
from tests.support.lake import Lake
from tests.support.settings import FULL

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("spark")]

ROWS, PLACES = 50, 40
QUERIES: dict[str, tuple[str, str, str | None]] = {
    "rows": ("SELECT o.id, o.place, p.region FROM orders o JOIN places p ON o.place = p.name", "id", None),
    "keyed": ("SELECT o.id, o.place, p.region FROM orders o JOIN places p ON o.place = p.name", "id", "id"),
    "classes": ("SELECT o.id, o.twice, p.name FROM places p LEFT JOIN orders o ON o.place = p.name", "name", None),
    "groups": (
        "SELECT o.place AS name, count(*) AS n FROM orders o JOIN places p ON o.place = p.name GROUP BY o.place",
        "name",
        None,
    ),
}
"""Queries, the column by which each is laid out, and the key that is declared."""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    for module in (laid_out, merge_groups):
        monkeypatch.setattr(module, "ROWS_OF_FILE", ROWS)
    made = Lake(tmp_path)
    made.append("places", ({"name": f"place {at:02}", "region": at % 3} for at in range(PLACES)))
    for part in range(4):  # each file holds values from all over the table
        rows = [
            {"id": at, "place": f"place {at % PLACES:02}", "twice": at // 2} for at in range(400) if at % 7 % 4 == part
        ]
        made.append("orders", rows)
    return made


def view_of(lake: Lake, name: str, **given: Any) -> None:
    query, _, key = QUERIES[name]
    lake.view(name, query, lake.table("orders"), lake.table("places", "name"), primary_key=key, **given)


def is_right(lake: Lake, name: str) -> None:
    columns = [each for each in lake.rows(lake.location(name)).columns if not each.startswith("__")]
    assert lake.found(name, columns) == lake.expected(name, QUERIES[name][0], "orders", "places") != Counter()


def loaded(lake: Lake, name: str) -> DeltaTable:
    return DeltaTable(lake.location(name))


def removed(lake: Lake, name: str) -> int:
    """How many files the newest commit took away."""
    log = Path(lake.location(name)) / "_delta_log" / f"{loaded(lake, name).version():020d}.json"
    return sum("remove" in json.loads(line) for line in log.read_text().splitlines())


@pytest.mark.parametrize("name", QUERIES if FULL else ["rows", "classes"])
def test_the_first_build_is_laid_out_and_neighbours_that_change_are_in_few_files(lake: Lake, name: str) -> None:
    view_of(lake, name)
    lake.project.refresh(name)
    is_right(lake, name)
    column = QUERIES[name][1]
    files = pa.table(loaded(lake, name).get_add_actions(flatten=True)).to_pydict()
    if name == "groups":
        assert len(files["path"]) == 1
        return
    spans = sorted(zip(files[f"min.{column}"], files[f"max.{column}"], strict=True))
    assert len(spans) >= 6
    assert all(high <= low for (_, high), (low, _) in pairwise(spans))
    assert max(files["num_records"]) < 2 * ROWS
    first = "id IN (120, 121, 122)" if column == "id" else "place IN ('place 17', 'place 18')"
    lake.sql("orders", f"UPDATE {{t}} SET place = 'place 17' WHERE {first}")
    lake.project.refresh(name)
    is_right(lake, name)
    assert 1 <= removed(lake, name) <= 3


@pytest.mark.parametrize("name", ["groups", "keyed", "rows"] if FULL else ["rows"])
def test_history_in_chunks_is_laid_out_by_maintain_and_goes_on(
    lake: Lake, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    view_of(lake, name, strategy="snapshot")
    for _ in range(4):
        lake.project.refresh(name, Limits(chunk_rows=1, max_rows=1))
    is_right(lake, name)
    column = QUERIES[name][1]
    monkeypatch.setattr("backfill_assets.adapters.delta.layout._MOST_OVERLAP", 1)
    before = loaded(lake, name)
    assert is_laid_out(before, column) == (name == "groups")
    maintain(lake.project.workspace(), name)
    assert is_laid_out(loaded(lake, name), column)
    is_right(lake, name)
    version = loaded(lake, name).version()
    maintain(lake.project.workspace(), name)
    assert loaded(lake, name).version() <= version + 1, "what is laid out is only restated"
    lake.sql("orders", "UPDATE {t} SET place = 'place 03' WHERE id < 3", "DELETE FROM {t} WHERE id = 100")
    lake.append("orders", [{"id": 1000, "place": "place 39", "twice": 1}])
    lake.project.refresh(name)
    is_right(lake, name)
    for check in ("exactly_once", "rows_conserved"):
        outcome = lake.project.check(name, check)
        assert outcome.passed, outcome


def test_a_layout_of_other_rows_or_of_an_older_version_is_not_committed(lake: Lake) -> None:
    view_of(lake, "rows")
    lake.project.refresh("rows")
    workspace = lake.project.workspace()
    location = workspace.table(workspace.registry.find("rows")).output.location
    before = loaded(lake, "rows")
    folders = [f"{'a' * 8}-{at}-{'b' * 8}" for at in (1, 2)]
    every = laid_out.laid_out_again(workspace.runner, location, before, ["id"], folders[0])
    with pytest.raises(StagingError, match="laid out again"):
        commit_layout(location, before, every[1:])
    lake.sql("orders", "DELETE FROM {t} WHERE id = 100")
    lake.project.refresh("rows")
    newest = loaded(lake, "rows").version()
    assert not commit_layout(location, before, collect(location, folders[0]))
    assert loaded(lake, "rows").version() == newest
    is_right(lake, "rows")
