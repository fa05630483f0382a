"""One declaration of an S3 store: what delta-rs and Spark are told, what is refused, and what is never shown."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster_deltalake import S3Config

from backfill_assets.adapters.state.state_store import StateStore
from backfill_assets.adapters.storage.s3 import s3_access
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.errors import DeclarationError, EnvironmentSetupError
from tests.support.refusing_store import refusing

PREFIX = "fs.s3a."
KEYS = {"access_key_id": "an-id", "secret_access_key": "a-secret"}


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "AWS_ENDPOINT",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ALLOW_HTTP",
    ):
        monkeypatch.delenv(name, raising=False)


def place(warehouse: str = "s3://lake/warehouse", **storage: Any) -> Warehouse:
    return StateStore(warehouse=warehouse, storage={"provider": "s3", **storage}).place


def told(settings: dict[str, str]) -> dict[str, str]:
    return {name.removeprefix(PREFIX): value for name, value in settings.items() if name.startswith(PREFIX)}


def test_a_store_at_an_endpoint_of_its_own_is_told_to_both_sides_alike() -> None:
    found = place(endpoint="https://store.example:9000", **KEYS)
    assert (
        found.storage_options.items()
        >= {"endpoint": "https://store.example:9000", "region": "us-east-1", **KEYS}.items()
    )
    assert found.spark_settings["fs.s3.impl"] == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    assert told(found.spark_settings) == {
        "endpoint": "https://store.example:9000",
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "performance.flags": "mkdir,delete",
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "access.key": "an-id",
        "secret.key": "a-secret",
    }


def test_keys_that_are_not_declared_are_left_to_each_sides_own_provider_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "an-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    found = place()
    assert "a-secret" not in {*found.storage_options.values(), *found.spark_settings.values()}
    assert found.storage_options["region"] == "eu-central-1"
    assert told(found.spark_settings) == {"endpoint.region": "eu-central-1", "performance.flags": "mkdir,delete"}


def test_an_endpoint_in_the_environment_counts_unless_another_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://environment.example")
    assert StateStore(warehouse="s3://lake/w").place.storage_options["endpoint"] == "https://environment.example"
    assert told(place().spark_settings)["endpoint"] == "https://environment.example"
    assert told(place(endpoint="https://declared.example").spark_settings)["endpoint"] == "https://declared.example"
    assert StateStore(warehouse="warehouse").place.storage_options == {}, "of a disk nothing is asked"


def test_the_most_special_endpoint_of_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, host in (("AWS_ENDPOINT_URL_S3", "objects"), ("AWS_ENDPOINT_URL", "all"), ("AWS_ENDPOINT", "old")):
        monkeypatch.setenv(name, f"https://{host}.example")
    assert told(place().spark_settings)["endpoint"] == "https://objects.example"
    assert told(place(endpoint="https://declared.example/").spark_settings)["endpoint"] == "https://declared.example"


NOWHERE = {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9", "AWS_SKIP_SIGNATURE": "true", "SKIP_SIGNATURE": "true"}


def test_requests_go_where_it_is_declared_and_signed_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {**NOWHERE, "AWS_CONDITIONAL_PUT": "disabled"}.items():
        monkeypatch.setenv(name, value)
    with refusing(403, "AccessDenied") as store:
        found = place(endpoint=store.endpoint, **KEYS)
        assert (
            found
            .objects("_state")
            .signed("DELETE", "a", seconds=9)
            .startswith(f"{store.endpoint}/lake/warehouse/_state/a?X-Amz-")
        )
        with pytest.raises(EnvironmentSetupError, match="403"):
            found.objects("_state").get("a")
        assert store.requests() == 1
        with pytest.raises(EnvironmentSetupError, match="403"):
            found.table("views/a").load()
        assert store.requests() > 1
    assert (found.storage_options["skip_signature"], found.storage_options["conditional_put"]) == ("false", "etag")


@pytest.mark.parametrize("name", ["ENDPOINT", "endpoint_url", "aws_endpoint", "Aws_Endpoint_Url_S3"])
def test_what_delta_rs_alone_takes_for_an_endpoint_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    with pytest.raises(DeclarationError, match=f"the environment has {name}, which delta-rs alone takes"):
        place()
    assert place(endpoint="https://declared.example").storage_options["endpoint"] == "https://declared.example"


def test_temporary_keys_and_buckets_as_hosts_are_told_to_spark_too() -> None:
    found = place(endpoint="https://e", token="a-token", virtual_hosted_style_request="true", **KEYS)
    said = told(found.spark_settings)
    assert (said["session.token"], said["path.style.access"]) == ("a-token", "false")
    assert said["aws.credentials.provider"].endswith(".TemporaryAWSCredentialsProvider")
    assert found.storage_options["virtual_hosted_style_request"] == "true"


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9000", "http://localhost:9000", "http://[::1]:9000"])
def test_this_machine_may_be_spoken_to_without_tls(endpoint: str) -> None:
    found = place(endpoint=endpoint)
    assert found.storage_options["allow_http"] == "true"
    assert told(found.spark_settings)["connection.ssl.enabled"] == "false"


def test_another_machine_is_spoken_to_without_tls_only_if_asked_for() -> None:
    with pytest.raises(DeclarationError, match=r"http://store.example:9000 is on another machine and has no TLS"):
        place(endpoint="http://store.example:9000")
    asked = place(endpoint="http://store.example:9000", allow_http=True)
    assert (asked.storage_options["allow_http"], told(asked.spark_settings)["connection.ssl.enabled"]) == (
        "true",
        "false",
    )


@pytest.mark.parametrize(
    ("storage", "named"),
    [
        ({"access_key_id": "an-id"}, "access_key_id without secret_access_key"),
        ({"secret_access_key": "a-secret"}, "secret_access_key without access_key_id"),
        ({"token": "a-secret"}, "token without access_key_id"),
        ({"endpoint": "store.example:9000"}, "expected https://"),
        ({"allow_unsafe_rename": True}, "sets allow_unsafe_rename"),
        ({"copy_if_not_exists": "header: x: a-secret"}, "sets copy_if_not_exists"),
        ({"unsigned_payload": "a-secret"}, "unsigned_payload: Input should be a valid boolean"),
    ],
)
def test_what_cannot_work_is_refused_by_name_and_shows_no_value(storage: dict[str, Any], named: str) -> None:
    with pytest.raises(DeclarationError, match=named) as found:
        place(**storage)
    assert "a-secret" not in str(found.value)


def test_both_spellings_of_an_address_are_one() -> None:
    assert place("s3a://lake/w") == place("s3://lake/w")
    assert place("s3a://lake/w").table("views/v").child("f") == "s3://lake/w/views/v/f"


def test_a_configuration_of_dagster_deltalake_is_a_declaration() -> None:
    declared: Any = S3Config(region="eu-central-1", access_key_id="an-id", secret_access_key="a-secret")
    store = StateStore(warehouse="s3://lake/w", storage=declared)
    assert store.place == place("s3://lake/w", region="eu-central-1", **KEYS)


def test_keys_are_read_from_the_environment_when_they_are_used_and_shown_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = {"access_key_id": "env:AN_ID", "secret_access_key": "env:A_SECRET"}
    with pytest.raises(EnvironmentSetupError, match="'access_key_id' is read from environment variable AN_ID"):
        assert place(**named)
    monkeypatch.setenv("AN_ID", "an-id")
    monkeypatch.setenv("A_SECRET", "a-secret")
    found = place(**named)
    assert found.storage_options["secret_access_key"] == "a-secret"
    shown = [found, found.table("views/v"), found.objects("_state"), s3_access(found.storage_options, {})]
    assert not [each for each in shown if "a-secret" in repr(each) or "an-id" in repr(each)]
    store = StateStore(warehouse="s3://lake/w", storage={"provider": "s3", "secret_access_key": dg.EnvVar("A_SECRET")})
    assert "A_SECRET" not in repr(store)


def test_a_disk_has_nothing_to_tell_spark(tmp_path: Path) -> None:
    assert Warehouse.at("warehouse", root=tmp_path).spark_settings == {}


@pytest.mark.parametrize(
    "endpoint",
    ["http://user:pass/word@127.0.0.1:9", "https://user:password@e.example", "https://token@e.example", "a:b@c"],
)
def test_an_endpoint_with_a_password_is_refused_and_not_shown(endpoint: str) -> None:
    with pytest.raises(DeclarationError, match="with a user name or a password") as caught:
        place(endpoint=endpoint, **KEYS)
    shown = caught.value.message.partition(" is written with")[0]
    assert not [each for each in ("user", "pass", "word", "token", "a:b") if each in shown]


def test_an_option_that_is_empty_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "endpoint" not in place(endpoint="").storage_options
    monkeypatch.setenv("AWS_ENDPOINT_URL", "")
    assert place(endpoint="https://declared.example").storage_options["endpoint"] == "https://declared.example"
    with pytest.raises(DeclarationError, match="the variable AWS_ENDPOINT_URL is set, but empty"):
        place()


@pytest.mark.parametrize("token", ["", "a-token"])
@pytest.mark.parametrize("name", ["AWS_SESSION_TOKEN", "AWS_TOKEN", "aws_session_token", "SESSION_TOKEN", "TOKEN"])
def test_a_token_of_the_environment_is_not_sent_with_declared_keys(
    monkeypatch: pytest.MonkeyPatch, name: str, token: str
) -> None:
    monkeypatch.setenv(name, token)
    with pytest.raises(DeclarationError, match=f"the environment has {name}, which delta-rs would send"):
        place(**KEYS)
    assert place(token="declared", **KEYS).storage_options["token"] == "declared"
    assert "token" not in place().storage_options


@pytest.mark.parametrize(("name", "is_theirs"), [("AWS_SESSION_TOKEN", True), ("AWS_TOKEN", False), ("TOKEN", False)])
def test_with_keys_of_the_environment_only_their_own_token_is_sent(
    monkeypatch: pytest.MonkeyPatch, name: str, is_theirs: bool
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "an-id")
    monkeypatch.setenv(name, "a-token")
    if is_theirs:
        assert "token" not in place().storage_options
        return
    with pytest.raises(DeclarationError, match=f"the environment has {name}, which delta-rs would send"):
        place()
