"""A version's files as the log is replayed here, compared with those that delta-rs returns, for tables that delta-rs
wrote."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.delta.checkpoint_files import CheckpointFiles
from backfill_assets.adapters.delta.log_replay import DataFile, LogGapError, Version, is_plain, is_plain_path, replay
from backfill_assets.adapters.storage.warehouse import TableLocation


def rows(*numbers: int, part: str | None = "x") -> pa.Table:
    schema = pa.schema([("id", pa.int64()), ("part", pa.string())])
    return pa.Table.from_pylist([{"id": each, "part": part} for each in numbers], schema=schema)


def replayed(uri: str, version: int) -> Version:
    return replay(TableLocation(uri=uri), version)


def assert_equal(uri: str, version: int) -> None:
    """The same paths, row counts, partition values and identity as delta-rs returns."""
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
    with pytest.raises(LogGapError):
        replayed(uri, 2)


def in_parts(folder: Path, name: str) -> list[Path]:
    """The only checkpoint of a log, split into two files; each has one of the table's files."""
    (whole,) = folder.glob("_delta_log/*.checkpoint.parquet")
    found = pq.read_table(whole)
    adds = [at for at, each in enumerate(found["add"].to_pylist()) if each is not None]
    cut = adds[-1]
    made = [whole.with_name(name.format(version=whole.name[:20], part=part)) for part in (1, 2)]
    for path, piece in zip(made, (found.slice(0, cut), found.slice(cut)), strict=True):
        pq.write_table(piece, path)
    whole.unlink()
    return made


def with_checkpoint(folder: Path) -> tuple[str, list[str]]:
    """A table of two files whose log begins with a checkpoint; the paths of its files."""
    uri = str(folder)
    for _ in range(2):
        append(uri)
    expected = paths(replayed(uri, 1))
    checkpoint(uri)
    for version in (0, 1):
        (folder / f"_delta_log/{version:020d}.json").unlink()
    assert len(expected) == 2
    return uri, expected


MULTI_PART = "{version}.checkpoint.{part:010d}.0000000002.parquet"


def test_all_parts_of_a_checkpoint_are_read_and_an_incomplete_one_is_ignored(tmp_path: Path) -> None:
    uri, expected = with_checkpoint(tmp_path)
    (whole,) = tmp_path.glob("_delta_log/*.checkpoint.parquet")
    held = whole.read_bytes()
    first, second = in_parts(tmp_path, MULTI_PART)
    assert paths(replayed(uri, 1)) == expected
    second.unlink()
    with pytest.raises(LogGapError):
        replayed(uri, 1)
    whole.write_bytes(held)
    assert paths(replayed(uri, 1)) == expected, "beside a part of another one"
    more = {"path": "more.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1}
    (tmp_path / f"_delta_log/{2:020d}.json").write_text(json.dumps({"add": more}))
    first.rename(first.with_name(first.name.replace("1.checkpoint", "2.checkpoint")))
    found = paths(replayed(uri, 2))
    assert found == sorted([*expected, "more.parquet"]), "a checkpoint that is being written is not complete"


def test_an_empty_file_of_a_writer_that_died_is_no_checkpoint(tmp_path: Path) -> None:
    uri, expected = with_checkpoint(tmp_path)
    more = {"path": "more.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1}
    (tmp_path / f"_delta_log/{2:020d}.json").write_text(json.dumps({"add": more}))
    (tmp_path / f"_delta_log/{2:020d}.checkpoint.parquet").touch()
    assert paths(replayed(uri, 2)) == sorted([*expected, "more.parquet"])


def test_parts_of_a_checkpoint_need_not_say_the_same_of_files() -> None:
    """A checkpoint may name sidecars of an older one again."""
    held = CheckpointFiles.of([pa.table({"path": ["b"]}), pa.table({"path": ["a"], "baseRowId": [7]})])
    found = {each["path"]: each.get("baseRowId") for each in held.actions(held.order) if each is not None}
    assert found == {"a": 7, "b": None}


def test_files_that_a_checkpoint_names_in_its_sidecars_are_a_part_of_it(tmp_path: Path) -> None:
    uri, expected = with_checkpoint(tmp_path)
    first, second = in_parts(tmp_path, MULTI_PART)
    sidecars = tmp_path / "_delta_log" / "_sidecars"
    sidecars.mkdir()
    second.rename(sidecars / "one.parquet")
    rest = [{kind: each for kind, each in row.items() if each is not None} for row in pq.read_table(first).to_pylist()]
    adds = [row for row in rest if "add" in row]
    pq.write_table(pa.Table.from_pylist(adds, schema=pq.read_schema(first)), sidecars / "tw o.parquet")
    first.unlink()
    described = [{kind: row[kind]} for row in rest for kind in ("protocol", "metaData") if kind in row]
    named = [{"sidecar": {"path": path}} for path in ("one.parquet", f"{uri}/_delta_log/_sidecars/tw%20o.parquet")]
    manifest = tmp_path / "_delta_log" / f"{1:020d}.checkpoint.80A083E8-7026-4E79-81BE-64BD76C43A11.json"
    manifest.write_text("\n \n".join(json.dumps(each, default=dict) for each in [*described, *named]))
    assert paths(replayed(uri, 1)) == expected


def test_a_removed_deletion_vector_is_identified_by_its_offset_in_a_shared_file(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    file = {"path": "f.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1, "stats": '{"numRecords": 9}'}
    old, new = (
        {**file, "deletionVector": {"storageType": "u", "pathOrInlineDv": "a" * 20, "offset": at, "cardinality": at}}
        for at in (1, 5)
    )
    for version, actions in enumerate([[{"add": old}], [{"add": new}, {"remove": old}]]):
        lines = "\n".join(json.dumps(each) for each in actions)
        (tmp_path / f"_delta_log/{version:020d}.json").write_text(lines)
    assert [each.deleted for each in replayed(str(tmp_path), 1).files] == [5]


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


def test_a_deletion_vector_is_found_by_its_name_as_the_protocol_of_delta_has_it() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "cardinality": 6}
    action = {"path": "f.parquet", "size": 1, "modificationTime": 1, "deletionVector": vector}
    found = DataFile(action).absolute("/lake")["deletionVector"]
    name = "file:///lake/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert (found["storageType"], found["pathOrInlineDv"], found["offset"]) == ("p", name, 4)


@pytest.mark.parametrize(
    ("version", "features", "partitions", "plain"),
    [
        (1, None, [], True),
        (2, None, [], False),
        (3, ["deletionVectors", "timestampNtz"], [], True),
        (3, ["columnMapping"], [], False),
        (3, ["aFeatureOfTomorrow", "timestampNtz"], [], False),
        (1, None, ["day"], False),
        (None, None, [], False),
    ],
)
def test_files_are_plain_only_if_every_feature_of_the_protocol_is_known(
    version: int | None, features: list[str] | None, partitions: list[str], plain: bool
) -> None:
    assert is_plain(version, features, partitions) == plain


def test_addresses_for_a_log_elsewhere_are_absolute_and_encoded_as_uris() -> None:
    action = {"path": "part=a%2520b/f.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1}
    file = DataFile(action)
    assert file.absolute("/lake/my table")["path"] == "file:///lake/my%20table/part=a%2520b/f.parquet"
    assert file.absolute("s3://bucket/t")["path"] == "s3://bucket/t/part=a%2520b/f.parquet"
    assert file.absolute("s3://bucket/t")["partitionValues"] == {}
    parted = DataFile({**action, "partitionValues": {"day": "1", "part": None}})
    assert parted.absolute("s3://bucket/t")["partitionValues"] == {"day": "1", "part": None}
    shared = DataFile({**action, "path": "s3://other/f.parquet"})
    assert shared.absolute("/lake/t")["path"] == "s3://other/f.parquet"


def paths(version: Version) -> list[str]:
    return [each.path for each in version.files]


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("part-00000-9f.c000.snappy.parquet", True),
        ("_change_data/cdc-00000-9f.c000.snappy.parquet", True),
        ("day=2024-01-01/part-0.parquet", True),
        ("p[1].parquet", False),
        ("p*.parquet", False),
        ("p?.parquet", False),
        ("{a,b}.parquet", False),
        ("a%20b.parquet", False),
        ("_p.parquet", False),
        (".p.parquet", False),
        ("day=1/_p.parquet", False),
        ("p._COPYING_", False),
        ("file:///elsewhere/p.parquet", False),
    ],
)
def test_spark_takes_only_plain_paths_for_just_one_file(path: str, plain: bool) -> None:
    assert is_plain_path(path) is plain
