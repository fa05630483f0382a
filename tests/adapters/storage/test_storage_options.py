"""How the warehouse's storage is reached: by the fields of a configuration of dagster_deltalake."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster_deltalake.config import ClientConfig, S3Config

from backfill_assets.adapters.state.state_store import StateStore
from backfill_assets.errors import DeclarationError


def resolved(store: StateStore) -> dict[str, str]:
    with store.process_config_and_initialize_cm() as found:
        resource: Any = found  # StateStore itself, whatever its type parameter is
        return dict(resource.place.storage_options)


def test_a_local_warehouse_needs_nothing() -> None:
    assert resolved(StateStore()) == {}


def test_what_is_given_reaches_delta_and_secrets_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "hidden")
    given: dict[str, Any] = {
        "access_key_id": "me",
        "secret_access_key": dg.EnvVar("A_SECRET"),
        "imdsv1_fallback": True,
        "region": None,
    }
    store = StateStore(warehouse="s3://bucket/warehouse", storage={"provider": "s3", **given})
    assert "hidden" not in repr(store)
    found = resolved(store)
    expected = {"access_key_id": "me", "secret_access_key": "hidden", "imdsv1_fallback": "True"}
    assert {name: found[name] for name in expected} == expected
    assert "provider" not in found


@pytest.mark.parametrize(
    ("storage", "named"),
    [
        ({"provider": "tape"}, "expected provider to be one of local, s3, azure, gcs, found tape"),
        ({"account_name": "mine"}, "found none"),
        ({"provider": "azure"}, "account_name"),
        ({"provider": "s3", "access_key": "typo"}, "S3Config has no access_key"),
        ("s3", "expected a mapping, found str"),
    ],
)
def test_what_is_no_storage_is_refused_by_name(storage: dict[str, str], named: str) -> None:
    with pytest.raises(DeclarationError, match=named) as found:
        resolved(StateStore(storage=storage))
    assert found.value.facts["argument"] == "storage"


def test_each_provider_is_checked_by_its_own_configuration() -> None:
    assert resolved(StateStore(storage={"provider": "azure", "account_name": "mine"}))["account_name"] == "mine"


def test_what_an_idle_refresh_needs_of_a_local_warehouse_loads_no_pandas(tmp_path: Path) -> None:
    StateStore(warehouse=str(tmp_path)).state().put_lease("views/a", "a-run")
    code = (
        "import sys; from backfill_assets import build_definitions, kafka_source; "
        "from backfill_assets.adapters.state.state_store import StateStore; "
        "build_definitions(kafka_source('a', topic='a', schema='id LONG')); "
        f"state = StateStore(warehouse={str(tmp_path)!r}).state(); "
        "print(state.leases()['views/a'].run_id, dict(state.all_controls()), 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "a-run {} False"


KEYS = {"provider": "s3", "access_key_id": "an-id", "secret_access_key": "a-secret"}
FIELDS = {
    "seconds": ("connect_timeout", "http2_keep_alive_interval", "http2_keep_alive_timeout", "pool_idle_timeout", "timeout"),
    "flags": ("allow_http", "allow_invalid_certificates", "http1_only", "http2_only",
              "imdsv1_fallback", "unsigned_payload", "virtual_hosted_style_request"),
    "texts": ("bucket", "checksum", "container_credentials_relative_uri", "default_content_type", "region", "user_agent"),
    "urls": ("endpoint", "metadata_endpoint", "proxy_url"),
    "numbers": ("http2_keep_alive_while_idle", "pool_max_idle_per_host"),
    "keys": ("access_key_id", "secret_access_key", "token"),
    "refused": ("allow_unsafe_rename", "copy_if_not_exists"),
}  # fmt: skip
VALUES = {"seconds": "5", "flags": "true", "texts": "some", "urls": "https://e.example", "numbers": "1"}


def test_every_field_that_may_be_declared_of_s3_is_taken_by_the_client_of_small_objects() -> None:
    declared = {name for names in FIELDS.values() for name in names}
    assert declared == {*S3Config.model_fields, *ClientConfig.model_fields} - {"provider"}
    for kind, value in VALUES.items():
        for name in FIELDS[kind]:
            store = StateStore(warehouse="s3://lake/w", storage={**KEYS, name: value})
            assert store.place.objects("_state").signed("DELETE", "a", seconds=1), name
        if kind == "seconds":
            assert store.place.storage_options[name] == "5s", "delta-rs takes no number without its unit"
