"""The changes of each version of a Delta table and the files that contain them, on real logs of delta-rs, without
Spark."""

import json
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from backfill_assets.adapters.delta.column_metadata import FIXED_LENGTH
from backfill_assets.adapters.delta.log_replay import replay
from backfill_assets.adapters.delta.logged_changes import changed_rows
from backfill_assets.adapters.delta.maintenance import put_commit
from backfill_assets.adapters.delta.upstream import APPEND_ONLY, FEED, DeltaUpstream
from backfill_assets.adapters.storage.warehouse import LoadedTable, TableLocation
from backfill_assets.core.progress.reads import ChangesRead
from backfill_assets.errors import UpstreamChangedError, UpstreamRefusedError, VersionsLostError
from tests.support.statements import updated


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table with a change data feed and rows 0 to 3, at version 0."""
    return made(tmp_path, FEED)


def made(folder: Path, setting: str) -> str:
    append(str(folder / "table"), range(4), configuration={setting: "true"})
    return str(folder / "table")


def append(uri: str, ids: Sequence[int], **given: Any) -> None:
    write_deltalake(uri, pa.table({"id": pa.array(ids, pa.int64())}), mode="append", **given)


def upstream(uri: str) -> DeltaUpstream:
    return DeltaUpstream(name="base", location=TableLocation(uri=uri))


def read(first: int, last: int) -> ChangesRead:
    return ChangesRead(source="base", table_id="t", first=first, last=last, rows=1)


def paths(uri: str, version: int, kind: str) -> tuple[str, ...]:
    """The files in a commit's actions of one kind."""
    text = Path(uri, f"_delta_log/{version:020d}.json").read_text()
    actions = [json.loads(line) for line in text.splitlines()]
    return tuple(each[kind]["path"] for each in actions if kind in each)


def describe(
    uri: str, *, fields: Sequence[dict[str, Any]] | None = None, configuration: Mapping[str, str] | None = None
) -> None:
    """Commit other columns, or another configuration, like any writer."""
    location = TableLocation(uri=uri)
    number = DeltaTable(uri).version()
    found = dict(replay(location, number).metadata)
    if fields is not None:
        found["schemaString"] = json.dumps({"type": "struct", "fields": list(fields)})
    found["configuration"] = {**found["configuration"], **(configuration or {})}
    put_commit(location, number + 1, "ALTER", [{"metaData": {k: v for k, v in found.items() if v is not None}}])


def column(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def test_of_a_version_with_change_files_these_are_read_and_of_others_what_they_added(uri: str) -> None:
    append(uri, [4])
    updated(DeltaTable(uri), {"id": "id + 10"}, "id = 1")
    append(uri, [5])
    assert paths(uri, 2, "cdc")
    assert paths(uri, 2, "add")
    found = upstream(uri).change_files(read(1, 3))
    assert found is not None
    assert tuple(found.feed) == paths(uri, 2, "cdc")
    assert found.feed == {path: Path(uri, path).stat().st_size for path in found.feed}
    assert [each.path for each in found.added] == [*paths(uri, 1, "add"), *paths(uri, 3, "add")]


def test_files_of_partitions_or_with_other_names_of_columns_are_left_to_deltas_own_reader(uri: str) -> None:
    map_names(uri, mapped("id", "c1"))
    added = {"path": "a.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    put_commit(TableLocation(uri=uri), 2, "WRITE", [{"add": added}])
    assert upstream(uri).change_files(read(2, 2)) is None
    parted = f"{uri}-parted"
    write_deltalake(parted, pa.table({"id": [1], "p": [2]}), partition_by=["p"], configuration={FEED: "true"})
    assert upstream(parted).change_files(read(0, 0)) is None


@pytest.mark.parametrize(("name", "plain"), [("a-1.parquet", True), ("a%20b.parquet", False), ("_a.parquet", False)])
def test_files_with_names_that_spark_takes_for_something_else_are_left_to_deltas_own_reader(
    uri: str, name: str, plain: bool
) -> None:
    added = {"path": name, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    put_commit(TableLocation(uri=uri), 1, "WRITE", [{"add": added}])
    assert (upstream(uri).change_files(read(1, 1)) is not None) == plain


def test_files_of_versions_that_came_with_more_columns_are_read_with_these(uri: str) -> None:
    """Delta's own reader of the feed refuses them once the columns are gone again."""
    append(uri, [4])
    DeltaTable(uri).alter.add_columns([Field("more", PrimitiveType("string"))])
    append(uri, [5], schema_mode="merge")
    table = upstream(uri)
    for last, more in ((1, False), (3, True)):
        files = table.change_files(read(1, last))
        assert files is not None
        assert (len(files.added), '"more"' in files.schema) == (1 + more, more)


def test_every_file_that_holds_changes_is_missed_when_it_is_gone(uri: str) -> None:
    updated(DeltaTable(uri), {"id": "id + 10"}, "id = 1")
    DeltaTable(uri).delete()
    needed = [(1, paths(uri, 1, "cdc")), (2, paths(uri, 2, "cdc") or paths(uri, 2, "remove"))]
    for version, (path, *_) in needed:
        upstream(uri).check_readable(read(version, version))
        Path(uri, path).unlink()
        with pytest.raises(
            VersionsLostError, match=f"version {version} can no longer be read: its file {path} is missing"
        ):
            upstream(uri).check_readable(read(version, version))


@pytest.mark.parametrize("scheme", ["file:", "file://", "s3://", ""])
def test_files_of_another_table_are_not_looked_for_in_this_one(uri: str, scheme: str) -> None:
    """A shallow clone refers to the files of the table from which it was made."""
    (path,) = paths(uri, 0, "add")
    entry = Path(uri, f"_delta_log/{0:020d}.json")
    entry.write_text(entry.read_text().replace(f'"{path}"', f'"{scheme}/elsewhere/{path}"'))
    assert [each.path for each in upstream(uri).version(0).files] == [f"{scheme}/elsewhere/{path}"]
    upstream(uri).check_whole(0)


def test_files_that_were_removed_whole_are_missed_when_they_are_gone(uri: str) -> None:
    number = DeltaTable(uri).version()
    (path,) = paths(uri, number, "add")
    gone = {"path": path, "deletionTimestamp": 1, "dataChange": True}
    put_commit(TableLocation(uri=uri), number + 1, "DELETE", [{"remove": gone}])
    upstream(uri).check_readable(read(1, 1))
    Path(uri, path).unlink()
    with pytest.raises(VersionsLostError, match="version 1 can no longer be read"):
        upstream(uri).check_readable(read(1, 1))


def test_what_versions_of_an_append_only_table_added_are_all_their_new_rows_and_nothing_that_was_only_moved(
    tmp_path: Path,
) -> None:
    uri = made(tmp_path, APPEND_ONLY)
    for each in (4, 5):
        append(uri, [each])
    DeltaTable(uri).optimize.compact()
    append(uri, [6])
    table = upstream(uri)
    assert [(each.rows, each.deletes) for each in table.commits(0, 4)] == [
        (1, False),
        (1, False),
        (0, False),
        (1, False),
    ]
    assert [each.path for each in table.added(read(1, 4))] == [
        path for version in (1, 2, 4) for path in paths(uri, version, "add")
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([column("id", "string")], "changed column 'id': expected type BIGINT, found STRING"),
        ([column("other", "long")], "changed column 'id': expected type BIGINT, found no such column"),
    ],
)
def test_a_version_that_changes_a_column_is_refused_and_one_that_adds_one_is_not(
    uri: str, fields: list[dict[str, Any]], said: str
) -> None:
    describe(uri, fields=[column("id", "long"), column("more", "string")])
    assert [each.version for each in upstream(uri).commits(0, 1)] == [1]
    describe(uri, fields=fields)
    with pytest.raises(UpstreamChangedError, match=f"version 2 of table 'base' {said}"):
        upstream(uri).commits(1, 2)


def test_a_version_that_changes_a_column_that_is_not_needed_begins_another_read(uri: str) -> None:
    describe(uri, fields=[column("id", "long"), column("more", "string")])
    describe(uri, fields=[column("id", "long"), column("more", "long")])
    describe(uri, fields=[column("id", "long")])
    described = DeltaUpstream(name="base", location=TableLocation(uri=uri), needed=lambda: {"id"}).commits(0, 3)
    assert [each.reshapes for each in described] == [False, True, True]


def test_a_version_that_adds_a_field_begins_another_read(uri: str) -> None:
    kinds: list[Any] = [
        {"type": "struct", "fields": [column(name, "long") for name in names]} for names in ("x", "yx", "yxz")
    ]
    for kind in kinds:
        describe(uri, fields=[column("id", "long"), column("p", kind)])
    assert [each.reshapes for each in upstream(uri).commits(0, 3)] == [False, True, True]


def mapped(name: str, stored: str, kind: Any = "long") -> dict[str, Any]:
    """A column of a table with column mapping, and its name in files."""
    metadata = {"delta.columnMapping.physicalName": stored, "delta.columnMapping.id": int(stored[1:])}
    return {**column(name, kind), "metadata": metadata}


def map_names(uri: str, *fields: dict[str, Any]) -> None:
    """Commit columns, all of which are mapped."""
    location = TableLocation(uri=uri)
    number = DeltaTable(uri).version()
    found = {name: value for name, value in replay(location, number).metadata.items() if value is not None}
    found["configuration"] = {**found["configuration"], "delta.columnMapping.mode": "name"}
    found["schemaString"] = json.dumps({"type": "struct", "fields": list(fields)})
    put_commit(location, number + 1, "ALTER", [{"protocol": MAPPING}, {"metaData": found}])


MAPPING = {"minReaderVersion": 2, "minWriterVersion": 5}
POINT = {"type": "struct", "fields": [mapped("x", "c4")]}
OTHER_POINT = {"type": "struct", "fields": [mapped("x", "c5")]}
MORE_POINT = {"type": "struct", "fields": [mapped("y", "c9"), mapped("x", "c4")]}
OTHER_AND_MORE = {"type": "struct", "fields": [mapped("y", "c4"), mapped("x", "c9")]}


@pytest.mark.parametrize(
    ("fields", "other"),
    [
        ([mapped("id", "c1"), mapped("a", "c3"), mapped("b", "c2"), mapped("p", "c6", POINT)], "a"),
        ([mapped("id", "c1"), mapped("a", "c2"), mapped("b", "c7"), mapped("p", "c6", POINT)], "b"),
        ([mapped("id", "c1"), mapped("a", "c2"), mapped("b", "c3"), mapped("p", "c6", OTHER_POINT)], "p"),
        ([mapped("id", "c1"), mapped("a", "c2"), mapped("b", "c3"), mapped("p", "c6", OTHER_AND_MORE)], "p"),
        ([mapped("id", "c1"), mapped("a", "c2"), mapped("b", "c3"), mapped("p", "c6", MORE_POINT)], None),
        ([mapped("p", "c6", POINT), mapped("b", "c3"), mapped("id", "c1"), mapped("a", "c2"), mapped("z", "c8")], None),
    ],
    ids=[
        "two swapped names",
        "dropped and added again",
        "a field of a struct",
        "a new field of a struct in the place of another",
        "a new field of a struct",
        "another order and a new one",
    ],
)
def test_another_column_under_the_same_name_is_refused_as_long_as_files_are_kept(
    uri: str, fields: list[dict[str, Any]], other: str | None
) -> None:
    map_names(uri, mapped("id", "c1"), mapped("a", "c2"), mapped("b", "c3"), mapped("p", "c6", POINT))
    map_names(uri, *fields)
    if other is None:
        assert [each.version for each in upstream(uri).commits(1, 2)] == [2]
        return
    with pytest.raises(
        UpstreamChangedError, match=f"version 2 of table 'base' has another column under the name '{other}'"
    ):
        upstream(uri).commits(1, 2)


def test_another_column_under_the_same_name_is_followed_where_every_row_was_replaced_too(uri: str) -> None:
    location = TableLocation(uri=uri)
    map_names(uri, mapped("id", "c1"))
    (path,) = paths(uri, 0, "add")
    described = {**replay(location, 1).metadata}
    described["schemaString"] = json.dumps({"type": "struct", "fields": [mapped("id", "c2")]})
    gone = {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}}
    described = {name: value for name, value in described.items() if value is not None}
    put_commit(location, 2, "CREATE OR REPLACE TABLE", [{"metaData": described}, gone])
    assert [(each.version, each.deletes) for each in upstream(uri).commits(1, 2)] == [(2, True)]


def test_a_file_of_which_rows_are_hidden_in_the_same_commit_is_kept(uri: str) -> None:
    map_names(uri, mapped("id", "c1"))
    (path,) = paths(uri, 0, "add")
    described = {name: value for name, value in replay(TableLocation(uri=uri), 1).metadata.items() if value is not None}
    described["schemaString"] = json.dumps({"type": "struct", "fields": [mapped("id", "c2")]})
    gone = {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}}
    again = {"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}}
    put_commit(TableLocation(uri=uri), 2, "MERGE", [{"metaData": described}, gone, again])
    with pytest.raises(UpstreamChangedError, match="has another column under the name 'id'"):
        upstream(uri).commits(1, 2)


def test_names_that_begin_to_be_mapped_are_the_same_columns(uri: str) -> None:
    as_it_was = {"delta.columnMapping.physicalName": "id", "delta.columnMapping.id": 1}
    map_names(uri, {**column("id", "long"), "metadata": as_it_was})
    assert [each.version for each in upstream(uri).commits(0, 1)] == [1]


def test_text_that_has_a_fixed_length_no_more_is_compared_otherwise_and_refused(uri: str) -> None:
    def text(length: str) -> dict[str, Any]:
        return {**column("id", "string"), "metadata": {FIXED_LENGTH: length} if length else {}}

    append(uri, [4])
    for length in ("varchar(5)", "varchar(9)", ""):
        describe(uri, fields=[text(length)])
    describe(uri, fields=[text("char(5)")])
    assert [each.version for each in upstream(uri).commits(2, 4)] == [3, 4]
    with pytest.raises(
        UpstreamChangedError, match=r"version 5 .*changed column 'id': expected type STRING, found char\(5\)"
    ):
        upstream(uri).commits(4, 5)


def test_a_version_that_ends_the_feed_is_refused_unless_rows_are_only_ever_added(uri: str) -> None:
    describe(uri, configuration={FEED: "false"})
    describe(uri, configuration={FEED: "true"})
    assert upstream(uri).now().version == 2
    with pytest.raises(UpstreamRefusedError, match="no change data feed at version 1"):
        upstream(uri).commits(0, 2)


def test_whether_a_version_has_a_feed_depends_on_the_properties_of_that_version(uri: str) -> None:
    append(uri, [4])
    describe(uri, configuration={FEED: "false", APPEND_ONLY: "true"})
    append(uri, [5])
    for table, after in ((upstream(uri), 0), (upstream(uri), 1), (upstream(uri), 2)):
        assert [each.feed for each in table.commits(after, 3)] == [True, False, False][after:]


def vector(rows: int) -> dict[str, Any]:
    """A file of nine rows, this many of which are hidden, as in an action."""
    hidden = {"storageType": "u", "pathOrInlineDv": "a" * 20, "offset": rows, "sizeInBytes": 1, "cardinality": rows}
    file = {"path": "f.parquet", "size": 1, "dataChange": True, "stats": json.dumps({"numRecords": 9})}
    return {**file, "deletionVector": hidden} if rows else file


@pytest.mark.parametrize(("before", "after", "changed"), [(0, 3, 3), (3, 5, 2), (5, 0, 5), (3, 3, 1)])
def test_a_version_that_only_hides_rows_of_a_file_has_changed_some(before: int, after: int, changed: int) -> None:
    assert changed_rows([{"add": vector(after)}, {"remove": vector(before)}]) == changed


def test_rows_of_a_file_are_those_that_a_reader_sees_though_the_log_does_not_state_them(uri: str) -> None:
    location, (path,) = TableLocation(uri=uri), paths(uri, 0, "add")
    size = Path(uri, path).stat().st_size
    described = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": False}
    put_commit(location, 1, "COMPUTE STATS", [{"add": described}])
    put_commit(location, 2, "DELETE", [{"add": {**described, "deletionVector": vector(1)["deletionVector"]}}])
    table = upstream(uri)
    assert (list(table.rows(1)), list(table.rows(2))) == ([4], [3])


def test_a_file_of_hidden_rows_that_is_gone_is_missed_like_a_data_file(uri: str) -> None:
    location, (path,) = TableLocation(uri=uri), paths(uri, 0, "add")
    described = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    hidden = vector(1)["deletionVector"]
    gone = {"path": path, "dataChange": True, "deletionTimestamp": 1}
    put_commit(location, 1, "DELETE", [{"remove": gone}, {"add": {**described, "deletionVector": hidden}}])
    put_commit(location, 2, "RESTORE", [{"remove": {**gone, "deletionVector": hidden}}, {"add": described}])
    table, name = upstream(uri), r"its file deletion_vector_[0-9a-f-]{36}\.bin is missing"
    for check in (partial(table.check_whole, 1), *(partial(table.check_readable, read(at, at)) for at in (1, 2))):
        with pytest.raises(VersionsLostError, match=name):
            check()
    (lost,) = table.version(1).files[0].needed[1:]
    Path(uri, lost).touch()
    table.check_readable(read(1, 2))
    table.check_whole(2)


def test_a_log_that_delta_rs_cannot_read_is_refused_by_name(uri: str) -> None:
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["new"], "writerFeatures": ["new"]}
    put_commit(TableLocation(uri=uri), 1, "SET TBLPROPERTIES", [{"protocol": features}])
    with pytest.raises(UpstreamRefusedError, match=r"cannot read the log of table 'base' at .*'new'") as found:
        upstream(uri).now()
    assert found.value.facts["reason"] == "NOT_READABLE"
    assert "DROP FEATURE" in found.value.hint


def test_a_version_that_the_log_forgot_is_known_by_what_was_kept_of_it(uri: str) -> None:
    held = upstream(uri).version(0)
    Path(uri, f"_delta_log/{0:020d}.json").rename(Path(uri, "away"))
    with pytest.raises(VersionsLostError, match="version 0 can no longer be read"):
        upstream(uri).version(0)
    kept = DeltaUpstream(name="base", location=TableLocation(uri=uri), kept={0: held}.get)
    assert kept.version(0) == held


def test_a_log_that_was_recreated_is_not_followed_from_where_the_old_one_was(uri: str) -> None:
    followed = LoadedTable(TableLocation(uri=uri))
    old = followed.newest()
    assert old is not None
    append(uri, [4])
    known = followed.newest()
    assert known is not None
    assert (known.version(), known.metadata().id) == (1, old.metadata().id)
    shutil.rmtree(uri)
    for ids in ([1], [2], [3]):
        append(uri, ids, configuration={FEED: "true"})
    found, anew = followed.newest(), DeltaTable(uri)
    assert found is not None
    assert (found.version(), found.metadata().id) == (2, anew.metadata().id)
    assert found.file_uris() == anew.file_uris()
