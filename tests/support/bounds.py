"""The statistics in a table's log, read without the product, compared with the files' rows, read by Arrow."""

import json
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = ["longest_bound", "stated", "untrue"]


def stated(location: str) -> dict[str, dict[str, Any]]:
    """The statistics of each file of the newest version, by its path, from the commits of the log."""
    found: dict[str, dict[str, Any]] = {}
    for entry in sorted(Path(location, "_delta_log").glob("*.json")):
        for action in map(json.loads, entry.read_text().splitlines()):
            if "remove" in action:
                found.pop(action["remove"]["path"], None)
            if "add" in action:
                found[action["add"]["path"]] = json.loads(action["add"].get("stats") or "{}")
    return found


def checkpointed(location: str) -> dict[str, dict[str, Any]]:
    """The same from the newest checkpoint."""
    newest = max(Path(location, "_delta_log").glob("*.checkpoint.parquet"))
    adds = [each for each in pq.read_table(newest, columns=["add"])["add"].to_pylist() if each is not None]
    return {each["path"]: json.loads(each["stats"]) for each in adds}


def untrue(location: str, stats: Mapping[str, Mapping[str, Any]] | None = None) -> list[str]:
    """The statistics that are wrong."""
    files = stated(location) if stats is None else stats
    return [f"{path}: {wrong}" for path, each in files.items() for wrong in _untrue(location, path, each)]


def longest_bound(location: str) -> int:
    """The number of characters in the longest string among all bounds."""
    kinds = ("minValues", "maxValues")
    return max(len(str(v)) for each in stated(location).values() for kind in kinds for v in each[kind].values())


def _untrue(location: str, path: str, stats: Mapping[str, Any]) -> Iterator[str]:
    rows = pq.ParquetFile(Path(location, unquote(path))).read()
    if rows.num_rows != stats["numRecords"]:
        yield f"{rows.num_rows} rows"
    for name, nulls in (stats.get("nullCount") or {}).items():
        if rows[name].null_count != nulls:
            yield f"{rows[name].null_count} nulls of {name}"
    for kind, at, holds in (("minValues", "min", pc.less_equal), ("maxValues", "max", pc.greater_equal)):
        for name, bound in (stats.get(kind) or {}).items():
            values = rows[name].cast(pa.string()) if pa.types.is_string_view(rows[name].type) else rows[name]
            extreme = pc.min_max(values)[at]
            if not holds(_scalar(bound, values.type), extreme).as_py():
                yield f"{kind} {bound} of {name}, whose {at} is {extreme}"


def _scalar(bound: Any, kind: pa.DataType) -> pa.Scalar:
    """A bound as a value of the column; a type whose bounds are not exact must have none there."""
    if pa.types.is_date32(kind):
        return pa.scalar(date.fromisoformat(bound), kind)
    assert pa.types.is_integer(kind) or pa.types.is_string(kind), f"a bound of {kind}"
    return pa.scalar(bound, kind)
