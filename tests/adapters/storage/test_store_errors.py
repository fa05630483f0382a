"""Stores that cannot be read: one error of this package, asked for once, and without keys."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deltalake.exceptions import DeltaError

from backfill_assets.adapters.storage.asked_stores import AskedStores
from backfill_assets.adapters.storage.store_errors import said
from backfill_assets.adapters.storage.upstream_location import TableElsewhere
from backfill_assets.adapters.storage.warehouse import LoadedTable, Warehouse
from backfill_assets.errors import EnvironmentSetupError
from tests.support.refusing_store import Refusing, refusing

KEYS = {"access_key_id": "an-id", "secret_access_key": "a-secret", "token": "a-token"}


@pytest.fixture(scope="module")
def store() -> Iterator[Refusing]:
    """A store that knows no keys."""
    with refusing(403, "InvalidAccessKeyId") as made:
        yield made


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


def test_an_error_is_told_in_one_line_without_colours_details_and_keys() -> None:
    text = "Generic S3 error\n \x1b[31m↳\x1b[0m asked with an-id\n \x1b[31m↳\x1b[0m and a-secret\n\nDebug source:\nmuch more"
    assert said(ValueError(text), KEYS) == "ValueError: Generic S3 error: asked with …: and …"
    for name in (
        "fs.s3a.bucket.raw.secret.key",
        "fs.s3a.session.token",
        "AWS_SESSION_TOKEN",
        "account_key",
        "client_secret",
    ):
        assert said(ValueError("it is hidden"), {name: "hidden"}) == "ValueError: it is …", name
    assert said(ValueError("it is us"), {"region": "us", "token": ""}) == "ValueError: it is us"
