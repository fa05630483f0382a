"""A version's files as the log is replayed here, against those that delta-rs tells, for tables that delta-rs wrote."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.resources.log_replay import DataFile, LogGoneError, Version, replay
from backfill_assets.resources.warehouse import TableLocation


def rows(*numbers: int, part: str | None = "x") -> pa.Table:
    schema = pa.schema([("id", pa.int64()), ("part", pa.string())])
    return pa.Table.from_pylist([{"id": each, "part": part} for each in numbers], schema=schema)


def replayed(uri: str, version: int) -> Version:
    return replay(TableLocation(uri=uri).files(), version)


def assert_equal(uri: str, version: int) -> None:
    """The same paths, row counts, partition values and identity as delta-rs states them."""
    table = DeltaTable(uri, version=version)
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    found = replayed(uri, version)
    assert [each.path for each in found.files] == sorted(each.path for each in found.files)
    assert {unquote(each.path): each.stated_rows for each in found.files} == {
        unquote(each["path"]): each["num_records"] for each in actions
    }
    parts = {unquote(each.path): each.action["partitionValues"].get("part") for each in found.files}
    assert parts == {unquote(each["path"]): each.get("partition.part") for each in actions}
    assert found.metadata["id"] == str(table.metadata().id)
    assert json.loads(found.metadata["schemaString"]) == json.loads(table.schema().to_json())
    assert found.protocol["minReaderVersion"] == table.protocol().min_reader_version


def checkpoint(uri: str) -> None:
    DeltaTable(uri).create_checkpoint()


def append(uri: str) -> None:
    write_deltalake(uri, rows(1, 2, part="a b/c"), mode="append", partition_by=["part"])


STEPS: tuple[Callable[[str], object], ...] = (
    append,
    append,
    lambda uri: write_deltalake(uri, rows(3, part=None), mode="append", partition_by=["part"]),
    lambda uri: DeltaTable(uri).delete("id = 2"),
    checkpoint,
    lambda uri: write_deltalake(uri, rows(4, 5, part="100%"), mode="append", partition_by=["part"]),
    lambda uri: DeltaTable(uri).optimize.compact(),
    lambda uri: DeltaTable(uri).alter.set_table_properties({"delta.enableChangeDataFeed": "true"}),
    lambda uri: DeltaTable(uri).update(updates={"id": "id + 10"}, predicate="id = 1"),
    checkpoint,
    lambda uri: DeltaTable(uri).restore(3),
    append,
    lambda uri: write_deltalake(uri, rows(7), mode="overwrite", partition_by=["part"]),
)


def test_every_version_is_as_delta_rs_has_it_with_and_without_checkpoints(tmp_path: Path) -> None:
    uri = str(tmp_path)
    for step in STEPS:
        step(uri)
    newest = DeltaTable(uri).version()
    for version in range(newest + 1):
        assert_equal(uri, version)
    assert len(replayed(uri, newest).files) == 1
    before = {version: replayed(uri, version) for version in range(newest + 1)}
    for old in tmp_path.glob("_delta_log/*.checkpoint.parquet"):
        old.unlink()
    assert {version: paths(replayed(uri, version)) for version in before} == {
        version: paths(each) for version, each in before.items()
    }, "commits alone say the same"


def test_versions_below_the_oldest_checkpoint_are_gone_with_their_commits_and_later_ones_are_not(
    tmp_path: Path,
) -> None:
    uri = str(tmp_path)
    for _ in range(4):
        append(uri)
    checkpoint(uri)
    append(uri)
    expected = paths(replayed(uri, 4))
    for version in (0, 1, 2):
        (tmp_path / f"_delta_log/{version:020d}.json").unlink()
    assert paths(replayed(uri, 4)) == expected
    assert_equal(uri, 3)
    with pytest.raises(LogGoneError):
        replayed(uri, 2)


@pytest.mark.parametrize("first", ["add", "remove"])
def test_a_file_that_gets_another_deletion_vector_stays_whichever_action_comes_first(
    tmp_path: Path, first: str
) -> None:
    (tmp_path / "_delta_log").mkdir()
    plain = {"path": "f.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1, "stats": '{"numRecords": 9}'}
    vector = {"storageType": "u", "pathOrInlineDv": "a" * 20, "offset": 1, "sizeInBytes": 1, "cardinality": 4}
    again: list[dict[str, dict[str, Any]]] = [
        {"add": {**plain, "deletionVector": vector}},
        {"remove": {"path": "f.parquet"}},
    ]
    for version, actions in enumerate([[{"add": plain}], again if first == "add" else again[::-1]]):
        lines = "\n".join(json.dumps(each) for each in actions)
        (tmp_path / f"_delta_log/{version:020d}.json").write_text(lines)
    (file,) = replayed(str(tmp_path), 1).files
    assert (file.deleted, file.stated_rows) == (4, 5)


def test_addresses_for_a_log_elsewhere_are_absolute_and_encoded_as_uris() -> None:
    action = {"path": "part=a%2520b/f.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1}
    file = DataFile(action)
    assert file.absolute("/lake/my table")["path"] == "file:///lake/my%20table/part=a%2520b/f.parquet"
    assert file.absolute("s3://bucket/t")["path"] == "s3://bucket/t/part=a%2520b/f.parquet"
    shared = DataFile({**action, "path": "s3://other/f.parquet"})
    assert shared.absolute("/lake/t")["path"] == "s3://other/f.parquet"


def paths(version: Version) -> list[str]:
    return [each.path for each in version.files]
