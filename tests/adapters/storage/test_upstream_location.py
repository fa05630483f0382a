"""Where upstreams are, and what delta-rs and Spark are told of stores that are not the warehouse's."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_assets import delta_table
from backfill_assets.adapters.state.state_store import StateStore
from backfill_assets.adapters.storage.asked_stores import AskedStores
from backfill_assets.adapters.storage.upstream_location import TableElsewhere, located
from backfill_assets.adapters.storage.warehouse import TableLocation, Warehouse
from backfill_assets.errors import DeclarationError, EnvironmentSetupError

ROOT = Path("/project")
KEYS = {"access_key_id": "an-id", "secret_access_key": "a-secret"}
OTHER = {"provider": "s3", "access_key_id": "other-id", "secret_access_key": "other-secret"}
RAW = "fs.s3a.bucket.raw."
CHAIN = (
    "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider,"
    "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider"
)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ALLOW_HTTP"):
        monkeypatch.delenv(name, raising=False)


def local() -> Warehouse:
    return StateStore(root=str(ROOT)).place


def on_s3(**storage: Any) -> Warehouse:
    return StateStore(warehouse="s3://lake/warehouse", storage={"provider": "s3", **storage}).place


def at(warehouse: Warehouse, path: str = "s3://raw/customers", storage: Any = None) -> TableLocation:
    table = delta_table("customers", path=path, storage=storage)
    return located(table, warehouse=warehouse, root=ROOT, asked=AskedStores())


def told(location: TableLocation) -> dict[str, str]:
    """What Spark is told of the bucket, under the connector's names."""
    assert isinstance(location, TableElsewhere)
    general = {"fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"} if location.spark_settings else {}
    assert location.spark_settings.items() >= general.items()
    return {name.removeprefix(RAW): value for name, value in location.spark_settings.items() if name not in general}


def test_a_table_with_storage_of_its_own_is_reached_with_it_by_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_SECRET", "other-secret")
    storage = {
        **OTHER,
        "secret_access_key": "env:OTHER_SECRET",
        "endpoint": "https://other.example",
        "token": "a-token",
    }
    for warehouse in (local(), on_s3(**KEYS), on_s3()):
        found = at(warehouse, "s3a://raw/customers", storage)
        assert found.uri == "s3://raw/customers"
        assert found.storage_options["secret_access_key"] == "other-secret"
        assert told(found) == {
            "endpoint": "https://other.example",
            "endpoint.region": "us-east-1",
            "path.style.access": "true",
            "performance.flags": "mkdir,delete",
            "aws.credentials.provider": "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
            "access.key": "other-id",
            "secret.key": "other-secret",
            "session.token": "a-token",
        }


def test_what_the_warehouse_is_told_counts_for_no_other_store() -> None:
    warehouse = on_s3(endpoint="http://127.0.0.1:9000", **KEYS)
    assert told(at(warehouse, storage={"provider": "s3", "region": "eu-central-1"})) == {
        "endpoint": "s3.amazonaws.com",
        "endpoint.region": "eu-central-1",
        "path.style.access": "false",
        "connection.ssl.enabled": "true",
        "aws.credentials.provider": CHAIN,
        "performance.flags": "mkdir,delete",
    }
    assert "a-secret" not in str(dict(at(warehouse, storage={"provider": "s3"}).storage_options))


def test_a_store_whose_region_is_not_known_is_found_at_the_central_endpoint() -> None:
    found = told(at(on_s3(region="eu-central-1"), storage={"provider": "s3"}))
    assert (found["endpoint"], found["endpoint.region"]) == ("s3.amazonaws.com", "")


def test_without_storage_a_table_is_reached_as_the_warehouse_is() -> None:
    warehouse = on_s3(endpoint="https://store.example", **KEYS)
    found = at(warehouse)
    assert found.storage_options == warehouse.storage_options
    assert told(found) == {}
    own = at(warehouse, "s3a://lake/customers")
    assert (type(own), own.uri, own.storage_options) == (
        TableLocation,
        "s3://lake/customers",
        warehouse.storage_options,
    )


def test_beside_a_local_warehouse_a_table_on_s3_is_reached_as_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://environment.example")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    found = at(local())
    assert found.storage_options["endpoint"] == "https://environment.example"
    assert told(found)["endpoint"] == "https://environment.example"
    assert "a-secret" not in {*found.storage_options.values(), *told(found).values()}


def test_a_folder_is_reached_with_nothing_wherever_the_warehouse_is() -> None:
    for warehouse in (local(), on_s3(**KEYS)):
        found = at(warehouse, "lake/customers")
        assert (type(found), found.uri, found.storage_options) == (TableLocation, "/project/lake/customers", {})


def test_a_store_that_spark_is_not_told_of_is_reached_by_delta_rs_with_its_own_storage() -> None:
    found = at(on_s3(**KEYS), "hdfs://raw/t", {"provider": "local"})
    assert isinstance(found, TableElsewhere)
    assert (found.storage_options, found.spark_settings) == ({}, {})


def test_google_is_told_to_spark_beside_whatever_reaches_the_warehouse() -> None:
    for warehouse in (local(), on_s3(**KEYS)):
        found = at(warehouse, "gs://raw/t", {"provider": "gcs", "service_account": "a.json"})
        assert isinstance(found, TableElsewhere)
        assert found.storage_options == {"service_account": "a.json", "skip_signature": "false"}
        assert found.spark_settings["fs.gs.auth.service.account.json.keyfile"] == "a.json"
        assert found.store == "gs://"
    assert dict(at(on_s3(**KEYS), "gs://raw/t").storage_options) == {"skip_signature": "false"}


AZURE = "abfss://raw@mine.dfs.core.windows.net/t"
ACCOUNT = {"provider": "azure", "account_name": "mine", "account_key": "a-key"}


def on_azure(**options: str) -> Warehouse:
    storage = {"provider": "azure", "account_name": "mine", **options}
    return StateStore(warehouse="abfss://lake@mine.dfs.core.windows.net/w", storage=storage).place


def test_an_account_is_told_to_spark_beside_whatever_reaches_the_warehouse() -> None:
    for warehouse in (local(), on_s3(**KEYS)):
        found = at(warehouse, AZURE, ACCOUNT)
        assert isinstance(found, TableElsewhere)
        signed = {"account_name": "mine", "account_key": "a-key", "skip_signature": "false"}
        assert found.storage_options == signed
        assert found.spark_settings["fs.azure.account.key.mine.dfs.core.windows.net"] == "a-key"
        assert found.store == "abfss://mine.dfs.core.windows.net"


def test_containers_of_one_account_are_reached_in_one_way() -> None:
    warehouse = on_azure(account_key="a-key")
    assert type(at(warehouse, AZURE)) is type(at(warehouse, AZURE, ACCOUNT)) is TableLocation
    with pytest.raises(DeclarationError, match="is in the store of the warehouse"):
        at(warehouse, AZURE, {**ACCOUNT, "account_key": "another"})


def test_a_table_of_another_account_needs_storage_of_its_own() -> None:
    with pytest.raises(DeclarationError, match=r"account_name is mine, and the address abfss.* names other") as found:
        at(on_azure(account_key="a-key"), "abfss://raw@other.dfs.core.windows.net/t")
    assert "'customers'" in found.value.message
    other = at(
        on_azure(account_key="a-key"), "abfss://raw@other.dfs.core.windows.net/t", {**ACCOUNT, "account_name": "other"}
    )
    assert isinstance(other, TableElsewhere)
    assert "fs.azure.account.key.mine.dfs.core.windows.net" not in other.spark_settings


def test_the_bucket_of_the_warehouse_is_reached_in_one_way() -> None:
    warehouse = on_s3(**KEYS)
    assert type(at(warehouse, "s3://lake/t", {"provider": "s3", **KEYS})) is TableLocation
    with pytest.raises(DeclarationError, match="is in the store of the warehouse") as found:
        at(warehouse, "s3://lake/t", OTHER)
    assert "other values of access_key_id, secret_access_key" in found.value.message
    assert "secret\n" not in str(found.value)
    assert not [each for each in ("a-secret", "other-secret", "an-id", "other-id") if each in str(found.value)]


def test_what_is_wrong_is_told_of_the_table() -> None:
    with pytest.raises(DeclarationError, match="delta_table 'customers': storage cannot be used: S3Config has no typo"):
        at(local(), storage={"provider": "s3", "typo": "a-secret"})
    with pytest.raises(
        EnvironmentSetupError, match=r"delta_table 'customers': storage setting 'token' .* variable NOT_THERE"
    ):
        at(local(), storage={**OTHER, "token": "env:NOT_THERE"})


def test_nothing_shows_keys() -> None:
    found = at(on_s3(**KEYS), storage=OTHER)
    assert not [each for each in ("a-secret", "other-secret", "an-id", "other-id") if each in repr(found)]


@pytest.mark.parametrize("name", ["a[1]", "a]b", "a|b", "a^b", "a\\b", "a%20b"])
def test_a_warehouse_is_refused_where_delta_rs_cannot_write(tmp_path: Path, name: str) -> None:
    with pytest.raises(EnvironmentSetupError, match="delta-rs cannot write"):
        Warehouse.at(name, root=tmp_path)
    with pytest.raises(EnvironmentSetupError, match="delta-rs cannot write"):
        Warehouse.at(f"s3://lake/{name}", root=tmp_path)


@pytest.mark.parametrize("name", ["a*", "a{b,c}/d", "a}"])
def test_a_warehouse_in_a_store_is_refused_where_spark_takes_its_address_for_a_pattern(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(EnvironmentSetupError, match="Spark cannot tell the files at s3://lake/"):
        Warehouse.at(f"s3://lake/{name}", root=tmp_path)


@pytest.mark.parametrize(
    "uri", ["s3://lake/a#b", "s3a://lake/a?versionId=3", "s3://", "s3:///", "S3://lake/a", "s3://lake//a"]
)
def test_an_address_that_names_other_places_for_other_clients_is_refused(tmp_path: Path, uri: str) -> None:
    with pytest.raises(EnvironmentSetupError, match="names no folder that all clients of a store understand alike"):
        Warehouse.at(uri, root=tmp_path)
    with pytest.raises(EnvironmentSetupError, match="names no folder that all clients of a store understand alike"):
        at(local(), uri)


@pytest.mark.parametrize("name", ["a b", "a{b,c}", "a*", "a?", "a%b", "é", "a:b", "a=b"])
def test_delta_rs_writes_to_every_other_warehouse(tmp_path: Path, name: str) -> None:
    place = Warehouse.at(name, root=tmp_path).table("views/v")
    write_deltalake(place.uri, pa.table({"id": [1]}))
    loaded = place.load()
    assert loaded is not None
    assert loaded.to_pyarrow_table()["id"].to_pylist() == [1]


@pytest.mark.parametrize(("name", "odd"), [("a%20b", "%20"), ("a\\b", "\\")])
def test_a_table_is_refused_where_delta_rs_looks_elsewhere(name: str, odd: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        at(local(), f"tables/{name}")
    assert repr(odd) in caught.value.message
    assert caught.value.facts == {"argument": "path"}
    assert at(local(), "tables/a[1]").uri == "/project/tables/a[1]"
