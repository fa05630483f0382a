"""A version of a table has the same rows, whether read by its files or by Delta, for all kinds of tables."""

from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from backfill_assets.adapters.compute import version_rows
from backfill_assets.adapters.compute.table_rows import Scratch, table_rows
from backfill_assets.adapters.compute.version_rows import delta_rows_at, rows_at
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.progress.positions import KeyRange
from backfill_assets.core.progress.reads import KeyRead
from tests.support.lake import Lake
from tests.support.settings import FULL

pytestmark = pytest.mark.e2e

MANY = 2 * version_rows.SMALL_FILES
MAPPED = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def same(lake: Lake, version: int | None = None) -> tuple[bool, Counter[tuple[object, ...]]]:
    """Whether a version is read by its files, and its rows, which equal those that Delta reads."""
    table = TableLocation(uri=lake.path("base"))
    at = DeltaTable(table.uri).version() if version is None else version

    def read(spark: SparkSession) -> Counter[tuple[object, ...]]:
        found, wanted = rows_at(spark, table, at), delta_rows_at(spark, table, at)
        assert found.schema == wanted.schema
        rows = Counter(map(tuple, found.collect()))
        assert rows == Counter(map(tuple, wanted.collect()))
        return rows

    plain = version_rows.small_and_plain(table, version_rows.loaded_at(table, at)) is not None
    return plain, lake.project.workspace().runner.run(read)


def test_every_version_of_a_plain_table_is_read_by_its_files(lake: Lake) -> None:
    for number in range(3):
        lake.append("base", [{"id": number, "name": None if number else "ä b"}])
    DeltaTable(lake.path("base")).delete("id = 1")
    versions = {
        0: (True, Counter([(0, "ä b")])),
        1: (True, Counter([(0, "ä b"), (1, None)])),
        2: (True, Counter([(0, "ä b"), (1, None), (2, None)])),
        3: (True, Counter([(0, "ä b"), (2, None)])),
    }
    for at in versions if FULL else (1, 3):
        assert same(lake, at) == versions[at]
    DeltaTable(lake.path("base")).delete()
    assert same(lake) == (True, Counter())


def test_a_column_that_came_is_null_in_older_files_and_unknown_to_older_versions(lake: Lake) -> None:
    lake.append("base", [{"id": 1}])
    lake.append("base", [{"id": 2, "new": "x"}], schema_mode="merge")
    assert same(lake) == (True, Counter([(1, None), (2, "x")]))
    assert same(lake, 0) == (True, Counter([(1,)]))


@pytest.mark.parametrize(
    "made",
    [
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        pytest.param(f"TBLPROPERTIES ({MAPPED})", marks=pytest.mark.full),
        pytest.param("PARTITIONED BY (name)", marks=pytest.mark.full),
    ],
    ids=["deletion vectors", "mapped columns", "partitions"],
)
def test_what_files_alone_do_not_tell_is_left_to_delta(lake: Lake, made: str) -> None:
    lake.sql("base", f"CREATE TABLE {{t}} (id BIGINT, name STRING) USING delta {made}")
    lake.sql("base", "INSERT INTO {t} VALUES (1, 'a b'), (2, 'a:%'), (3, null)", "DELETE FROM {t} WHERE id = 2")
    assert same(lake) == (False, Counter([(1, "a b"), (3, None)]))


@pytest.mark.full
def test_a_table_of_many_files_is_left_to_delta(lake: Lake) -> None:
    for number in range(MANY):
        lake.append("base", [{"id": number}])
    assert same(lake) == (False, Counter((number,) for number in range(MANY)))
    assert same(lake, 3)[0]


def test_a_version_older_than_removed_files_are_kept_is_read_as_long_as_they_are_there(lake: Lake) -> None:
    for number in range(2):
        lake.append("base", [{"id": number, "part": "a"}], partition_by=["part"])
    DeltaTable(lake.path("base")).delete("id = 0")
    lake.age("base", since=0, days=60)
    assert same(lake, 0) == (False, Counter([(0, "a")]))


def test_few_keys_of_a_table_are_read_by_delta_which_opens_only_the_files_that_may_have_them(lake: Lake) -> None:
    for number in range(3):
        lake.append("base", [{"id": 10 * number + at, "name": f"n{at}"} for at in range(10)])
    location = TableLocation(uri=lake.path("base"))
    upstream = DeltaUpstream("base", location, key=lambda: ("id",))
    keys = (KeyRange(after=None, upto=("2",)), KeyRange(after=("17",), upto=("20",)))
    read = KeyRead(source="base", table_id="t", version=2, ranges={}, keys=keys, rows=5)
    place = Scratch(table=location, path="scratch")  # nothing counts the rows
    rows = table_rows(lake.spark, upstream, read, upstream.columns(), place).collect()
    assert sorted(row["id"] for row in rows) == [0, 1, 2, 18, 19, 20]
    assert {row["_change_type"] for row in rows} == {"insert"}
