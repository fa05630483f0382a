"""One declaration of Google's store: what delta-rs and obstore take, and what Spark is told."""

import json
from typing import Any

import pytest

from backfill_assets.adapters.state.state_store import StateStore
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.errors import DeclarationError

EMULATOR = "http://127.0.0.1:4443"
CONNECTOR = "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)


def place(**storage: Any) -> Warehouse:
    return StateStore(warehouse="gs://lake/warehouse", storage={"provider": "gcs", **storage}).place


def login(warehouse: Warehouse) -> dict[str, str]:
    """What Spark is told of keys."""
    return {
        name.removeprefix("fs.gs.auth."): value
        for name, value in warehouse.spark_settings.items()
        if name.startswith("fs.gs.auth.")
    }


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"service_account": "/a/file.json"}, {
            "type": "SERVICE_ACCOUNT_JSON_KEYFILE", "service.account.json.keyfile": "/a/file.json",
        }),
        ({"service_account_key": '{"private_key": "a-secret"}'}, {}),
        ({"application_credentials": "/a/file.json"}, {}),
        ({}, {}),
    ],
)  # fmt: skip
def test_spark_is_told_of_a_file_with_keys_and_finds_others_for_itself(
    keys: dict[str, str], expected: dict[str, str]
) -> None:
    found = place(**keys)
    assert login(found) == expected
    assert found.storage_options == {**keys, "skip_signature": "false"}
    assert found.spark_settings["fs.gs.impl"] == CONNECTOR
    assert "a-secret" not in str(found.spark_settings)
    assert found.spark_settings["parquet.hadoop.vectored.io.enabled"] == "false"
    sizes = [value for name, value in found.spark_settings.items() if name.endswith(("size", "limit"))]
    assert len(sizes) == 5
    assert all(each.isdecimal() for each in sizes), "Google's connector knows no units"


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"service_account": "a", "application_credentials": "b"}, "service_account and application_credentials"),
        ({"service_account_key": "{"}, "service_account_key, or GOOGLE_SERVICE_ACCOUNT_KEY, is no JSON"),
        ({"service_account_key": '{"gcs_base_url": "http://store.example"}'}, "expected an emulator on this machine"),
    ],
)
def test_what_both_sides_would_not_understand_alike_is_refused(keys: dict[str, str], named: str) -> None:
    with pytest.raises(DeclarationError, match=named):
        place(**keys)


def test_an_emulator_on_this_machine_is_told_to_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", EMULATOR)
    found = place(service_account="/a/file.json")
    assert "service_account" not in found.storage_options
    assert json.loads(found.storage_options["service_account_key"])["gcs_base_url"] == EMULATOR
    assert found.storage_options["allow_http"] == "true"
    assert found.spark_settings["fs.gs.storage.root.url"] == f"{EMULATOR}/"
    assert login(found) == {"type": "UNAUTHENTICATED"}


KEY = '{"private_key": "a-secret"}'


@pytest.mark.parametrize(
    ("keys", "variable"),
    [
        ({"service_account": "/a"}, "GOOGLE_SERVICE_ACCOUNT_KEY"),
        ({"service_account_key": KEY}, "GOOGLE_SERVICE_ACCOUNT"),
        ({"service_account_key": KEY}, "GOOGLE_SERVICE_ACCOUNT_PATH"),
        ({"application_credentials": "/a"}, "GOOGLE_SERVICE_ACCOUNT"),
        ({"application_credentials": "/a"}, "GOOGLE_SERVICE_ACCOUNT_KEY"),
    ],
)
def test_a_variable_that_counts_beside_declared_keys_is_refused(
    keys: dict[str, str], variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "another-secret")
    with pytest.raises(DeclarationError, match=f"the environment has {variable}, which") as raised:
        place(**keys)
    assert "another-secret" not in str(raised.value)


def test_variables_that_do_not_count_are_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/another")
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", "/another")
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    monkeypatch.setenv("SERVICE_ACCOUNT_KEY", KEY)
    assert place(service_account="/a").storage_options == {"service_account": "/a", "skip_signature": "false"}
    assert place().storage_options == {"skip_signature": "false"}


def test_a_variable_that_names_another_store_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", '{"gcs_base_url": "http://store.example"}')
    with pytest.raises(DeclarationError, match="GOOGLE_SERVICE_ACCOUNT_KEY, which tells delta-rs alone of another"):
        place()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", EMULATOR)
    assert json.loads(place().storage_options["service_account_key"])["gcs_base_url"] == EMULATOR


@pytest.mark.parametrize("address", ["https://127.0.0.1:4443", "http://store.example"])
def test_an_emulator_elsewhere_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
    with pytest.raises(DeclarationError, match=f"STORAGE_EMULATOR_HOST names {address}: expected an emulator"):
        place()
