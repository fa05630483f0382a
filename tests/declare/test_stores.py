"""How the store of an upstream is declared: what is refused at once, and that secrets are shown nowhere."""

from typing import Any

import dagster as dg
import pytest
from dagster_deltalake import S3Config

from backfill_assets import build_definitions, delta_table, materialized_view
from backfill_assets.declare.fingerprints import fingerprint_of
from backfill_assets.declare.model import DeltaTable, MaterializedView
from backfill_assets.defs.component import TableModel
from backfill_assets.defs.definitions import registry
from backfill_assets.errors import DeclarationError

SECRET = "a-secret"
KEYS = {"provider": "s3", "access_key_id": "an-id", "secret_access_key": SECRET}


def table(name: str = "customers", path: str = "s3://raw/customers", **given: Any) -> DeltaTable:
    return delta_table(name, path=path, primary_key="id", **given)


def view(name: str, *tables: DeltaTable) -> MaterializedView:
    query = " UNION ALL ".join(f"SELECT id FROM {each.name}" for each in tables)
    return materialized_view(name, query=query, upstreams=tables)


def test_a_mapping_and_a_configuration_of_dagster_deltalake_are_one_declaration() -> None:
    declared = table(storage={**KEYS, "allow_http": True, "region": None}).storage
    assert declared == {**KEYS, "allow_http": "true"}
    assert table(storage=S3Config(access_key_id="an-id", secret_access_key=SECRET)).storage == KEYS
    assert table().storage is None


def test_a_variable_of_dagster_is_read_when_it_is_used_like_one_that_is_named() -> None:
    variable: Any = dg.EnvVar("A_SECRET")
    declared = table(storage=S3Config(access_key_id="an-id", secret_access_key=variable)).storage
    assert declared == {**KEYS, "secret_access_key": "env:A_SECRET"}
    assert table(storage={**KEYS, "secret_access_key": variable}).storage == declared


@pytest.mark.parametrize(
    ("path", "storage", "named"),
    [
        ("s3://raw/t", "s3", "expected a mapping, found str"),
        ("s3://raw/t", {"provider": "s3", "secret_access_key": 7}, "'secret_access_key' is of type int, expected text"),
        (
            "s3://raw/t",
            {"secret_access_key": SECRET},
            "expected provider to be one of local, s3, gcs, azure, found none",
        ),
        ("s3://raw/t", {"provider": "tape"}, "expected provider to be one of local, s3, gcs, azure, found tape"),
        ("s3://raw/t", {"provider": "azure"}, "provider 'azure' does not fit the path, which names .* provider 's3'"),
        ("lake/t", KEYS, "provider 's3' does not fit the path, which names a store of provider 'local'"),
        ("gs://raw/t", KEYS, "provider 's3' does not fit the path, which names a store of provider 'gcs'"),
    ],
)
def test_what_cannot_reach_the_table_is_refused_by_name_and_shows_no_value(path: str, storage: Any, named: str) -> None:
    with pytest.raises(DeclarationError, match=f"delta_table 'customers': storage cannot be used: {named}") as found:
        table(path=path, storage=storage)
    assert found.value.facts["argument"] == "storage"
    assert found.value.hint
    assert SECRET not in str(found.value)


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (KEYS, {**KEYS, "secret_access_key": "another"}, "other values of secret_access_key"),
        (KEYS, {**KEYS, "region": "eu-central-1", "access_key_id": "x"}, "other values of access_key_id, region"),
        (KEYS, None, "that one of them has none, and is reached as the warehouse is"),
        (None, {"provider": "s3"}, "that one of them has none, and is reached as the warehouse is"),
    ],
)
def test_one_bucket_is_reached_in_one_way(one: Any, other: Any, found: str) -> None:
    pair = (table("a", "s3://raw/a", storage=one), table("b", "s3a://raw/deep/b", storage=other))
    views = tuple(view(f"over_{each.name}", each) for each in pair)
    for declare in (lambda: view("both", *pair), lambda: registry(views), lambda: registry(pair)):
        with pytest.raises(
            DeclarationError, match="delta_table 'a' and delta_table 'b' are in one store, s3://raw"
        ) as refused:
            declare()
        assert found in refused.value.message
        assert refused.value.facts["argument"] == "storage"
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "path", ["abfss://other@mine.dfs.core.windows.net/b", "abfs://raw@mine.dfs.core.windows.net/b"]
)
def test_one_account_on_azure_is_reached_in_one_way(path: str) -> None:
    account = {"provider": "azure", "account_name": "mine", "account_key": SECRET}
    one = table("a", "abfss://raw@mine.dfs.core.windows.net/a", storage=account)
    assert view("both", one, table("b", path, storage=dict(account)))
    with pytest.raises(DeclarationError, match=r"are in one store, abfss://mine\.dfs\.core\.windows\.net"):
        view("both", one, table("b", path, storage={**account, "account_key": "another"}))
    elsewhere = {**account, "account_name": "another", "account_key": "another"}
    assert view("both", one, table("b", path.replace("mine", "another"), storage=elsewhere))


def test_other_buckets_and_other_folders_have_ways_of_their_own() -> None:
    other = {**KEYS, "secret_access_key": "another"}
    tables = (
        table("a", "s3://raw/a", storage=KEYS),
        table("b", "s3://raw/b", storage=dict(KEYS)),
        table("c", "s3://raw2/c", storage=other),
        table("d", "lake/d", storage={"provider": "local"}),
        table("e", "lake/e"),
        table("f", "gs://raw/f"),
    )
    assert list(registry((view("all", *tables),))) == ["all"]


def test_no_secret_is_shown_by_a_declaration_or_by_what_dagster_is_told() -> None:
    over = view("over", table(storage=KEYS))
    definitions = build_definitions(over)
    graph = definitions.resolve_asset_graph()
    shown = [
        repr(over),
        repr(registry((over,))),
        *(repr(graph.get(key).metadata) for key in graph.get_all_asset_keys()),
    ]
    shown += [str(graph.get(key).description) for key in graph.get_all_asset_keys()]
    shown.append(repr(TableModel(name="customers", path="s3://raw/c", storage=dict(KEYS))))
    assert not [each for each in shown if SECRET in each or "an-id" in each]


def test_how_a_store_is_reached_is_no_part_of_what_a_view_is() -> None:
    assert fingerprint_of(view("over", table(storage=KEYS))) == fingerprint_of(view("over", table()))
    assert table(storage=KEYS) == table(storage=dict(KEYS))
    assert table(storage=KEYS) != table()


def test_yaml_declares_the_same() -> None:
    given: dict[str, Any] = {"provider": "s3", "access_key_id": "env:AN_ID", "allow_http": True}
    declared = TableModel(name="customers", path="s3://raw/customers", primary_key="id", storage=given).declare()
    assert declared == table(storage={**given, "allow_http": "true"})
