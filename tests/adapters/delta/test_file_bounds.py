"""The statistics of an output's files in real Delta logs, without Spark: every commit keeps them exact, and older
tables are corrected."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, Schema

from backfill_assets.adapters.delta.created_table import STATUS_PROPERTY
from backfill_assets.adapters.delta.log_replay import replay
from backfill_assets.adapters.delta.maintenance import put_commit, set_properties
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.delta.staged_files import collect
from backfill_assets.core.epoch.bounds import BOUNDED_COLUMNS, named
from backfill_assets.core.epoch.records import CommitKind, Staged
from backfill_assets.core.epoch.staged_folders import StagedFolder
from tests.support.bounds import longest_bound, stated, untrue
from tests.support.outputs import commit, output_at, record, reopened

LIFE = "11111111"
KEY = 1580661436132757506
SCHEMA = pa.schema({
    "id": pa.int64(),
    "key": pa.decimal128(20, 0),
    "word": pa.string(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "x": pa.float64(),
})
BOUNDED = ("id", "word", "day")
AGES = 100_000_000
"""A day in the year 275,760: Spark supports it, but chrono, with which delta-rs formats days, does not."""


def rows(*ids: int, **given: Any) -> pa.Table:
    """Rows with these ids; each other value is a function of the id."""
    columns: dict[str, Any] = {
        "id": ids,
        "key": [Decimal(KEY + each) for each in ids],
        "word": [f"w{each}" for each in ids],
        "day": pa.array(ids, pa.int32()).view(pa.date32()),
        "at": [datetime(2024, 1, 1, 0, 0, 0, each, UTC) for each in ids],
        "x": [float("nan") if each % 2 else -0.0 for each in ids],
    }
    return pa.table({**columns, **given}, schema=SCHEMA)


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    made = output_at(tmp_path, SCHEMA)
    commit(made, record(CommitKind.CREATE, LIFE, 0))
    return made


def staged(
    output: DeltaOutput, epoch: int, files: Mapping[str, pa.Table], *, attempt: str = "aaaaaaaa", **given: Any
) -> Staged:
    """Files staged for an epoch, each in a folder named after the operation on its rows."""
    folder = StagedFolder(incarnation=LIFE, epoch=epoch, attempt=attempt).name
    for operation, table in files.items():
        place = Path(output.location.child(f"{folder}/rows/__op={operation}"))
        place.mkdir(parents=True)
        pq.write_table(table, place / "part.parquet")
    counts = {operation: len(table) for operation, table in files.items()}
    return Staged(
        files=collect(output.location, folder),
        rows_written=counts.get("insert", 0) + counts.get("update", 0),
        rows_updated=counts.get("update", 0),
        rows_deleted=counts.get("delete", 0),
        **given,
    )


def append(output: DeltaOutput, epoch: int, table: pa.Table, **given: Any) -> None:
    commit(output, record(CommitKind.EPOCH, LIFE, epoch), staged(output, epoch, {"insert": table}, **given))


def merge(output: DeltaOutput, epoch: int, **files: pa.Table) -> None:
    made = record(CommitKind.EPOCH, LIFE, epoch).model_copy(update={"engine": "delta-rs"})
    commit(output, made, staged(output, epoch, files, key=("id",)))


def assert_true(output: DeltaOutput, ids: Sequence[int]) -> None:
    """All statistics are right, and a filter on any column finds each row."""
    place = output.location.uri
    assert untrue(place) == []
    assert longest_bound(place) <= 64
    table = DeltaTable(place)
    found, dataset = table.to_pyarrow_table(), table.to_pyarrow_dataset()
    assert sorted(found["id"].to_pylist()) == sorted(ids)
    for name in ("id", "key", "day", "at"):
        for value in found[name]:
            assert dataset.count_rows(filter=ds.field(name) == value) == 1, (name, value)
    ask = QueryBuilder().register("t", table).execute  # Arrow cannot compare strings as delta-rs writes some of them
    for word in found["word"].to_pylist():
        assert pa.table(ask(f"SELECT id FROM t WHERE word = '{word}'")).num_rows > 0, word


def names(output: DeltaOutput) -> tuple[str, ...]:
    return named(DeltaTable(output.location.uri).metadata().configuration[BOUNDED_COLUMNS])


def version(output: DeltaOutput) -> int:
    return DeltaTable(output.location.uri).version()


def test_bounds_are_exact_after_appends_merges_an_overwrite_and_compaction(output: DeltaOutput) -> None:
    for epoch in (1, 2, 3):
        append(output, epoch, rows(2 * epoch, 2 * epoch + 1))
    assert_true(output, range(2, 8))
    texts = ["a" * 2_000, "\U0001f600" * 100]
    merge(output, 4, update=rows(2, 4, word=texts), delete=rows(7), insert=rows(9))
    assert_true(output, [2, 3, 4, 5, 6, 9])
    output.look()
    output.compact(2)
    assert len(stated(output.location.uri)) == 1
    assert_true(output, [2, 3, 4, 5, 6, 9])
    (merged,) = stated(output.location.uri)
    footer = pq.read_metadata(Path(output.location.uri, merged)).row_group(0)
    columns = {footer.column(at).path_in_schema: footer.column(at) for at in range(footer.num_columns)}
    assert columns["id"].statistics.has_min_max
    assert not columns["x"].is_stats_set or not columns["x"].statistics.has_min_max, "such bounds leave NaN out"
    append(output, 5, rows(1, 8), replaces=True)
    assert_true(output, [1, 8])
    assert names(output) == BOUNDED


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("day", pa.array([AGES, 1], pa.int32()).view(pa.date32())),
        ("day", pa.array([-800_000, 1], pa.int32()).view(pa.date32())),
        ("word", pa.array(["\U0010ffff" * 100, "a"])),
        ("word", pa.array([b"\xff\xfe", b"a"]).cast(pa.binary()).view(pa.string())),
    ],
    ids=["a day that no reader names", "a day before the first year", "no text lies above", "not UTF-8"],
)
def test_a_column_has_no_bounds_any_more_before_a_value_comes_that_has_none(
    output: DeltaOutput, column: str, values: pa.Array
) -> None:
    append(output, 1, rows(1, 2))
    before, odd = version(output), staged(output, 2, {"insert": rows(3, 4, **{column: values})})
    commit(output, record(CommitKind.EPOCH, LIFE, 2), odd)
    assert (version(output), names(output)) == (before + 1, tuple(name for name in BOUNDED if name != column))
    assert output.look().external is None
    commit(output, record(CommitKind.EPOCH, LIFE, 2), odd)
    assert version(output) == before + 2, "now it was made"
    assert column not in stated(output.location.uri)[odd.files[0].path]["maxValues"]
    dataset = DeltaTable(output.location.uri).to_pyarrow_dataset()
    assert dataset.count_rows(filter=ds.field(column) == values[0]) == 1
    assert dataset.count_rows(filter=ds.field("id") == 3) == 1


def test_letters_that_delta_rs_decodes_to_others_are_stated_again(output: DeltaOutput) -> None:
    append(output, 1, rows(1, word=["\U00020bb7"]))
    entry = max(Path(output.location.uri, "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["stats"] = json.dumps(json.loads(action["add"]["stats"]))  # with escapes
    entry.write_text("\n".join(map(json.dumps, actions)))
    again = reopened(output)
    assert words_found(again) == 0
    again.look()
    assert again.keep_bounds(thoroughly=True)
    assert words_found(again) == 1


def words_found(output: DeltaOutput) -> int:
    dataset = DeltaTable(output.location.uri).to_pyarrow_dataset()
    return int(dataset.count_rows(filter=ds.field("word") == "\U00020bb7"))


def test_days_that_delta_rs_cannot_name_are_merged_and_compacted(output: DeltaOutput) -> None:
    days = pa.array([AGES, -AGES], pa.int32()).view(pa.date32())
    append(output, 1, rows(1, 2))
    change = {"update": rows(1, day=days[:1]), "insert": rows(3, day=days[1:])}
    made = record(CommitKind.EPOCH, LIFE, 2).model_copy(update={"engine": "delta-rs"})
    keyed = staged(output, 2, change, key=("id",))
    commit(output, made, keyed)
    commit(output, made, keyed)
    append(output, 3, rows(4))
    output.look()
    output.compact(2)
    assert len(stated(output.location.uri)) == 1
    dataset = DeltaTable(output.location.uri).to_pyarrow_dataset()
    assert [dataset.count_rows(filter=ds.field("day") == day) for day in days] == [1, 1]
    assert names(output) == ("id", "word")


def test_commits_of_other_runs_are_read_before_fewer_columns_are_named(output: DeltaOutput) -> None:
    day = pa.array([AGES], pa.int32()).view(pa.date32())
    odd = staged(output, 1, {"insert": rows(1, day=day)}, attempt="bbbbbbbb")
    output.look()
    rival = reopened(output)
    append(rival, 1, rows(9))
    output.commit(record(CommitKind.EPOCH, LIFE, 1, attempt="bbbbbbbb"), odd)
    assert names(output) == BOUNDED
    assert_true(output, [9])


@pytest.fixture
def older(output: DeltaOutput) -> DeltaOutput:
    """A table as it was written before bounds were exact: wrong bounds of decimals and floats, and whole long strings."""
    for epoch in (1, 2):
        append(output, epoch, rows(2 * epoch, 2 * epoch + 1, word=[chr(96 + epoch) * 1_000, "short"]))
    forget(output)
    DeltaTable(output.location.uri).optimize.compact()
    ((path, said),) = stated(output.location.uri).items()
    said["minValues"]["word"], said["maxValues"]["word"] = "a" * 1_000, "short"
    restate(output, path, said)
    wanted = pa.scalar(Decimal(KEY + 2), pa.decimal128(20, 0))
    assert DeltaTable(output.location.uri).to_pyarrow_dataset().count_rows(filter=ds.field("key") == wanted) == 0
    return output


def forget(output: DeltaOutput) -> None:
    """Remove the property from a table, which delta-rs cannot do."""
    found = replay(output.location, version(output)).metadata
    kept = {name: value for name, value in found["configuration"].items() if name != BOUNDED_COLUMNS}
    put_commit(output.location, version(output) + 1, "UNSET", [{"metaData": {**found, "configuration": kept}}])


def restate(output: DeltaOutput, path: str, said: Mapping[str, Any], **more: Any) -> None:
    """Add a file to the log once more."""
    (file,) = (each for each in replay(output.location, version(output)).files if each.path == path)
    entry = {**file.action, **more, "dataChange": False, "stats": json.dumps(said)}
    put_commit(output.location, version(output) + 1, "COMPUTE STATS", [{"add": entry}])


def test_an_older_table_is_corrected_in_one_commit_that_changes_no_row(older: DeltaOutput) -> None:
    before = version(older)
    older.look()
    assert older.keep_bounds(thoroughly=False)
    assert version(older) == before + 1
    assert_true(older, range(2, 6))
    assert names(older) == BOUNDED
    changes = DeltaTable(older.location.uri).load_cdf(starting_version=before + 1)
    assert pa.table(changes).num_rows == 0
    look = older.look()
    assert (look.external, look.version) == (None, before + 1)
    assert not older.keep_bounds(thoroughly=False)
    assert not older.keep_bounds(thoroughly=True), "there is nothing left to mend"
    append(older, 3, rows(7))
    assert_true(older, [2, 3, 4, 5, 7])


def test_an_older_table_is_corrected_before_anything_is_committed_to_it(older: DeltaOutput) -> None:
    more = staged(older, 3, {"insert": rows(7)})
    for _ in range(2):
        commit(older, record(CommitKind.EPOCH, LIFE, 3), more)
    assert_true(older, [2, 3, 4, 5, 7])


def test_an_older_table_whose_log_begins_with_a_checkpoint_is_corrected(older: DeltaOutput) -> None:
    DeltaTable(older.location.uri).create_checkpoint()
    for entry in Path(older.location.uri, "_delta_log").glob("*.json"):
        if int(entry.name[:20]) < version(older):
            entry.unlink()
    assert older.look_for_reset() is not None
    assert older.keep_bounds(thoroughly=False)
    assert_true(older, range(2, 6))


def test_columns_of_which_an_older_file_lacks_bounds_are_not_named(older: DeltaOutput) -> None:
    ((path, said),) = stated(older.location.uri).items()
    del said["maxValues"]["word"], said["minValues"]["word"]
    restate(older, path, said)
    older.look()
    assert older.keep_bounds(thoroughly=False)
    assert names(older) == ("id", "day")
    assert_true(older, range(2, 6))


def test_a_corrected_entry_keeps_everything_else_about_its_file(older: DeltaOutput) -> None:
    ((path, said),) = stated(older.location.uri).items()
    vector = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 1,
    }
    restate(older, path, said, deletionVector=vector, tags={"a": "b"})
    before = entry_of(older)
    older.look()
    assert older.keep_bounds(thoroughly=False)
    after = entry_of(older)
    assert {**before, "stats": ""} == {**after, "stats": ""}
    assert json.loads(after["stats"])["maxValues"].keys() == set(BOUNDED)


def entry_of(output: DeltaOutput) -> dict[str, Any]:
    (file,) = replay(output.location, version(output)).files
    return {name: value for name, value in file.action.items() if value is not None}


def test_a_table_that_claims_exact_bounds_is_trusted_until_it_is_maintained(output: DeltaOutput) -> None:
    append(output, 1, rows(2, 3))
    ((path, said),) = stated(output.location.uri).items()
    restate(output, path, {**said, "maxValues": {**said["maxValues"], "key": 1.58e18}})
    output.look()
    assert not output.keep_bounds(thoroughly=False)
    assert output.keep_bounds(thoroughly=True)
    assert_true(output, [2, 3])


def test_files_are_not_compacted_while_the_table_asks_for_other_bounds_than_exact_ones(output: DeltaOutput) -> None:
    for epoch in (1, 2):
        append(output, epoch, rows(epoch))
    set_properties(output.location, {BOUNDED_COLUMNS: "id,key"})
    output.look()
    output.compact(2)
    assert len(stated(output.location.uri)) == 2
    assert output.keep_bounds(thoroughly=False)
    output.look()
    output.compact(2)
    assert len(stated(output.location.uri)) == 1
    assert_true(output, [1, 2])


def test_a_delete_of_a_missing_key_adds_no_row(output: DeltaOutput) -> None:
    append(output, 1, rows(1, 2))
    merge(output, 2, delete=rows(2, 7))
    assert_true(output, [1])


@pytest.mark.parametrize("text", ["id,key", "`id`,`key`"])
def test_a_property_that_somebody_else_set_is_not_kept(output: DeltaOutput, text: str) -> None:
    set_properties(output.location, {BOUNDED_COLUMNS: text})
    more = staged(output, 1, {"insert": rows(7)})
    for _ in range(2):
        commit(output, record(CommitKind.EPOCH, LIFE, 1), more)
    assert names(output) == BOUNDED
    assert_true(output, [7])


def test_a_new_life_names_its_own_columns(output: DeltaOutput) -> None:
    append(output, 1, rows(1))
    other = pa.schema({"word": pa.string(), "new": pa.int32(), "x": pa.float64()})
    output.schema = lambda: Schema.from_arrow(other).to_json()
    commit(output, record(CommitKind.CREATE, "22222222", 0))
    output.look()
    assert output.keep_bounds(thoroughly=True)
    assert names(output) == ("word", "new")


def test_properties_are_set_by_all_who_set_some_at_once_and_the_protocol_stays(output: DeltaOutput) -> None:
    before = DeltaTable(output.location.uri).protocol()
    made = version(output)
    with ThreadPoolExecutor(4) as threads:
        done = [threads.submit(set_properties, output.location, {f"mine.{at}": "yes"}) for at in range(4)]
    assert all(each.result() for each in done)
    table = DeltaTable(output.location.uri)
    assert {f"mine.{at}" for at in range(4)} <= table.metadata().configuration.keys()
    assert table.metadata().configuration[STATUS_PROPERTY] == "creating"
    assert table.version() == made + 4
    assert not set_properties(output.location, {"mine.1": "yes"})
    assert set(table.protocol().reader_features or ()) == set(before.reader_features or ())
    assert set(table.protocol().writer_features or ()) == set(before.writer_features or ())
    assert table.schema() == Schema.from_arrow(SCHEMA)
