"""Joined tables that surely give few rows are laid out by one task, without counting what they give."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_assets.adapters.compute import value_parts as parts_of_values
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


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark may run any number of tasks."""
    monkeypatch.setattr(parts_of_values, "tasks_of_machine", lambda _spark: 0)


def parts(
    folder: Path, rows: int, *, files: int = 1, note: str = "", known: int = 0, **reads: TableRead
) -> ValueParts | None:
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
    attempt: Any = SimpleNamespace(read=dict(enumerate(every.values())), schema="", spark=None)
    query = analyze_relational(QUERY, dict.fromkeys(upstreams, parse_schema(SCHEMA)))
    return value_parts(attempt, query, upstreams, "none of a table", rows=known)


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


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ((1, 4_000, 300), ValueParts(1, "", 1_000)),
        ((2, 1_000, 300), ValueParts(2, "", 1_000)),
        ((2, 0, 3_001), ValueParts(2, "", 1_000)),
        ((3, 0, 9_000), ValueParts(3, "", 1_000)),
        ((4, 9_000, 9_000), None),
        ((0, 9_000, 9_000), None),
        ((2, 999, 9_000), None),
        ((2, 0, 3_000), None),
    ],
    ids=["one", "two", "two that read many", "three", "many", "a cluster", "few rows", "few rows that are read"],
)
def test_rows_stay_in_the_few_tasks_of_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[int, int, int], found: ValueParts | None
) -> None:
    tasks, known, held = given
    monkeypatch.setattr(merge_groups, "ROWS_OF_FILE", 1_000)
    monkeypatch.setattr(parts_of_values, "tasks_of_machine", lambda _spark: tasks)
    read = FullRead(source="a", table_id="", first=0, last=0, rows=held, held=held)
    assert parts(tmp_path, 300, known=known, a=read) == found


@pytest.mark.parametrize(
    ("parts", "by_values"), [(ValueParts(1, "", 9), True), (ValueParts(2, "", 9), False), (ValueParts(2, "0", 9), True)]
)
def test_rows_with_a_value_are_in_one_part_unless_parts_are_of_any(parts: ValueParts, by_values: bool) -> None:
    assert parts.by_values is by_values
