"""Whether two keys are equal for delta-rs: exactly if they are for Spark, whatever the bits of a float."""

import math
import struct
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.delta.same_key import same_key

NANS = [math.nan, *(struct.unpack("d", struct.pack("Q", bits))[0] for bits in (0xFFF8 << 48, 0x7FF8 << 48 | 1 << 40))]
EQUAL = [NANS, [0.0, -0.0], [None], [1.5]]
PAIRS = [(one, other, some is others) for some, others in product(EQUAL, EQUAL) for one in some for other in others]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize(("there", "comes", "same"), PAIRS, ids=str)
def test_a_float_that_is_equal_in_sql_is_the_same_key(
    tmp_path: Path, there: float | None, comes: float | None, kind: pa.DataType, *, same: bool
) -> None:
    schema = pa.schema({"id": pa.int64(), 'the "key"': kind})
    write_deltalake(str(tmp_path), pa.Table.from_pylist([{"id": 1, 'the "key"': there}], schema=schema))
    table = DeltaTable(str(tmp_path))
    condition = same_key(table.schema(), ["id", 'the "key"'])
    found = pa.Table.from_pylist([{"id": 1, 'the "key"': comes}], schema=schema)
    done = table.merge(found, condition, source_alias="s", target_alias="t").when_matched_delete().execute()
    assert done["num_target_rows_deleted"] == same
