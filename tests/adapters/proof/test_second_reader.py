"""What is compared with Spark's rows: all values of all types, and nothing where there is nothing to compare."""

from typing import Any, cast

import pyarrow as pa
import pytest

from backfill_assets.adapters.proof.second_reader import Compared, _lacking, _multiset, _shaped, compare_readers
from backfill_assets.adapters.proof.since import NOTHING, duplicate_keys_since, records_since, tables_since


class NoSpark:
    def run(self, _action: object) -> None:
        raise AssertionError("Spark was asked")


NONE = cast(Any, NoSpark())
UNCHANGED = cast(Any, type("Written", (), {"nothing": True, "came": ()})())
NO_READS = cast(Any, type("Read", (), {"since": type("Since", (), {"reads": ()}), "reads": ()})())


def test_where_nothing_was_written_or_read_spark_is_not_asked() -> None:
    assert compare_readers(NONE, [], None) == Compared(rows=0, violations=[])
    assert tables_since(NONE, cast(Any, None), NO_READS, UNCHANGED) == NOTHING
    assert records_since(NONE, cast(Any, None), NO_READS, UNCHANGED, most=0) == NOTHING
    assert duplicate_keys_since(NONE, UNCHANGED, ("id",)) == []


def test_a_view_lacks_nothing_of_tables_of_which_no_row_was_read() -> None:
    view = cast(Any, type("View", (), {"upstreams": ()})())
    assert _lacking(cast(Any, None), view, {}) == []


def test_rows_are_given_the_columns_and_types_that_spark_has_or_are_not_compared() -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.int32())})
    shaped = _shaped(rows, pa.schema({"more": pa.string(), "id": pa.int64()}))
    assert shaped is not None
    assert shaped.to_pylist() == [{"more": None, "id": 1}, {"more": None, "id": 2}]
    assert shaped.schema.field("id").type == pa.int64()
    assert _shaped(pa.table({"id": [[1]]}), pa.schema({"id": pa.int64()})) is None


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.map_(pa.string(), pa.date32()), [("a", 3_700_000)], [("a", 3_700_001)]),
        (pa.map_(pa.timestamp("us"), pa.float64()), [(9 * 10**17, 0.0)], [(9 * 10**17, -0.0)]),
        (pa.list_(pa.struct({"a": pa.date32()})), [{"a": 3_700_000}], [{"a": None}]),
    ],
)
def test_values_that_python_has_not_are_told_apart_wherever_they_are(kind: pa.DataType, one: Any, other: Any) -> None:
    plain = {"date32[day]": pa.int32(), "timestamp[us]": pa.int64()}

    def stored(part: pa.DataType) -> pa.DataType:
        if pa.types.is_map(part):
            return pa.map_(stored(part.key_type), stored(part.item_type))
        if pa.types.is_list(part):
            return pa.list_(stored(part.value_type))
        if pa.types.is_struct(part):
            return pa.struct([each.with_type(stored(each.type)) for each in part])
        return plain.get(str(part), part)

    def rows(value: Any) -> pa.Table:
        return pa.table({"v": pa.array([value], stored(kind)).cast(kind)})

    assert _multiset(rows(one)) == _multiset(rows(one))
    assert _multiset(rows(one)) != _multiset(rows(other))
