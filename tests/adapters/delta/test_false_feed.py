"""What delta-rs leaves out of the change data feed of an UPDATE, as docs/architecture.md tells it."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake


def test_a_row_that_becomes_equal_to_another_one_is_not_in_the_feed(tmp_path: Path) -> None:
    """Once it is, the docs need not warn of it."""
    rows = pa.table({"id": [1, 1, 2], "x": [5, 6, 7]})
    write_deltalake(str(tmp_path), rows, configuration={"delta.enableChangeDataFeed": "true"})
    DeltaTable(str(tmp_path)).update(updates={"x": "6"}, predicate="id = 1")
    table = DeltaTable(str(tmp_path))
    changes = pa.table(table.load_cdf(starting_version=1, ending_version=1)).to_pylist()
    told = Counter((each["_change_type"], each["id"], each["x"]) for each in changes)
    held = Counter((each["id"], each["x"]) for each in table.to_pyarrow_table().to_pylist())
    assert held == {(1, 6): 2, (2, 7): 1}
    assert told["update_preimage", 1, 5] == 1
    assert told["update_postimage", 1, 6] == 0
