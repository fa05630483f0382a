"""One declaration of an account on Azure: what delta-rs and obstore take, and what Spark is told."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dagster_deltalake.config import AzureConfig, ClientConfig

from backfill_assets.adapters.runtime.session_settings import PINNED, UNSHOWN
from backfill_assets.adapters.state.state_store import StateStore
from backfill_assets.adapters.storage.addresses import address
from backfill_assets.adapters.storage.store_errors import is_secret
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.errors import DeclarationError, EnvironmentSetupError

HOST = "mine.dfs.core.windows.net"
URI = f"abfss://lake@{HOST}/warehouse"
CLIENT = {"client_id": "a-client", "tenant_id": "a-tenant"}
EMULATOR = "http://127.0.0.1:10000/mine"
KEY = "YS1rZXk="


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def place(uri: str = URI, **storage: Any) -> Warehouse:
    return StateStore(warehouse=uri, storage={"provider": "azure", "account_name": "mine", **storage}).place


def told(settings: Mapping[str, str]) -> dict[str, str]:
    """What Spark is told of the account alone, without what all accounts have in common."""
    return {
        name.removeprefix("fs.azure.").removesuffix(f".{HOST}"): value
        for name, value in settings.items()
        if name.endswith(HOST)
    }


@pytest.mark.parametrize(
    ("login", "expected"),
    [
        ({"account_key": KEY}, {"account.auth.type": "SharedKey", "account.key": KEY}),
        ({"sas_key": "sig=a"}, {"account.auth.type": "SAS", "sas.fixed.token": "sig=a"}),
        (
            {**CLIENT, "client_secret": "a-secret"},
            {
                "account.auth.type": "OAuth",
                "account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
                "account.oauth2.client.endpoint": "https://login.microsoftonline.com/a-tenant/oauth2/token",
                "account.oauth2.client.id": "a-client",
                "account.oauth2.client.secret": "a-secret",
            },
        ),
        (
            {**CLIENT, "federated_token_file": "/a/file"},
            {
                "account.auth.type": "OAuth",
                "account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.WorkloadIdentityTokenProvider",
                "account.oauth2.msi.tenant": "a-tenant",
                "account.oauth2.client.id": "a-client",
                "account.oauth2.token.file": "/a/file",
            },
        ),
        ({}, {}),
        ({"token": "a-token"}, {}),
        ({"use_azure_cli": "true"}, {}),
    ],
)
def test_each_login_is_told_to_both_sides(login: dict[str, str], expected: dict[str, str]) -> None:
    found = place(**login)
    assert told(found.spark_settings) == expected
    assert {name: found.storage_options[name].lower() for name in login} == {
        name: each.lower() for name, each in login.items()
    }
    assert found.spark_settings["fs.azure.always.use.https"] == "true", "also for abfs://"


@pytest.mark.parametrize("name", ["account.key", "account.oauth2.client.secret", "sas.fixed.token"])
def test_a_key_of_an_account_is_secret_also_where_spark_shows_settings(name: str) -> None:
    secret, plain = (f"fs.azure.{each}.{HOST}" for each in (name, "account.auth.type"))
    assert is_secret(secret)
    assert re.search(PINNED[UNSHOWN], secret)
    assert not is_secret(plain)
    assert not re.search(PINNED[UNSHOWN], plain)
    assert re.search(PINNED[UNSHOWN], "URL"), "what Spark hides by itself"


@pytest.mark.parametrize(
    ("storage", "named"),
    [
        ({"account_key": KEY, "sas_key": "b"}, "account_key and sas_key: expected one way"),
        ({"client_secret": "a", "client_id": "b"}, "client_secret without tenant_id"),
        ({"federated_token_file": "a"}, "federated_token_file without client_id, tenant_id"),
        ({"account_name": "other"}, "account_name is other, and the address .* names mine"),
        ({"container_name": "other"}, "container_name is other, and the address .* names lake"),
    ],
)
def test_what_both_sides_would_not_understand_alike_is_refused(storage: dict[str, str], named: str) -> None:
    with pytest.raises(DeclarationError, match=named) as found:
        place(**storage)
    assert KEY not in str(found.value)


OVERRIDING = [
    ({"account_key": KEY}, ["AZURE_STORAGE_TOKEN", "TOKEN"], ["AZURE_CLIENT_SECRET"]),
    ({**CLIENT, "client_secret": "a"}, ["AZURE_STORAGE_ACCOUNT_KEY", "bearer_token"], ["AZURE_FEDERATED_TOKEN_FILE"]),
    ({**CLIENT, "federated_token_file": "a"}, ["AZURE_CLIENT_SECRET", "ACCESS_KEY", "TOKEN"], []),
    ({**CLIENT, "client_secret": "a"}, ["AZURE_STORAGE_MASTER_KEY", "master_key", "azure_storage_access_key"], []),
    ({"sas_key": "sig=a"}, ["AZURE_FEDERATED_TOKEN_FILE", "AZURE_STORAGE_KEY", "client_secret", "TOKEN"], []),
    ({"sas_key": "sig=a"}, ["account_key", "AZURE_STORAGE_CLIENT_SECRET", "federated_token_file"], []),
    ({}, [], ["AZURE_STORAGE_TOKEN", "AZURE_STORAGE_ACCOUNT_KEY"]),
]


@pytest.mark.parametrize(("login", "refused", "others"), OVERRIDING)
def test_variables_with_which_delta_rs_would_log_in_otherwise_are_refused(
    login: dict[str, str], refused: list[str], others: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in others:
        monkeypatch.setenv(name, "a-variable")
    assert place(**login).storage_options["skip_signature"] == "false"
    for name in refused:
        monkeypatch.setenv(name, "a-variable")
        with pytest.raises(DeclarationError, match=f"the environment has {name}, with which delta-rs would log in"):
            place(**login)
        monkeypatch.delenv(name)


@pytest.mark.parametrize("variable", ["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"])
def test_an_emulator_on_this_machine_is_told_to_both_sides(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, EMULATOR)
    with pytest.raises(DeclarationError, match="write abfs:// for abfss://"):
        place(account_key=KEY)
    found = place(URI.replace("abfss", "abfs"), account_key=KEY)
    assert (found.storage_options["endpoint"], found.storage_options["allow_http"]) == (EMULATOR, "true")
    assert found.spark_settings["fs.azure.abfs.endpoint"] == "127.0.0.1:10000"
    assert found.spark_settings["fs.azure.always.use.https"] == "false"


@pytest.mark.parametrize("endpoint", ["https://127.0.0.1:10000/mine", "http://store.example/mine"])
def test_another_endpoint_is_refused_as_spark_cannot_be_told_of_it(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", endpoint)
    with pytest.raises(
        DeclarationError, match=r"AZURE_STORAGE_ENDPOINT names .*: expected an emulator on this machine"
    ):
        place(account_key=KEY)


@pytest.mark.parametrize(
    "uri", ["az://lake/w", f"az://lake@{HOST}/w", "azure://lake/w", "adl://lake/w", "abfs://lake/w", "abfss://lake/w", f"abfss://@{HOST}/w"]
)  # fmt: skip
def test_an_address_that_spark_takes_for_another_or_none_is_refused(uri: str) -> None:
    with pytest.raises(EnvironmentSetupError, match="on Azure") as found:
        address(uri, Path("/project"))
    assert "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER" in found.value.hint


FIELDS = {
    "seconds": ("connect_timeout", "http2_keep_alive_interval", "http2_keep_alive_timeout", "pool_idle_timeout", "timeout"),
    "flags": ("allow_http", "allow_invalid_certificates", "http1_only", "http2_only", "use_azure_cli", "use_fabric_endpoint"),
    "texts": ("client_id", "default_content_type", "msi_resource_id", "tenant_id", "user_agent"),
    "urls": ("msi_endpoint", "proxy_url"),
    "numbers": ("http2_keep_alive_while_idle", "pool_max_idle_per_host"),
    "logins": ("account_key", "client_secret", "federated_token_file", "sas_key", "token"),
    "named": ("account_name", "container_name"),
}  # fmt: skip
VALUES = {"seconds": "5", "flags": "true", "texts": "some", "urls": "https://e.example", "numbers": "1"}


def test_every_field_that_may_be_declared_is_taken_by_the_client_of_small_objects() -> None:
    declared = {name for names in FIELDS.values() for name in names}
    assert declared == {*AzureConfig.model_fields, *ClientConfig.model_fields} - {"provider"}
    for kind, value in VALUES.items():
        for name in FIELDS[kind]:
            store = place(**{"account_key": KEY, name: value})
            assert store.objects("_state").signed("DELETE", "a", seconds=1), name
