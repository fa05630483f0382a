"""What a store's client says is told without keys: those declared, those of the environment, and what stores repeat."""

import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.state.state_store import State
from backfill_assets.adapters.storage.asked_stores import AskedStores
from backfill_assets.adapters.storage.put_if_absent import check_store
from backfill_assets.adapters.storage.store_errors import mask, masked, said
from backfill_assets.adapters.storage.warehouse import TableLocation, Warehouse
from backfill_assets.app.heartbeat import Heartbeat, Listener
from backfill_assets.core.epoch.records import CommitKind
from backfill_assets.errors import ComputeError
from tests.support.outputs import commit, output_at, record, stage
from tests.support.refusing_store import Refusing, refusing

TOKEN = "a/session+token=="
KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIAOFTHEENVIRONMENT",
    "AWS_SECRET_ACCESS_KEY": "secret-of-the-environment",
    "AWS_SESSION_TOKEN": TOKEN,
    "AZURE_STORAGE_ACCOUNT_KEY": "key-of-an-account",
    "AZURE_CLIENT_SECRET": "secret-of-a-client",
    "GOOGLE_SERVICE_ACCOUNT_KEY": "key-of-a-service",
    "SPARK_CONNECT_AUTHENTICATE_TOKEN": "token-of-a-server",
}


@pytest.fixture(scope="module")
def store() -> Iterator[Refusing]:
    """A store for which a token has expired."""
    with refusing(400, "ExpiredToken") as made:
        yield made


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def warehouse(store: Refusing) -> Warehouse:
    options = {"endpoint": store.endpoint, "region": "us-east-1", "allow_http": "true"}
    return Warehouse(uri="s3://lake/warehouse", storage_options=options)


OPERATIONS: dict[str, Callable[[Warehouse], object]] = {
    "put": lambda warehouse: warehouse.objects("").put("a", b""),
    "put_if_absent": lambda warehouse: warehouse.objects("").put_if_absent("a", b""),
    "put_over": lambda warehouse: warehouse.objects("").put_over("a", b"", {"e_tag": "a", "version": None}),
    "copy": lambda warehouse: warehouse.objects("").copy("a", "b"),
    "delete": lambda warehouse: warehouse.objects("").delete(["a"]),
    "get": lambda warehouse: warehouse.objects("").get("a"),
    "listed": lambda warehouse: warehouse.objects("").listed("a"),
    "asked": lambda warehouse: AskedStores().check("the warehouse", warehouse.objects("")),
    "checked": check_store,
    "load": lambda warehouse: warehouse.table("views/a").load(),
    "write": lambda warehouse: warehouse.table("views/a").write("a", b"content"),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_a_token_that_has_expired_is_in_no_error(
    warehouse: Warehouse, operation: Callable[[Warehouse], object]
) -> None:
    with pytest.raises(Exception, match="ExpiredToken") as found:
        operation(warehouse)
    shown = "".join(traceback.format_exception(found.value)) + repr(found.value)
    assert not [value for value in KEYS.values() if value in shown]
    assert "<Token-0>…</Token-0>" in shown


@pytest.mark.parametrize(
    "text",
    [
        "<Token-0>held</Token-0>",
        "<AWSAccessKeyId>held</AWSAccessKeyId>",
        "<SignatureProvided>held</SignatureProvided>",
        "<StringToSign>held\nheld</StringToSign>",
        "<StringToSign>held, and cut off",
        "<CanonicalRequest>held</CanonicalRequest>",
        "<AuthenticationErrorDetail>held</AuthenticationErrorDetail>",
        "GET https://a/b?X-Amz-Security-Token=held&x=1",
        "GET https://a/b?x-amz-signature=held",
        "GET https://a/b?X-Goog-Signature=held&x=1",
        "GET https://a/b?sv=1&sig=held&se=2",
        "Authorization: AWS4-HMAC-SHA256 Credential=a, Signature=held",
        "Authorization: Bearer held",
        "sc://spark:15002/;use_ssl=true;token=held;x=y",
        "error sending request through http://held:held@proxy:3128/",
        "?token=a%2Fsession%2Btoken%3D%3D and a/session+token==",
        *KEYS.values(),
    ],
)
def test_what_is_secret_is_masked(text: str) -> None:
    found = masked(text)
    assert "…" in found
    assert not [each for each in ("held", "session+", "%2Fsession", *KEYS.values()) if each in found]


@pytest.mark.parametrize(
    "text", ["design=1 & sign=2", "<Code>ExpiredToken</Code>", "key in us-east-1", "tokens=3", "s3://a@b:1/c", ""]
)
def test_other_text_stays(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "in")
    assert masked(text) == text


def test_errors_that_led_to_one_are_masked_too_and_keep_their_classes() -> None:
    first, second = ValueError(f"said {TOKEN}", 7), OSError(f"and {TOKEN}")
    error = ComputeError(f"because of {TOKEN}", hint=f"not {TOKEN}")
    error.__cause__, second.__context__ = second, first
    first.__context__ = error
    mask(error)
    assert TOKEN not in "".join(traceback.format_exception(error)) + str(error)
    assert (error.message, error.hint, first.args) == ("because of …", "not …", ("said …", 7))
    assert said(second, {}) == "OSError: and …"


class Expired(TableLocation):
    """A table in a store that refuses every commit."""

    def put_entry(self, version: int, content: bytes) -> bool:
        raise OSError(f"<Code>ExpiredToken</Code><Token-0>of another</Token-0>{version}{len(content)}")


def test_the_error_of_a_commit_is_masked(tmp_path: Path) -> None:
    made = output_at(tmp_path)
    commit(made, record(CommitKind.CREATE, "11111111", 0))
    staged = stage(made, "11111111", 1, [1])
    output = DeltaOutput(location=Expired(uri=made.location.uri), target=made.target, schema=made.schema)
    with pytest.raises(OSError, match="<Token-0>…</Token-0>"):
        commit(output, record(CommitKind.EPOCH, "11111111", 1), staged)


def test_a_lease_that_cannot_be_renewed_is_told_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_target: str, _run_id: str) -> None:
        raise OSError(f"<Code>ExpiredToken</Code>{TOKEN}")

    parts: Any = SimpleNamespace(state=SimpleNamespace(put_lease=refuse), target="views/a")
    heartbeat = Heartbeat(
        workspace=parts, table=parts, run_id="a", listener=Listener(), endless=False, yields_to_views=False
    )
    with caplog.at_level(logging.WARNING):
        heartbeat.renew_lease()
    assert "ExpiredToken" in caplog.text
    assert TOKEN not in caplog.text


def test_a_lease_that_the_store_refuses_is_told_in_one_line(
    warehouse: Warehouse, caplog: pytest.LogCaptureFixture
) -> None:
    parts: Any = SimpleNamespace(state=State(warehouse), target="views/a")
    heartbeat = Heartbeat(
        workspace=parts, table=parts, run_id="a", listener=Listener(), endless=False, yields_to_views=False
    )
    with caplog.at_level(logging.WARNING):
        heartbeat.renew_lease()
    assert "views/a: the lease could not be renewed: [ENVIRONMENT]" in caplog.text
    assert "Traceback" not in caplog.text
