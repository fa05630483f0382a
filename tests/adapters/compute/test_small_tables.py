"""Joined tables that surely give few rows are laid out by one task, without counting what they give."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_assets.adapters.compute.value_parts import ValueParts, value_parts
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch import merge_groups
from backfill_assets.core.progress.reads import FullRead, LookupRead, TableRead
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.relational import analyze_relational

SCHEMA = "id BIGINT, note STRING"
QUERY = "SELECT a.note FROM a JOIN b ON a.id = b.id"


LONG = random.Random(1).randbytes(2**19).hex()
"""A text that does not get smaller in a file."""


def parts(folder: Path, rows: int, *, files: int = 1, note: str = "", **reads: TableRead) -> ValueParts | None:
    """What is known of a join of two tables with so many rows each, in so many files."""
    upstreams = {}
    for name in ("a", "b"):
        for first in range(files):
            given = pa.table({"id": range(first, rows, files), "note": [note] * len(range(first, rows, files))})
            write_deltalake(str(folder / name), given, mode="append")
        upstreams[name] = DeltaUpstream(name, TableLocation(uri=str(folder / name)))
    last = files - 1
    every = {
        name: FullRead(source=name, table_id="", first=0, last=last, rows=rows, held=rows) for name in upstreams
    } | reads
    attempt: Any = SimpleNamespace(read=dict(enumerate(every.values())), schema="")
    query = analyze_relational(QUERY, dict.fromkeys(upstreams, parse_schema(SCHEMA)))
    return value_parts(attempt, query, upstreams, "none of a table", rows=0)


def test_small_tables_are_one_part(tmp_path: Path) -> None:
    assert parts(tmp_path, 200, files=3) == ValueParts(1, "0", merge_groups.ROWS_OF_FILE)


@pytest.mark.parametrize(("rows", "files", "note"), [(224, 1, ""), (40, 20, ""), (2, 1, LONG)])
def test_rows_files_or_bytes_may_be_many(tmp_path: Path, rows: int, files: int, note: str) -> None:
    assert parts(tmp_path, rows, files=files, note=note) is None


def test_what_does_not_fit_one_file_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_groups, "ROWS_OF_FILE", 1_000)
    assert parts(tmp_path / "small", 30) == ValueParts(1, "0", 1_000)
    assert parts(tmp_path / "more", 31) is None


def test_chunks_are_counted(tmp_path: Path) -> None:
    assert parts(tmp_path, 10, b=LookupRead(source="b", table_id="", version=0, held=10)) is None
