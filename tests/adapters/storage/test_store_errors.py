"""Stores that cannot be read or written: one error of this package, asked for once, and without keys."""

import errno
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import Schema
from deltalake.exceptions import DeltaError
from pyarrow.fs import FileSelector

from backfill_assets.adapters.delta.arrow_files import put_rows
from backfill_assets.adapters.delta.created_table import create_table
from backfill_assets.adapters.delta.log_replay import replay
from backfill_assets.adapters.state.state_store import State, StateStore
from backfill_assets.adapters.storage.asked_stores import AskedStores
from backfill_assets.adapters.storage.store_errors import cannot_be_read, cannot_be_written, said
from backfill_assets.adapters.storage.upstream_location import TableElsewhere
from backfill_assets.adapters.storage.warehouse import LoadedTable, Warehouse
from backfill_assets.core.epoch.ports import Controls
from backfill_assets.core.epoch.records import Plan
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.errors import DeclarationError, EnvironmentSetupError
from tests.support.outputs import SCHEMA
from tests.support.refusing_store import Refusing, refusing

NOWHERE = SnapshotPosition(tables={})
PLAN = Plan(
    target="views/a",
    incarnation="11111111",
    epoch=1,
    fingerprint={},
    reads=(),
    before=NOWHERE,
    after=NOWHERE,
    live=True,
)
KEYS = {"access_key_id": "an-id", "secret_access_key": "a-secret", "token": "a-token"}


@pytest.fixture(scope="module")
def store() -> Iterator[Refusing]:
    """A store that knows no keys."""
    with refusing(403, "InvalidAccessKeyId") as made:
        yield made


@pytest.fixture(scope="module")
def stores() -> Iterator[Mapping[int, Refusing]]:
    """Stores that let nothing be written, by the status of their answers."""
    with refusing(403, "Conflicting") as denied, refusing(409, "Conflicting") as conflicting:
        yield {403: denied, 409: conflicting}


@pytest.fixture
def warehouse(store: Refusing) -> Warehouse:
    options = {"endpoint": store.endpoint, "region": "us-east-1", "allow_http": "true", **KEYS}
    return Warehouse(uri="s3://lake/warehouse", storage_options=options)


READS: dict[str, Callable[[Warehouse], object]] = {
    "the store": lambda warehouse: AskedStores().check("the warehouse", warehouse.objects("")),
    "an object": lambda warehouse: warehouse.objects("_state").get("leases/a.json"),
    "a list": lambda warehouse: warehouse.objects("_state").names("leases"),
    "a table": lambda warehouse: warehouse.table("views/a").load(),
    "a log": lambda warehouse: LoadedTable(warehouse.table("views/a")).newest(),
    "a folder": lambda warehouse: (
        warehouse.table("views/a").files().get_file_info(FileSelector("", allow_not_found=True))
    ),
    "sizes of files": lambda warehouse: warehouse.table("views/a").files().get_file_info(["a", "b"]),
    "checkpoints": lambda warehouse: replay(warehouse.table("views/a"), 1),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_whatever_is_read_first_gives_the_error_of_this_package(
    warehouse: Warehouse, read: Callable[[Warehouse], object]
) -> None:
    with pytest.raises(
        EnvironmentSetupError, match=r"cannot be read: expected an answer .*InvalidAccessKeyId"
    ) as found:
        read(warehouse)
    text = str(found.value)
    assert "s3://lake/warehouse" in text
    assert "What to do: check that the store can be reached" in text
    assert not [each for each in (*KEYS.values(), "\x1b", "Debug source") if each in text]
    assert found.value.__cause__ is None


WRITES: dict[str, Callable[[Warehouse], object]] = {
    "an object": lambda warehouse: warehouse.objects("_state").put("a.json", b""),
    "a copy": lambda warehouse: warehouse.objects("_state").copy("b.json", "a.json"),
    "less": lambda warehouse: warehouse.objects("_state").delete(["a.json"]),
    "a folder": lambda warehouse: warehouse.table("views/a").files().delete_dir("a"),
    "a data file": lambda warehouse: warehouse.table("views/a").files().delete_file("a"),
    "a lease": lambda warehouse: State(warehouse).put_lease("views/a", "run"),
    "controls": lambda warehouse: State(warehouse).set_controls("views/a", Controls(), by="me"),
    "a plan": lambda warehouse: State(warehouse).ledger().append(PLAN),
    "a file": lambda warehouse: put_rows(warehouse.table("views/a"), "staged/a.parquet", pa.table({"id": [1]})),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("status", [403, 409], ids=["no right", "in conflict"])
def test_whatever_is_written_first_gives_the_error_of_this_package(
    status: int, write: Callable[[Warehouse], object], stores: Mapping[int, Refusing]
) -> None:
    options = {"endpoint": stores[status].endpoint, "region": "us-east-1", "allow_http": "true", **KEYS}
    with pytest.raises(
        EnvironmentSetupError, match=r"cannot be (written or deleted|read): expected .*Conflicting"
    ) as found:
        write(Warehouse(uri="s3://lake/warehouse", storage_options=options))
    assert "s3://lake/warehouse/" in str(found.value)
    assert found.value.__cause__ is None


def test_what_a_disk_does_not_take_is_told_as_that_of_a_store(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a file, and no folder")
    with pytest.raises(EnvironmentSetupError, match=r"a/b cannot be written or deleted: expected .*Error") as found:
        Warehouse(uri=str(tmp_path)).objects("").put("a/b", b"")
    assert "the space that is left" in found.value.hint


def test_variables_that_send_requests_elsewhere_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert not any("proxy" in hint for hint in hints())
    monkeypatch.setenv("https_proxy", "http://me:secret@127.0.0.1:1")
    assert all("(requests may go to a proxy: https_proxy is set)" in hint for hint in hints())
    assert not any("secret" in hint for hint in hints())


def hints() -> list[str]:
    """What is told to do where a store cannot be read, or written."""
    error = OSError("no")
    return [cannot_be_read("a", "s3://lake", error, {}).hint, cannot_be_written("s3://lake/a", error, {}).hint]


def test_a_store_is_asked_once_for_a_run_and_each_folder_of_it_for_itself(
    store: Refusing, warehouse: Warehouse
) -> None:
    asked, before = AskedStores(), store.requests()
    for _ in range(3):
        with pytest.raises(EnvironmentSetupError, match="the warehouse at s3://lake/warehouse cannot be read"):
            asked.check("the warehouse", warehouse.objects(""))
    assert store.requests() == before + 1
    with pytest.raises(EnvironmentSetupError, match="another at s3://lake/warehouse/views/a cannot be read"):
        asked.check("another", warehouse.objects("views/a"))
    assert store.requests() == before + 2


def test_a_table_elsewhere_is_named_and_its_store_asked_before_delta_rs_reads_it(
    store: Refusing, warehouse: Warehouse
) -> None:
    options, asked = warehouse.storage_options, AskedStores()
    table = TableElsewhere(uri="s3://raw/t", storage_options=options, name="customers", spark_settings={}, asked=asked)
    before = store.requests()
    for read in (table.load, LoadedTable(table).newest):
        with pytest.raises(EnvironmentSetupError, match="table 'customers' at s3://raw/t cannot be read"):
            read()
    assert store.requests() == before + 1


def test_a_disk_is_not_asked_and_not_written_to(tmp_path: Path) -> None:
    AskedStores().check("the warehouse", Warehouse(uri=str(tmp_path / "none")).objects(""))
    assert not (tmp_path / "none").exists()


def test_what_is_no_matter_of_the_store_is_left_to_whoever_reads(tmp_path: Path) -> None:
    location = Warehouse(uri=str(tmp_path)).table("views/a")
    assert location.load() is None
    assert location.objects().get("nothing") is None
    location.objects().put("_delta_log/00000000000000000000.json", b"{}")
    with pytest.raises(DeltaError):
        location.load()


def test_a_table_that_the_store_does_not_let_be_created_is_told_as_other_writes(warehouse: Warehouse) -> None:
    with pytest.raises(EnvironmentSetupError, match=r"_delta_log/0+\.json cannot be written .*InvalidAccessKeyId"):
        create_table(warehouse.table("views/a"), Schema.from_arrow(SCHEMA).to_json())


def test_a_secret_that_is_no_text_is_refused_by_its_name_and_not_shown() -> None:
    with pytest.raises(
        DeclarationError, match=r"StateStore.*'secret_access_key' is of type int, expected text"
    ) as found:
        StateStore(warehouse="s3://lake/w", storage={"provider": "s3", "secret_access_key": 123456})  # type: ignore[dict-item]
    assert "123456" not in str(found.value)


def test_a_checkpoint_that_the_store_does_not_give_is_no_damage(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = (1, ["_delta_log/00000000000000000001.checkpoint.parquet"])
    monkeypatch.setattr("backfill_assets.adapters.delta.log_replay._newest_checkpoint", lambda *_: newest)
    with pytest.raises(EnvironmentSetupError, match=r"cannot be read: expected an answer .*403"):
        replay(warehouse.table("views/a"), 1)


@pytest.mark.parametrize(
    ("said", "is_of_store"),
    [
        ("Kernel error -> Generic S3 error: no answer", True),
        ("Generic MicrosoftAzure error", True),
        ("The operation lacked the necessary privileges to complete for path a", True),
        ("Invalid table version: 1", False),
    ],
)
def test_what_delta_rs_says_of_a_store_is_told_from_what_it_says_of_a_log(
    said: str, is_of_store: bool, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DeltaError(said)

    monkeypatch.setattr("backfill_assets.adapters.storage.warehouse.DeltaTable", fail)
    with pytest.raises(EnvironmentSetupError if is_of_store else DeltaError, match=said):
        warehouse.table("views/a").load()


def test_a_list_whose_answer_is_cut_is_asked_for_again(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[object] = [OSError("Generic S3 error: Error getting list response body"), []]

    def answer(*_: object) -> object:
        found = answers.pop(0)
        if isinstance(found, OSError):
            raise found
        return found

    monkeypatch.setattr("deltalake.fs.DeltaStorageHandler.get_file_info_selector", answer)
    assert warehouse.table("views/a").files().get_file_info(FileSelector("a")) == []
    assert not answers


def test_a_full_disk_of_this_machine_is_not_told_as_a_store(warehouse: Warehouse, tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    found = warehouse.table("views/a").cannot_be_read(full)
    assert found.message.startswith(f"the temporary folder {tempfile.gettempdir()} of this machine cannot be used")
    assert "TMPDIR" in found.hint
    local = Warehouse(uri=str(tmp_path)).table("views/a").cannot_be_read(full)
    assert "the table at" in local.message


def test_an_error_is_told_in_one_line_without_colours_details_and_keys() -> None:
    text = "Generic S3 error\n \x1b[31m↳\x1b[0m asked with an-id\n \x1b[31m↳\x1b[0m and a-secret\n\nDebug source:\nmuch more"
    assert said(ValueError(text), KEYS) == "ValueError: Generic S3 error: asked with …: and …"
    assert said(ValueError("a log\n   0: <unknown>\n   1: <unknown>\n"), KEYS) == "ValueError: a log"
    for name in (
        "fs.s3a.bucket.raw.secret.key",
        "fs.s3a.session.token",
        "AWS_SESSION_TOKEN",
        "account_key",
        "client_secret",
    ):
        assert said(ValueError("it is hidden"), {name: "hidden"}) == "ValueError: it is …", name
    assert said(ValueError("it is us"), {"region": "us", "token": ""}) == "ValueError: it is us"
