"""Float keys: equal values have one form in a view, and are the same key in whatever form other writers wrote them."""

import math
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from backfill_assets.app.refresh import refresh
from backfill_assets.core.epoch.costs import TableStrategy
from backfill_assets.core.epoch.limits import Limits
from tests.support.damage import recompact
from tests.support.lake import Lake
from tests.support.large import large
from tests.support.settings import one_in_gate

pytestmark = pytest.mark.e2e

NAN = struct.unpack("d", struct.pack("Q", 0xFFF8_0000_0000_0001))[0]
"""NaN, with other bits than Python, Spark and Arrow use."""
ODD = {"NaN": NAN, "zero": -0.0, "some": 1.5, "null": None}
PLAIN = {"NaN": math.nan, "zero": 0.0, "some": 1.5, "null": None}
SCHEMA = pa.schema({"x": pa.float64(), "y": pa.float32(), "v": pa.string()})


def rows(v: str) -> pa.Table:
    """A row for each pair of numbers, half of them in unusual forms."""
    made = [{"x": (ODD if two in {"NaN", "null"} else PLAIN)[one], "y": ODD[two], "v": v} for one in ODD for two in ODD]
    return pa.Table.from_pylist(made, schema=SCHEMA)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table with float columns in its key, in two files."""
    made = Lake(tmp_path)
    made.append("base", rows("old").slice(0, 8))
    made.append("base", rows("old").slice(8))
    return made


def odd(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with all their floats in unusual forms."""
    forms = {None: None, "nan": NAN, "0.0": -0.0, "-0.0": -0.0, "1.5": 1.5}
    return [
        {name: value if isinstance(value, str | int) else forms[str(value) if value is not None else None]
         for name, value in row.items()}
        for row in found
    ]  # fmt: skip


def keys(lake: Lake, view: str, *columns: str) -> Counter[tuple[bytes | None, ...]]:
    """The keys in a view, by their bits."""
    table = DeltaTable(lake.location(view)).to_pyarrow_table(columns=list(columns))
    return Counter(tuple(map(bits, row.values())) for row in table.to_pylist())


def bits(value: float | None) -> bytes | None:
    return None if value is None else struct.pack("d", value)


def plain_keys(columns: int) -> Counter[tuple[bytes | None, ...]]:
    """Each key once, in the one form that it has in views."""
    numbers = [bits(value) for value in PLAIN.values()]
    return Counter([(one,) for one in numbers] if columns == 1 else [(one, two) for one in numbers for two in numbers])


def exact(lake: Lake, view: str, query: str, columns: list[str], *checks: str) -> None:
    assert lake.found(view, columns) == lake.expected(view, query, "base")
    for check in checks:
        outcome = lake.project.check(view, check)
        assert outcome.passed, f"{check}: {outcome.summary}"


def follow_by_either_engine(lake: Lake, view: str, query: str, columns: list[str]) -> None:
    """Another tool's compaction writes the view's floats in unusual forms; then all rows are replaced, and some are
    inserted and deleted."""
    for engine, workspace in (("arrow", lake.project.workspace()), ("spark", large(lake))):
        recompact(lake.project, view, odd)
        table = DeltaTable(lake.path("base"))
        table.update({"v": f"'{engine}'"})
        table.delete("isnan(y) OR y = 0")
        done = refresh(workspace, view, Limits(), run_id=engine).report
        assert done.record.engine == engine
        exact(lake, view, query, columns)
        recompact(lake.project, view, odd)
        table.delete()
        lake.append("base", rows(f"{engine} again"))
        refresh(workspace, view, Limits(), run_id=engine)
        exact(lake, view, query, columns, "unique_key", "exactly_once")


@pytest.mark.full
@pytest.mark.parametrize("strategy", one_in_gate("snapshot", "snapshot_once", "arrangement", "rearranged"))
def test_rows_by_float_keys_are_one_for_each_key(lake: Lake, strategy: TableStrategy) -> None:
    query = "SELECT x, v, y FROM base"
    lake.view("copy", query, lake.table("base", key=["x", "y"]), strategy=strategy)
    lake.project.refresh("copy", Limits(chunk_rows=8))
    assert keys(lake, "copy", "x", "y") == plain_keys(2)
    follow_by_either_engine(lake, "copy", query, ["x", "v", "y"])
    assert keys(lake, "copy", "x", "y") == plain_keys(2)


def test_hidden_float_keys_have_one_form_too(lake: Lake) -> None:
    lake.view("hidden", "SELECT v FROM base", lake.table("base", key=["x", "y"]))
    lake.project.refresh("hidden")
    assert keys(lake, "hidden", "__x", "__y") == plain_keys(2)


@pytest.mark.full
def test_groups_by_floats_are_one_for_each_key(lake: Lake) -> None:
    query = "SELECT x, count(*) AS n, min(v) AS v FROM base GROUP BY x"
    lake.view("groups", query, lake.table("base", key=["x", "y"]))
    lake.project.refresh("groups", Limits(chunk_rows=8))
    assert keys(lake, "groups", "x") == plain_keys(1)
    follow_by_either_engine(lake, "groups", query, ["x", "n", "v"])
    assert keys(lake, "groups", "x") == plain_keys(1)


def test_floats_inside_of_a_key_have_one_form_too(lake: Lake) -> None:
    inside = pa.struct({"a": pa.float64(), "it's": pa.list_(pa.float32())})
    schema = pa.schema({"k": inside, "v": pa.string()})
    keys = [{"a": NAN, "it's": [-0.0]}, {"a": -0.0, "it's": [NAN, None]}, {"a": 1.5, "it's": None}, None]
    lake.append("deep", pa.Table.from_pylist([{"k": key, "v": "old"} for key in keys], schema=schema))
    query = "SELECT k, v FROM deep"
    lake.view("copy", query, lake.table("deep", key="k"))
    lake.project.refresh("copy")
    for engine, workspace in (("delta-rs", lake.project.workspace()), ("spark", large(lake))):
        DeltaTable(lake.path("deep")).update({"v": f"'{engine}'"})
        assert refresh(workspace, "copy", Limits(), run_id=engine).report.record.engine == engine
        assert lake.found("copy", ["v", "to_json(k)"]) == Counter([
            (engine, '{"a":"NaN","it\'s":[0.0]}'),
            (engine, '{"a":0.0,"it\'s":["NaN",null]}'),
            (engine, '{"a":1.5}'),
            (engine, None),
        ])
