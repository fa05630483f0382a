"""Files that this process writes: described as Spark's are, and as harmless to readers who trust statistics."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from backfill_assets.adapters.delta import arrow_files
from backfill_assets.adapters.delta.arrow_files import FileWriter, put_rows
from backfill_assets.adapters.delta.staged_files import collect
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.bounds import MAX_TEXT
from backfill_assets.core.epoch.records import StagedFile

ROWS = pa.table(
    {
        "id": pa.array([3, None, -(2**63), 2**63 - 1], pa.int64()),
        "small": pa.array([-128, 127, None, 0], pa.int8()),
        "word": ["b" * 5_000, "", None, "\U0001f600" * 40],
        "day": [date(1, 1, 1), None, date(9999, 12, 31), date(1500, 2, 28)],
        "x": [float("nan"), -0.0, None, float("inf")],
        "wei": pa.array([Decimal("1.234567890123456789"), None, Decimal(0), Decimal("-0.1")], pa.decimal128(38, 18)),
        "nothing": pa.array([None] * 4, pa.string()),
        "many": pa.array([[1.0, None], [], None, [float("nan")]], pa.list_(pa.float64())),
        "named": pa.array([{"d": 1}, None, {"d": None}, {"d": 2}], pa.struct([pa.field("d", pa.int64())])),
        "by": pa.array([[("a", 1)], [], None, [("b", None)]], pa.map_(pa.string(), pa.int64())),
    },
)  # fmt: skip


@pytest.fixture
def location(tmp_path: Path) -> TableLocation:
    return TableLocation(uri=str(tmp_path))


def put(location: TableLocation, rows: pa.Table = ROWS) -> StagedFile:
    return put_rows(location, "11111111-1-aaaaaaaa/part.parquet", rows)


def test_a_file_is_described_as_its_own_footer_describes_it_to_others(location: TableLocation) -> None:
    made = put(location)
    (found,) = collect(location, "11111111-1-aaaaaaaa")
    assert made.model_copy(update={"modified_ms": 0, "stats": ""}) == found.model_copy(
        update={"modified_ms": 0, "stats": ""}
    )
    assert abs(made.modified_ms - found.modified_ms) < 60_000
    stated, read = json.loads(made.stats), json.loads(found.stats)
    assert stated["numRecords"] == len(ROWS)
    assert stated["nullCount"] == {"id": 1, "small": 1, "word": 1, "day": 1, "nothing": 4}
    assert read["minValues"].items() <= stated["minValues"].items()


def test_bounds_are_exact_and_there_for_all_columns_that_have_them_however_long_a_text_is(
    location: TableLocation,
) -> None:
    stated = json.loads(put(location).stats)
    assert stated["minValues"] == {"id": -(2**63), "small": -128, "word": "", "day": "0001-01-01"}
    high = stated["maxValues"]
    assert {name: high[name] for name in ("id", "small", "day")} == {"id": 2**63 - 1, "small": 127, "day": "9999-12-31"}
    assert high["word"] >= "\U0001f600" * 40
    assert len(high["word"]) <= MAX_TEXT


def test_a_text_that_is_not_utf_8_and_a_year_beyond_9999_have_no_bounds(location: TableLocation) -> None:
    bad = pa.array([b"\xff\xfe", b"a"], pa.binary()).view(pa.string())
    ages = pa.array([3_000_000, 1], pa.int32()).view(pa.date32())
    stated = json.loads(put(location, pa.table({"word": bad, "day": ages, "id": [1, 2]})).stats)
    assert (stated["minValues"], stated["maxValues"]) == ({"id": 1}, {"id": 2})


def test_a_reader_gets_back_every_value_and_no_statistics_of_floats(location: TableLocation) -> None:
    made = put(location)
    path = Path(location.uri, made.path)
    assert path.stat().st_size == made.size
    read = pq.read_table(path)
    assert [repr(each) for each in read.to_pylist()] == [repr(each) for each in ROWS.to_pylist()]
    footer = pq.read_metadata(path).row_group(0)
    columns = {footer.column(at).path_in_schema: footer.column(at) for at in range(footer.num_columns)}
    assert columns["id"].statistics.has_min_max
    assert not any(
        columns[name].is_stats_set and columns[name].statistics.has_min_max for name in ("x", "many.list.element")
    )


def test_a_page_that_is_damaged_later_is_noticed(location: TableLocation) -> None:
    path = Path(location.uri, put(location, pa.table({"raw": [b"0123456789" * 20]})).path)
    content = path.read_bytes()
    at = content.index(b"0123456789") + 3
    path.write_bytes(content[:at] + b"X" + content[at + 1 :])
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(path, page_checksum_verification=True)


def test_a_name_with_a_dot_gives_no_statistics_to_floats_inside_of_another_column(location: TableLocation) -> None:
    numbers = pa.array([1, 2], pa.int64())
    inside = {"a": [{"b": 1.5}, {"b": float("nan")}], "c": [[0.5], [float("nan")]]}
    made = put(location, pa.table({"a.b": numbers, "c.list.element": numbers, "id": numbers, **inside}))
    footer = pq.read_metadata(Path(location.child(made.path))).row_group(0)
    columns = [footer.column(at) for at in range(footer.num_columns)]
    assert {each.path_in_schema for each in columns if each.statistics is not None} == {"id"}
    assert json.loads(made.stats)["maxValues"] == {"a.b": 2, "c.list.element": 2, "id": 2}


def test_a_file_of_several_groups_is_described_as_if_it_were_one(
    location: TableLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = put(location)
    monkeypatch.setattr(arrow_files, "_GROUP_ROWS", 1)
    writer = FileWriter(location, "22222222-1-aaaaaaaa/part.parquet", ROWS.schema)
    for at in range(len(ROWS)):
        writer.write(ROWS.slice(at, 1))
    made = writer.close()
    assert json.loads(made.stats) == json.loads(whole.stats)
    assert (made.rows, made.columns) == (whole.rows, whole.columns)
    assert pq.ParquetFile(location.child(made.path)).num_row_groups == len(ROWS)


def test_a_column_has_no_bounds_if_one_of_the_groups_has_none(
    location: TableLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_files, "_GROUP_ROWS", 1)
    writer = FileWriter(location, "22222222-1-aaaaaaaa/part.parquet", pa.schema({"day": pa.date32()}))
    for days in (1, 4_000_000, None):
        writer.write(pa.table({"day": pa.array([days], pa.int32()).view(pa.date32())}))
    assert json.loads(writer.close().stats) == {"numRecords": 3, "nullCount": {"day": 1}}
