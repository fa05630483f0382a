"""Staged files must have exactly the columns of their table: which differences count, and how Parquet types are
spelled."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import Schema
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.adapters.delta.arrow_types import columns_of_arrow
from backfill_assets.core.epoch.records import Columns, CommitKind, StagedFile
from backfill_assets.core.epoch.staged_columns import Misfit, misfit
from backfill_assets.errors import StagingError
from backfill_assets.query.ddl import columns_of_delta
from tests.support.outputs import commit, output_at, record, stage

TABLE: Columns = (("id", "BIGINT"), ("At", "TIMESTAMP"))
EVERY = pa.schema([
    ("bool", pa.bool_()), ("byte", pa.int8()), ("short", pa.int16()), ("int", pa.int32()), ("long", pa.int64()),
    ("float", pa.float32()), ("double", pa.float64()), ("decimal", pa.decimal128(12, 2)), ("date", pa.date32()),
    ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")), ("text", pa.string()), ("bytes", pa.binary()),
    ("list", pa.list_(pa.struct([("a b", pa.int32())]))), ("map", pa.map_(pa.string(), pa.list_(pa.date32()))),
])  # fmt: skip
LIFE = "11111111"


def file(*columns: tuple[str, str], path: str = "f") -> StagedFile:
    return StagedFile(path=path, size=1, rows=1, modified_ms=0, stats="{}", columns=columns)


def test_columns_in_another_order_fit() -> None:
    assert misfit([file(*TABLE), file(*reversed(TABLE))], TABLE) is None
    assert misfit([], TABLE) is None


@pytest.mark.parametrize(
    ("columns", "column", "expected", "found"),
    [
        ([("id", "BIGINT")], "At", "TIMESTAMP", None),
        ([*TABLE, ("more", "INT")], "more", None, "INT"),
        ([("id", "INT"), TABLE[1]], "id", "BIGINT", "INT"),
        ([TABLE[0], ("At", "TIMESTAMP_NTZ")], "At", "TIMESTAMP", "TIMESTAMP_NTZ"),
        ([TABLE[0], ("at", "TIMESTAMP")], "At", "TIMESTAMP", None),
    ],
    ids=["missing", "too many", "another type", "without a zone", "another case"],
)
def test_the_first_column_that_does_not_fit_is_named(
    columns: list[tuple[str, str]], column: str, expected: str | None, found: str | None
) -> None:
    wrong = misfit([file(*TABLE), file(*columns, path="second")], TABLE)
    assert wrong == Misfit(path="second", column=column, expected=expected, found=found)


def test_every_type_is_spelled_as_that_of_a_delta_table() -> None:
    schema = Schema.from_arrow(EVERY).to_json()
    assert columns_of_arrow(EVERY) == tuple((each.name, each.type) for each in columns_of_delta(schema))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (pa.large_string(), "STRING"),
        (pa.large_binary(), "BINARY"),
        (pa.large_list(pa.large_string()), "ARRAY<STRING>"),
        (pa.timestamp("us", "Asia/Kolkata"), "TIMESTAMP"),
        (pa.decimal256(20, 3), "DECIMAL(20,3)"),
    ],
)
def test_spellings_of_one_type_are_one(written: pa.DataType, read: str) -> None:
    assert columns_of_arrow(pa.schema([("c", written)])) == (("c", read),)


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ns"), pa.timestamp("ms", "UTC"), pa.null(), pa.uint8(), pa.time64("us")]
)
def test_a_type_that_delta_does_not_have_keeps_arrows_name(kind: pa.DataType) -> None:
    ((_, spelled),) = columns_of_arrow(pa.schema([("c", kind)]))
    assert spelled == str(kind)
    assert spelled not in {type_ for _, type_ in columns_of_arrow(EVERY)}


@given(st.data())
def test_columns_fit_exactly_if_names_and_types_are_the_same(data: st.DataObject) -> None:
    columns = st.dictionaries(st.sampled_from("abcA"), st.sampled_from(["INT", "BIGINT"]))
    table, found = data.draw(columns), data.draw(columns)
    assert (misfit([file(*found.items())], tuple(table.items())) is None) == (table == found)


SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
SOUND = pa.table({"id": [1], "at": [0]}, schema=SCHEMA)


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        (SOUND.set_column(0, "id", [pa.array([1], pa.int32())]), {}, r"'id' .* expected BIGINT, .* found INT\s"),
        (SOUND.drop_columns("id"), {}, "'id' .* expected BIGINT, .* found no such column"),
        (SOUND.append_column("more", [["x"]]), {}, "'more' .* expected no such column, .* found STRING"),
        (SOUND, {"use_deprecated_int96_timestamps": True}, r"'at' .* expected TIMESTAMP, .* found timestamp\[ns\]"),
    ],
    ids=["another type", "missing", "too many", "old times"],
)
def test_files_with_other_columns_are_refused_before_the_commit(
    tmp_path: Path, rows: pa.Table, options: dict[str, Any], said: str
) -> None:
    output = output_at(tmp_path, SCHEMA)
    commit(output, record(CommitKind.CREATE, LIFE, 0))
    output.verify(stage(output, LIFE, 1, SOUND))
    with pytest.raises(StagingError, match=said) as caught:
        output.verify(stage(output, LIFE, 2, rows, **options))
    assert "nothing was committed" in caught.value.hint
