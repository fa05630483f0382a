"""What stores do to a commit: they overwrite, refuse, are not there, lose their replies, and have many writers at once."""

import contextlib
import json
import multiprocessing
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError

from backfill_assets.adapters.delta.created_table import create_table
from backfill_assets.adapters.delta.merged_files import Merged
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.delta.staged_files import collect
from backfill_assets.adapters.state.state_store import State
from backfill_assets.adapters.storage.put_if_absent import MARKER, check_store
from backfill_assets.adapters.storage.warehouse import TableLocation, Warehouse
from backfill_assets.core.epoch.records import CommitKind, Staged
from backfill_assets.errors import EnvironmentSetupError
from tests.support.outputs import SCHEMA, TARGET, commit, record
from tests.support.project import Project
from tests.support.runner import declared
from tests.support.s3_proxy import S3Proxy, before
from tests.support.settings import FULL

pytestmark = pytest.mark.e2e

LIFE = "11111111"
WRITERS, COMMITS = (8, 6) if FULL else (4, 4)


@pytest.fixture
def proxy(s3: dict[str, str]) -> Iterator[S3Proxy]:
    """A proxy before the S3 server."""
    with before(s3["AWS_ENDPOINT_URL"]) as made:
        yield made


@pytest.fixture
def warehouse(s3: dict[str, str], proxy: S3Proxy) -> Warehouse:
    """An empty warehouse that is reached through the proxy."""
    options = {
        "endpoint": proxy.endpoint,
        "region": s3["AWS_REGION"],
        "access_key_id": s3["AWS_ACCESS_KEY_ID"],
        "secret_access_key": s3["AWS_SECRET_ACCESS_KEY"],
        "allow_http": "true",
    }
    return Warehouse(uri=f"s3://lake/{uuid.uuid4().hex}", storage_options=options)


def output_of(warehouse: Warehouse) -> DeltaOutput:
    location = warehouse.table(TARGET)
    create_table(location, Schema.from_arrow(SCHEMA).to_json())
    return opened(location)


def opened(location: TableLocation) -> DeltaOutput:
    return DeltaOutput(location=location, target=TARGET, schema=lambda: Schema.from_arrow(SCHEMA).to_json())


def stage(output: DeltaOutput, epoch: int, ids: list[int], attempt: str = "aaaaaaaa") -> Staged:
    folder = f"{LIFE}-{epoch}-{attempt}"
    return Staged(files=written(output.location, folder, pa.table({"id": ids}, schema=SCHEMA)), rows_written=len(ids))


def written(location: TableLocation, folder: str, rows: pa.Table) -> Any:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    location.objects().put(f"{folder}/part.parquet", sink.getvalue().to_pybytes())
    return collect(location, folder)


def rows(output: DeltaOutput) -> list[int]:
    table = output.location.load()
    assert table is not None
    return sorted(table.to_pyarrow_table()["id"].to_pylist())


def test_a_store_without_conditional_puts_is_refused_before_anything_is_written(
    on_s3: Project, proxy: S3Proxy, warehouse: Warehouse
) -> None:
    on_s3.declare(*declared("no-such-topic"))
    project = replace(on_s3, warehouse=warehouse.uri, storage={**on_s3.storage, "endpoint": proxy.endpoint})
    proxy.fail("PUT", MARKER, "overwritten", times=9)
    with pytest.raises(EnvironmentSetupError, match=f"{warehouse.uri} overwrote an object"):
        project.refresh("orders")
    assert warehouse.objects("").names("") == [MARKER]


def test_a_store_with_conditional_puts_is_asked_once_more_by_each_run(proxy: S3Proxy, warehouse: Warehouse) -> None:
    check_store(warehouse)
    assert [each.status for each in proxy.requests()] == [200, 412]
    check_store(warehouse)
    assert [each.status for each in proxy.requests()] == [412]


@pytest.mark.parametrize(
    ("uri", "options", "named"),
    [
        ("s3://no-such-bucket/w", {}, "NoSuchBucket|NotFoundError"),
        (
            "s3://lake/w",
            {"secret_access_key": "wrong-secret"},
            "SignatureDoesNotMatch|PermissionDenied|Unauthenticated",
        ),
        ("s3://lake/w", {"access_key_id": "nobody"}, "InvalidAccessKeyId|PermissionDenied|Unauthenticated"),
        pytest.param("s3://lake/w", {"endpoint": "http://127.0.0.1:1"}, "refused to write", marks=pytest.mark.full),
    ],
)
def test_a_store_that_cannot_be_written_is_refused_with_its_reason(
    warehouse: Warehouse, uri: str, options: dict[str, str], named: str
) -> None:
    wrong = Warehouse(uri=uri, storage_options={**warehouse.storage_options, **options})
    with pytest.raises(EnvironmentSetupError, match=named) as found:
        check_store(wrong)
    secret = wrong.storage_options["secret_access_key"]
    assert secret not in str(found.value)
    assert found.value.__cause__ is None


def test_an_epoch_that_only_adds_rows_is_committed_by_one_request(proxy: S3Proxy, warehouse: Warehouse) -> None:
    output = output_of(warehouse)
    commit(output, record(CommitKind.CREATE, LIFE, 0))
    staged = stage(output, 1, [1, 2])
    output.look()
    proxy.requests()
    output.commit(record(CommitKind.EPOCH, LIFE, 1), staged)
    asked = proxy.requests()
    version = output.look().version
    assert [each.address.rpartition("/")[2] for each in asked if each.method == "PUT"] == [f"{version:020d}.json"]
    assert [each for each in asked if "list-type" in each.address] == [], "the log was loaded again"
    assert rows(output) == [1, 2]


def test_answers_that_are_cut_are_asked_for_again(proxy: S3Proxy, warehouse: Warehouse) -> None:
    folder = warehouse.objects("cut")
    folder.put("a", b"all of it" * 1000)
    proxy.fail("GET", "list-type", "cut", times=3)
    assert folder.names("") == ["a"]
    proxy.fail("GET", "cut/a", "cut", times=3)
    assert folder.get("a") == b"all of it" * 1000
    proxy.fail("GET", "list-type", "cut", times=5)
    with pytest.raises(EnvironmentSetupError, match="cannot be read"):
        folder.names("")
    assert folder.names("") == ["a"]


def test_a_commit_whose_reply_was_lost_is_known_by_what_it_says(proxy: S3Proxy, warehouse: Warehouse) -> None:
    output = output_of(warehouse)
    commit(output, record(CommitKind.CREATE, LIFE, 0))
    made, staged = record(CommitKind.EPOCH, LIFE, 1), stage(output, 1, [1, 2])
    entry = f"_delta_log/{output.look().version + 1:020d}.json"
    proxy.fail("PUT", entry, "reply lost")
    with pytest.raises(CommitFailedError):
        output.commit(made, staged)
    found = output.look()
    assert (found.record, found.external) == (made, None)
    assert rows(output) == [1, 2]


@pytest.mark.parametrize("mode", ["reply lost", "busy"])
def test_a_merge_that_a_store_answers_badly_is_there_once(proxy: S3Proxy, warehouse: Warehouse, mode: Any) -> None:
    output = output_of(warehouse)
    commit(output, record(CommitKind.CREATE, LIFE, 0))
    commit(output, record(CommitKind.EPOCH, LIFE, 1), stage(output, 1, [1, 2]))
    output.merge_memory, output.merge_large = 0, replaced
    changes = stage(output, 2, [7]).model_copy(update={"rows_updated": 1, "key": ("id",)})
    looked = output.look().version
    proxy.fail("PUT", f"_delta_log/{looked + 1:020d}.json", mode)
    made = record(CommitKind.EPOCH, LIFE, 2).model_copy(update={"engine": output.engine(changes)})
    output.commit(made, changes)
    found = output.look()
    assert (found.version, found.record, found.external) == (looked + 1, made, None)
    assert rows(output) == [2, 7]


def replaced(location: TableLocation, table: DeltaTable, _staged: Staged) -> Merged:
    """The one file goes; one with 2 and 7 comes."""
    (path,) = pa.table(table.get_add_actions()).column("path").to_pylist()
    files = written(location, f"{LIFE}-2-aaaaaaaa/rows", pa.table({"id": [2, 7]}, schema=SCHEMA))
    feed = {"id": [1, 7], "_change_type": ["update_preimage", "update_postimage"]}
    return Merged(
        removed=frozenset({path}), files=files, feed=written(location, f"{LIFE}-2-aaaaaaaa/feed", pa.table(feed))
    )


@pytest.mark.parametrize("looked", [False, True])
def test_a_commit_that_another_writer_has_replaced_is_noticed_before_or_after_the_next_one(
    warehouse: Warehouse, looked: bool
) -> None:
    """As Spark does with Delta's log store for one driver: it looks whether an entry is there, and then writes it."""
    output = output_of(warehouse)
    commit(output, record(CommitKind.CREATE, LIFE, 0))
    for epoch in (1, 2):
        commit(output, record(CommitKind.EPOCH, LIFE, epoch), stage(output, epoch, [epoch]))
    at = output.look().version
    entry = f"_delta_log/{at:020d}.json"
    added = {"path": "x", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
    output.location.objects().put(entry, json.dumps({"add": added}).encode())
    if looked:
        assert output.look().external == at
    else:
        output.commit(record(CommitKind.EPOCH, LIFE, 3), stage(output, 3, [3]))
        assert (output.look().version, output.look().external) == (at + 1, at)


def test_a_lease_is_released_by_one_request_unless_another_run_has_it(proxy: S3Proxy, warehouse: Warehouse) -> None:
    state, another = State(warehouse), State(warehouse)
    state.put_lease(TARGET, "a-run")
    proxy.requests()
    state.release_lease(TARGET, "a-run")
    assert [(each.method, each.status) for each in proxy.requests()] == [("PUT", 200)]
    state.put_lease(TARGET, "a-run")
    another.put_lease(TARGET, "another-run")
    state.release_lease(TARGET, "a-run")
    assert holder(another) == "another-run"
    another.put_lease(TARGET, "another-run")
    proxy.fail("PUT", "lease.json", "denied")  # as a store that does not know the condition
    another.release_lease(TARGET, "another-run")
    assert holder(state) is None
    state.put_lease(TARGET, "a-run")
    proxy.fail("PUT", "lease.json", "reply lost")  # it was renewed, and this process has not learned as what
    with contextlib.suppress(Exception):
        state.put_lease(TARGET, "a-run")
    assert holder(another) == "a-run"
    state.release_lease(TARGET, "a-run")
    assert holder(another) is None


def holder(state: State) -> str | None:
    lease = state.lease(TARGET)
    return None if lease is None else lease.run_id


def test_of_many_writers_at_once_none_loses_a_commit(warehouse: Warehouse) -> None:
    assert_no_commit_is_lost(warehouse)


def assert_no_commit_is_lost(warehouse: Warehouse) -> None:
    output = output_of(warehouse)
    commit(output, record(CommitKind.CREATE, LIFE, 0))
    commit(output, record(CommitKind.EPOCH, LIFE, 1), stage(output, 1, [-1]))
    order = {"uri": output.location.uri, "options": dict(output.location.storage_options)}
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload([__name__])
    started = [forks.Process(target=write_among_others, args=(order, writer)) for writer in range(WRITERS)]
    for each in started:
        each.start()
    for each in started:
        each.join(timeout=300)
    assert [each.exitcode for each in started] == [0] * WRITERS
    assert rows(output) == [-1, *(writer * 100 + number for writer in range(WRITERS) for number in range(COMMITS))]
    assert output.look().version == 2 + WRITERS * COMMITS


def write_among_others(order: dict[str, Any], writer: int) -> None:
    """Commit an epoch of one row again and again, each on the version that was looked at, as one of many.

    Every other commit adds its row by the entry that is written for merges of Spark.
    """
    output = opened(TableLocation(uri=order["uri"], storage_options=order["options"]))
    for number in range(COMMITS):
        attempt = uuid.uuid4().hex[:8]
        while True:
            found = output.look()
            assert found.record is not None
            if found.record.attempt == attempt:
                break
            epoch = found.record.epoch + 1
            staged = stage(output, epoch, [writer * 100 + number], attempt)
            made = record(CommitKind.EPOCH, LIFE, epoch, attempt=attempt)
            if number % 2:
                output.merge_large = merged
                made = made.model_copy(update={"engine": "spark"})
                staged = staged.model_copy(update={"rows_written": 2, "rows_updated": 1, "key": ("id",)})
            try:
                output.commit(made, staged)
            except CommitFailedError:
                continue
            output.look()
            mine = [each.attempt for each in output.records(WRITERS * COMMITS + 1)]
            if attempt in mine:
                break


def merged(location: TableLocation, table: DeltaTable, staged: Staged) -> Merged:
    """The file with -1 goes; one with the same row comes, and one with a new row."""
    (name, new), old = staged_row(location, staged), -1
    files = pa.table(table.get_add_actions(flatten=True)).select(["path", "min.id"]).to_pylist()
    (path,) = (each["path"] for each in files if each["min.id"] == old)
    feed = {"id": [new, old, old], "_change_type": ["insert", "update_preimage", "update_postimage"]}
    same, other = (written(location, f"{name}/{row}", pa.table({"id": [row]}, schema=SCHEMA)) for row in (old, new))
    return Merged(
        removed=frozenset({path}),
        files=(*same, *other),
        feed=written(location, f"{name}/feed", pa.table(feed)),
    )


def staged_row(location: TableLocation, staged: Staged) -> tuple[str, int]:
    """The folder of an attempt, and the row in its one file."""
    path = staged.files[0].path
    rows = pq.read_table(location.files().open_input_file(path))
    return path.partition("/")[0], rows["id"].to_pylist()[0]


@pytest.mark.full
def test_keys_that_lose_their_rights_are_told_from_rows_that_cannot_be_computed(on_s3: Project, proxy: S3Proxy) -> None:
    project = replace(on_s3, storage={**on_s3.storage, "endpoint": proxy.endpoint})
    topic = project.topic()
    project.declare(*declared(topic))
    project.produce(topic, [{"id": 1, "amount": 1.5}])
    project.refresh("orders")
    project.produce(topic, [{"id": 2, "amount": 2.5}])
    proxy.fail("PUT", "/part-", "denied")
    with pytest.raises(EnvironmentSetupError, match=r"/part-\S+ cannot be written or deleted") as found:
        project.refresh("orders")
    assert "Check the rights to write and delete there" in found.value.hint
    project.refresh("orders")
    assert project.rows("orders", "id", "amount") == Counter({(1, 1.5): 1, (2, 2.5): 1})
