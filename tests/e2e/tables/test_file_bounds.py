"""The statistics in the log of a view are exact, for values of every type; those of other writers are not trusted."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import QueryBuilder

from backfill_assets.app.lifecycle import maintain
from backfill_assets.app.refresh import refresh
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.epoch.limits import Limits
from tests.support.bounds import checkpointed, longest_bound, stated, untrue
from tests.support.lake import Lake
from tests.support.large import large
from tests.support.settings import FULL

pytestmark = pytest.mark.e2e

VALUES: dict[str, tuple[str, Sequence[str]]] = {
    "whole": ("BIGINT", ["9007199254740993L", "-9223372036854775808L", "9223372036854775807L"]),
    "small": ("TINYINT", ["-128Y", "127Y"]),
    "unsigned": ("DECIMAL(20,0)", ["1580661436132757506BD", "1580661436132757507BD", "18446744073709551615BD"]),
    "money": ("DECIMAL(18,2)", ["1234567890123456.78BD", "1234567890123456.79BD", "-0.01BD"]),
    "wei": ("DECIMAL(38,18)", ["1.234567890123456789BD", "0.100000000000000001BD", "-99999999999999999999.9BD"]),
    "double": ("DOUBLE", ["double('NaN')", "-0.0D", "double('-Infinity')", "4.9E-324D"]),
    "single": ("FLOAT", ["float('NaN')", "1.1F", "-0.0F", "float('Infinity')"]),
    "at": ("TIMESTAMP", [
        "timestamp'2020-01-01 00:00:00.999999Z'", "timestamp'1500-06-01 00:00:00.000001+05:30'",
        "timestamp'9999-12-31 23:59:59.999999Z'", "timestamp'+290000-12-21 00:00:00.5Z'",
    ]),
    "local": ("TIMESTAMP_NTZ", ["timestamp_ntz'2020-01-01 00:00:00.000001'", "timestamp_ntz'0001-01-01 00:00:00'"]),
    "day": ("DATE", ["date'0001-01-01'", "date'9999-12-31'", "date'1500-02-28'"]),
    "word": ("STRING", ["''", "repeat('b', 100)", "'a\\u0000'", "repeat('\\U0001F600', 40)", "repeat('\\uD7FF', 70)"]),
    "body": ("STRING", ["repeat('a', 1000000)", "repeat('z', 1000000)"]),
    "raw": ("BINARY", ["X'FFFE'", "X''", "cast(repeat('z', 9000) AS BINARY)"]),
    "flag": ("BOOLEAN", ["true", "false"]),
    "nested": ("STRUCT<x: BIGINT, d: DECIMAL(38,18)>", ["named_struct('x', 1L, 'd', 1.234567890123456789BD)"]),
    "many": ("ARRAY<DOUBLE>", ["array(double('NaN'))", "array()"]),
}  # fmt: skip
FLAT = [name for name, (kind, _) in VALUES.items() if "<" not in kind]
LITERAL = {
    "whole": "Int64",
    "unsigned": "Decimal128(20, 0)",
    "money": "Decimal128(18, 2)",
    "wei": "Decimal128(38, 18)",
}
ROWS = 12
SCANNED = VALUES if FULL else ("unsigned", "wei", "double", "at", "word")
"""The columns by whose values Spark looks for rows, one scan for each: in the gate those whose bounds were once wrong."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def literal(column: str, row: int) -> str:
    """The value of a column in a row, in SQL; null in every seventh row."""
    kind, values = VALUES[column]
    return f"CAST({'NULL' if row % 7 == 6 else values[row % len(values)]} AS {kind})"


def select(rows: Sequence[int]) -> str:
    return " UNION ALL ".join(
        f"SELECT {row}L AS id, 'new' AS tag, " + ", ".join(f"{literal(name, row)} AS {name}" for name in VALUES)
        for row in rows
    )


@pytest.mark.full
def test_bounds_are_exact_and_filters_find_every_row_whatever_was_committed_how(lake: Lake) -> None:
    for first in range(0, ROWS, 4):
        lake.write("base", lake.spark.sql(select(range(first, first + 4))).coalesce(1))
    view = lake.view("all", "SELECT * FROM base", lake.table("base"))
    place = lake.location(view.name)
    lake.project.refresh("all", Limits(chunk_rows=4))
    assert len(stated(place)) > 2
    assert untrue(place) == []

    lake.sql("base", "UPDATE {t} SET tag = 'delta-rs' WHERE id % 4 = 1", "DELETE FROM {t} WHERE id = 4")
    assert lake.project.refresh("all").report.record.engine == "arrow"
    assert untrue(place) == []

    lake.sql("base", "UPDATE {t} SET tag = 'spark' WHERE id % 4 = 2", "DELETE FROM {t} WHERE id = 8")
    assert refresh(large(lake), "all", Limits(), run_id="spark").report.record.engine == "spark"
    assert_true(lake, place)

    maintain(lake.project.workspace(), "all")
    table = deltalake.DeltaTable(place)
    table.create_checkpoint()
    assert len(table.file_uris()) == 1
    assert untrue(place, checkpointed(place)) == untrue(place) == []
    for check in CHECKS:
        assert lake.project.check("all", check).passed


def assert_true(lake: Lake, place: str) -> None:
    """All statistics are right, and every value finds its row, with Spark and with both readers of delta-rs."""
    assert untrue(place) == []
    assert longest_bound(place) <= 64
    bounded = {name for each in stated(place).values() for name in each.get("maxValues", {})}
    assert {"id", "whole", "small", "day", "tag", "word", "body"} <= bounded
    table = deltalake.DeltaTable(place)
    there = {row["id"] for row in table.to_pyarrow_table(columns=["id"]).to_pylist()}
    wanted = {(name, row) for row in there for name in VALUES if row % 7 != 6}
    by_scan = {each for each in wanted if "-0.0" not in literal(*each) and each[0] in SCANNED}
    # Spark treats zeros as equal, but the dictionaries in Parquet files do not, whoever wrote them.
    assert by_scan - set(by_spark(lake, place)) == set() != by_scan
    assert {(name, row) for name, row in wanted if name in FLAT and "NaN" not in literal(name, row)} <= set(
        by_arrow(table)
    )
    assert {each for each in wanted if each[0] in LITERAL} <= set(by_datafusion(table))


def by_spark(lake: Lake, place: str) -> Iterator[tuple[str, int]]:
    """The values that find their rows: each filter is a scan of its own that skips files."""
    scans = {
        f"SELECT '{name}' AS name, id FROM delta.`{place}` WHERE {name} = {literal(name, row)}"
        for name in SCANNED
        for row in range(ROWS)
    }
    for found in lake.spark.sql(" UNION ALL ".join(sorted(scans))).collect():
        yield found.name, found.id


def by_arrow(table: deltalake.DeltaTable) -> Iterator[tuple[str, int]]:
    rows = table.to_pyarrow_table(columns=["id", *FLAT])
    dataset = table.to_pyarrow_dataset()
    for name in FLAT:
        for value in rows[name]:
            found = dataset.to_table(columns=["id"], filter=ds.field(name) == value)["id"].to_pylist()
            yield from ((name, row) for row in found)


def by_datafusion(table: deltalake.DeltaTable) -> Iterator[tuple[str, int]]:
    ask = QueryBuilder().register("t", table).execute
    for name, kind in LITERAL.items():
        for value in VALUES[name][1]:
            text = value.rstrip("BLDY")
            found = pa.table(ask(f"SELECT id FROM t WHERE {name} = arrow_cast('{text}', '{kind}')"))
            yield from ((name, row) for row in found["id"].to_pylist())
