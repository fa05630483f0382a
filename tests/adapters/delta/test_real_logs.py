"""Outputs, staging and the state store on real Delta tables, without Spark: races and unusual values."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction, RemoveAction

from backfill_assets.adapters.delta.logged_changes import BYTES_OF_ROW
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.delta.staged_files import collect
from backfill_assets.adapters.delta.staging import delete_data, sweep
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.ports import TableSize
from backfill_assets.core.epoch.records import CommitKind, TableState
from tests.support.outputs import SCHEMA, commit, output_at, record, reopened, rows, stage


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    return output_at(tmp_path)


def test_a_slow_drop_deletes_nothing_of_the_life_that_came_after_it(output: DeltaOutput) -> None:
    commit(output, record(CommitKind.CREATE, "11111111", 0))
    commit(output, record(CommitKind.EPOCH, "11111111", 1), stage(output, "11111111", 1, [1]))
    commit(output, record(CommitKind.DROP, "11111111", 1))
    commit(output, record(CommitKind.CREATE, "22222222", 0))
    commit(output, record(CommitKind.EPOCH, "22222222", 1), stage(output, "22222222", 1, [7, 8]))
    assert not delete_data(output.location, output.look)
    assert rows(output) == [7, 8]


def test_a_drop_deletes_what_existed_before_it_began_and_nothing_staged_since(output: DeltaOutput) -> None:
    commit(output, record(CommitKind.CREATE, "11111111", 0))
    commit(output, record(CommitKind.EPOCH, "11111111", 1), stage(output, "11111111", 1, [1]))
    commit(output, record(CommitKind.DROP, "11111111", 1))
    look = output.look

    def look_late() -> TableState:
        stage(output, "22222222", 1, [7])
        return look()

    assert delete_data(output.location, look_late)
    assert sorted(each.name for each in Path(output.location.uri).iterdir()) == ["22222222-1-aaaaaaaa", "_delta_log"]


def test_a_drop_deletes_the_spool_but_for_what_a_life_begun_since_has_captured(output: DeltaOutput) -> None:
    commit(output, record(CommitKind.CREATE, "11111111", 0))
    commit(output, record(CommitKind.DROP, "11111111", 0))
    spool = Path(output.location.child("_spool"))
    look = output.look

    def captured(life: str) -> Path:
        segment = spool / f"{life}-1-aaaaaaaa" / "orders" / "1"
        segment.mkdir(parents=True)
        return segment

    captured("11111111")

    def look_late() -> TableState:
        captured("22222222")
        return look()

    assert delete_data(output.location, look_late)
    assert [each.name for each in spool.iterdir()] == ["22222222-1-aaaaaaaa"]
    assert delete_data(output.location, look)
    assert not spool.exists()


def test_sweeping_spares_the_epoch_in_the_making_and_every_folder_of_a_life_that_begins_meanwhile(
    output: DeltaOutput,
) -> None:
    commit(output, record(CommitKind.CREATE, "11111111", 0))
    commit(output, record(CommitKind.EPOCH, "11111111", 1), stage(output, "11111111", 1, [1]))
    stage(output, "11111111", 1, [1], attempt="bbbbbbbb")
    stage(output, "11111111", 2, [2])
    assert sweep(output.location, output.look) == ["11111111-1-bbbbbbbb"]
    look = output.look

    def reset_first() -> TableState:
        commit(output, record(CommitKind.CREATE, "22222222", 0))
        stage(output, "22222222", 1, [9])
        return look()

    assert sweep(output.location, reset_first) == ["11111111-2-aaaaaaaa"]

    def reset_later() -> TableState:
        found = look()
        commit(output, record(CommitKind.CREATE, "33333333", 0))
        stage(output, "33333333", 1, [9])
        return found

    assert sweep(output.location, reset_later) == []
    assert sorted(each.name for each in Path(output.location.uri).glob("*-1-aaaaaaaa")) == [
        "11111111-1-aaaaaaaa",
        "22222222-1-aaaaaaaa",
        "33333333-1-aaaaaaaa",
    ]


def test_columns_that_somebody_else_added_are_an_external_write_and_properties_are_not(output: DeltaOutput) -> None:
    commit(output, record(CommitKind.CREATE, "11111111", 0))
    DeltaTable(output.location.uri).alter.set_table_properties({"delta.checkpointInterval": "7"})
    assert output.look().external is None
    DeltaTable(output.location.uri).alter.add_columns([Field("extra", PrimitiveType("string"))])
    assert output.look().external == 3


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("text", pa.array([b"\xff\xfe", b"a"]).cast(pa.binary()).view(pa.string())),
        ("day", pa.array([3_700_000, -1_000_000], pa.int32()).view(pa.date32())),
        ("moment", pa.array([320_000_000_000_000_000], pa.int64()).view(pa.timestamp("us", "UTC"))),
    ],
)
def test_values_that_python_cannot_hold_have_no_bounds_but_are_staged(
    tmp_path: Path, name: str, values: pa.Array
) -> None:
    location = TableLocation(uri=str(tmp_path))
    (tmp_path / "11111111-1-aaaaaaaa").mkdir()
    pq.write_table(pa.table({name: values, "id": list(range(len(values)))}), tmp_path / "11111111-1-aaaaaaaa/p.parquet")
    (staged,) = collect(location, "11111111-1-aaaaaaaa")
    assert staged.rows == len(values)
    assert '"maxValues": {"id"' in staged.stats


def test_bounds_are_stated_only_where_every_row_group_has_them_and_of_the_column_that_is_meant(tmp_path: Path) -> None:
    location = TableLocation(uri=str(tmp_path))
    (tmp_path / "11111111-1-aaaaaaaa").mkdir()
    held = {
        "word": ["b", "c", None, "z" * 5_000],  # a string of this length has no bounds in the footer
        "id": [1, None, None, 4],
        "at.day": [100, 101, 102, 103],
        "at": [{"day": each} for each in (1, 2, 3, 4)],
    }
    pq.write_table(pa.table(held), tmp_path / "11111111-1-aaaaaaaa/p.parquet", row_group_size=2)
    (staged,) = collect(location, "11111111-1-aaaaaaaa")
    said = json.loads(staged.stats)
    assert (said["minValues"], said["maxValues"]) == ({"id": 1}, {"id": 4})
    assert said["nullCount"] == {"word": 1, "id": 2}
    assert said["numRecords"] == 4


def test_two_runs_can_expire_a_log_at_the_same_time(output: DeltaOutput) -> None:
    DeltaTable(output.location.uri).alter.set_table_properties({
        "delta.logRetentionDuration": "interval 0 seconds",
        "delta.checkpointInterval": "10",
    })
    commit(output, record(CommitKind.CREATE, "11111111", 0))
    for epoch in range(1, 60):
        commit(output, record(CommitKind.EPOCH, "11111111", epoch), stage(output, "11111111", epoch, [epoch]))
    both = [reopened(output) for _ in range(4)]
    for each in both:
        assert each.look().record is not None
    with ThreadPoolExecutor(len(both)) as threads:
        list(
            threads.map(DeltaOutput.expire_log, both)
        )  # whoever finds an entry missing leaves the rest to the next run
    output.look()
    output.expire_log()
    entries = sorted(Path(output.location.uri, "_delta_log").glob("*.json"))
    assert len(entries) < 20
    found = output.look().record
    assert found is not None
    assert found.epoch == 59
    assert rows(output) == list(range(1, 60))


def test_a_retention_that_is_no_length_of_time_keeps_the_log_for_ever(output: DeltaOutput) -> None:
    DeltaTable(output.location.uri).alter.set_table_properties({"delta.logRetentionDuration": "interval 1 month"})
    output.look()
    assert output.log_retention() == math.inf
    DeltaTable(output.location.uri).alter.set_table_properties({
        "delta.logRetentionDuration": "interval 2 days",
        "delta.deletedFileRetentionDuration": "interval 1 days",
    })
    output.look()
    assert output.log_retention() == 2 * 86_400


def test_the_size_of_a_table_is_estimated_where_its_log_does_not_state_rows(tmp_path: Path) -> None:
    location = TableLocation(uri=str(tmp_path / "table"))
    stated = {"delta.enableChangeDataFeed": "true"}
    DeltaTable.create(location.uri, SCHEMA, configuration=stated)
    table = DeltaTable(location.uri)
    adds: list[AddAction | RemoveAction] = [
        AddAction("a.parquet", 5_000, {}, 0, True, "{}"),
        AddAction("b.parquet", 50, {}, 0, True, '{"numRecords": 7}'),
    ]
    table.create_write_transaction(adds, "append", table.schema())
    assert DeltaUpstream(name="t", location=location).size() == TableSize(rows=5_000 // BYTES_OF_ROW + 7, bytes=5_050)
