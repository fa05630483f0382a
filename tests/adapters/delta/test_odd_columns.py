"""Columns whose texts are equal though their bytes differ, as the log says."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.delta.odd_columns import collated
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.errors import UpstreamRefusedError

TEXTS = {"type": "array", "elementType": "string", "containsNull": True}


def column(name: str, kind: Any = "string", **collations: str) -> dict[str, Any]:
    """A column, or a field of a struct, as Spark writes it into the log."""
    metadata = {"__COLLATIONS": collations} if collations else {}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def table(folder: Path, *columns: dict[str, Any]) -> DeltaTable:
    """A table with these columns, and no rows."""
    write_deltalake(str(folder), pa.table({"id": pa.array([], pa.int64())}))
    log = folder / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for each in actions:
        if "metaData" in each:
            each["metaData"]["schemaString"] = json.dumps({
                "type": "struct",
                "fields": [column("id", "long"), *columns],
            })
    log.write_text("\n".join(map(json.dumps, actions)))
    return DeltaTable(str(folder))


@pytest.mark.parametrize(
    ("found", "is_collated"),
    [
        (column("k", k="spark.UTF8_LCASE"), True),
        (column("k", k="icu.UNICODE_CI"), True),
        (column("k", k="spark.UTF8_BINARY"), False),
        (column("k"), False),
        (column("k", TEXTS, **{"k.element": "spark.UTF8_LCASE"}), True),
        (column("k", {"type": "struct", "fields": [column("a"), column("b", b="icu.de_AI")]}), True),
        (column("k", {"type": "struct", "fields": [column("a"), column("b", TEXTS)]}), False),
    ],
)
def test_texts_with_a_collation_are_found_wherever_they_are(
    tmp_path: Path, found: dict[str, Any], *, is_collated: bool
) -> None:
    assert collated(table(tmp_path, column("other"), found)) == (["k"] if is_collated else [])


def test_a_table_with_such_a_column_is_no_upstream(tmp_path: Path) -> None:
    table(tmp_path, column("k", k="spark.UTF8_LCASE"))
    upstream = DeltaUpstream(name="t", location=TableLocation(uri=str(tmp_path)))
    with pytest.raises(UpstreamRefusedError, match="a collation") as found:
        upstream.loaded()
    assert found.value.facts == {"reason": "COLLATED_COLUMN", "column": "k"}
