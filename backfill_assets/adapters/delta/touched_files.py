"""Which files of an output a merge may touch, by the bounds of its key's columns in the log, and where it has to look.

Only columns whose bounds are exact are used, and only those in which no changed row has a null. Of columns that the table's
property does not list (`core.epoch.bounds`), delta-rs gives no bounds.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from backfill_assets.adapters.delta.plain_values import plain_values
from backfill_assets.core.epoch.bounds import boundable
from backfill_assets.core.epoch.records import StagedFile
from backfill_assets.core.epoch.touched_spans import Span, apart, blocks, may_touch, touched_spans

__all__ = [
    "Changes",
    "LoggedFile",
    "changes_of_files",
    "changes_of_rows",
    "lowest_values",
    "touched_files",
    "touched_values",
]

Changes = Mapping[str, Sequence[Span]]
"""For columns of a key, the spans in which changed rows have their values, sorted and apart."""

_MOST_FILES = 10_000
"""The bounds of no more files are compared with the changes in this process."""


@dataclass(frozen=True, kw_only=True)
class LoggedFile:
    """A data file of a version: its path as the log names it, its size, and how many rows the log says it has."""

    path: str
    size: int
    rows: int | None

    @property
    def stored(self) -> str:
        """Where the file is, relative to the table."""
        return unquote(self.path)


def changes_of_rows(table: DeltaTable, key: Iterable[str], rows: pa.Table) -> Changes:
    """The values that changed rows have in the key's columns."""
    found = {name: _values(rows.column(name)) for name in _bounded_columns(table, key)}
    return {name: blocks(values) for name, values in found.items() if values}


def changes_of_files(table: DeltaTable, key: Iterable[str], files: Sequence[StagedFile]) -> Changes:
    """The same for staged rows, by the bounds in which their files are described."""
    described = [json.loads(each.stats) for each in files]
    found = {
        name: [_stated(each, name, kind) for each in described] for name, kind in _bounded_columns(table, key).items()
    }
    return {
        name: apart(span for span in spans if span is not None)
        for name, spans in found.items()
        if spans and None not in spans
    }


def touched_values(table: DeltaTable, changes: Changes) -> dict[str, list[Span]]:
    """Between which values of columns the rows of a table lie that have the key of a changed row; only columns by which some
    file is spared."""
    found = {name: touched_spans(changes[name], bounds) for name, bounds in _bounds(table, changes).items()}
    return {name: spans for name, spans in found.items() if spans is not None}


def touched_files(table: DeltaTable, changes: Changes) -> list[LoggedFile]:
    """The files that may have a changed row."""
    listed = pa.table(table.get_add_actions()).select(["path", "size_bytes", "num_records"]).to_pylist()
    touched = [True] * len(listed)
    for name, bounds in _bounds(table, changes).items():
        touched = [every and may_touch(changes[name], file) for every, file in zip(touched, bounds, strict=True)]
    return [
        LoggedFile(path=each["path"], size=each["size_bytes"], rows=each["num_records"])
        for each, is_touched in zip(listed, touched, strict=True)
        if is_touched
    ]


def lowest_values(table: DeltaTable, column: str) -> dict[str, Any]:
    """The lowest value of a column in each file, by the file's path; only of a column whose bounds are exact, and of files
    that have some."""
    paths = pa.table(table.get_add_actions()).column("path").to_pylist()
    spans = spans_of_files(table, column)
    return {path: span[0] for path, span in zip(paths, spans, strict=True) if span is not None}


def spans_of_files(table: DeltaTable, column: str) -> list[Span | None]:
    """Between which values of a column the rows of each file lie, in the order of the log's entries; None where that is not
    known exactly."""
    found = _bounds(table, _bounded_columns(table, [column])).get(column)
    return [None] * len(pa.table(table.get_add_actions())) if found is None else found


def _bounded_columns(table: DeltaTable, names: Iterable[str]) -> dict[str, str]:
    """Those of these columns whose bounds are exact, with their types."""
    kinds = boundable(table.schema().to_json())
    return {name: kinds[name] for name in names if name in kinds}


def _bounds(table: DeltaTable, names: Iterable[str]) -> dict[str, list[Span | None]]:
    """The bounds of these columns in each file, in the order of the log's entries."""
    files = pa.table(table.get_add_actions())
    if len(files) > _MOST_FILES or not {"min", "max"} <= set(files.column_names):
        return {}
    low, high = ({each.name for each in files.schema.field(end).type} for end in ("min", "max"))
    return {
        name: list(map(_span, *(_plain(files.column(end), name) for end in ("min", "max"))))
        for name in names
        if name in low & high
    }


def _plain(bounds: pa.ChunkedArray, name: str) -> list[Any]:
    found = plain_values(pc.struct_field(bounds, [bounds.type.get_field_index(name)]))
    return [None] * len(bounds) if found is None else found


def _span(low: Any, high: Any) -> Span | None:
    return None if low is None or high is None else (low, high)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column, each once, sorted; none if there is a null, or one that Python cannot represent."""
    return [] if column.null_count else sorted(plain_values(pc.unique(column)) or [])


def _stated(stats: Mapping[str, Any], name: str, kind: str) -> Span | None:
    """The bounds of a column in a file's statistics; None if they are missing, or the column has nulls."""
    low, high = ((stats.get(end) or {}).get(name) for end in ("minValues", "maxValues"))
    if low is None or high is None or (stats.get("nullCount") or {}).get(name) != 0:
        return None
    return (date.fromisoformat(low), date.fromisoformat(high)) if kind == "date" else (low, high)
