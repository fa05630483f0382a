"""Marks of folders on S3: where they are asked for, and what happens if the store refuses to delete one."""

import logging

import pytest

from backfill_assets.adapters.storage.markers import delete_found, delete_markers, rooted_at
from backfill_assets.adapters.storage.object_store import ObjectFolder
from tests.support.refusing_store import refusing

KEYS = {"access_key_id": "an-id", "secret_access_key": "a-secret"}
OWN = {"endpoint": "https://e.example", "region": "us-east-1", "virtual_hosted_style_request": "false"}


@pytest.mark.parametrize(
    ("options", "uri", "path", "address"),
    [
        (OWN, "s3://lake/w/views/a", "f/_temporary/0", "https://e.example/lake/w/views/a/f/_temporary/0"),
        (OWN, "s3://lake/a b/ü", "f", "https://e.example/lake/a%20b/%C3%BC/f"),
        (OWN, "s3://lake/w/views/a", "", "https://e.example/lake/w/views/a"),
        ({**OWN, "virtual_hosted_style_request": "true", "endpoint": "https://lake.e"}, "s3://lake/w", "f", "https://lake.e/w/f"),
        ({"region": "eu-central-1"}, "s3://lake/w", "f", "https://s3.eu-central-1.amazonaws.com/lake/w/f"),
        ({}, "s3://lake/w", "f", "https://s3.us-east-1.amazonaws.com/lake/w/f"),
        ({**OWN, "endpoint": "https://e.example/"}, "s3://lake/w", "f", "https://e.example/lake/w/f"),
    ],
)  # fmt: skip
def test_a_marker_is_the_root_of_a_store_whose_address_is_the_folder(
    options: dict[str, str], uri: str, path: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://of.the.environment")
    root = rooted_at(ObjectFolder(uri=uri, storage_options={**options, **KEYS}), path)
    assert root.storage_options["endpoint"] == address
    signed = root.signed("DELETE", "", seconds=60)
    assert signed.partition("?")[0] == f"{address}/"
    assert "a-secret" not in signed


def test_a_marker_that_a_store_does_not_let_go_stays_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with refusing(403, "AccessDenied") as store, caplog.at_level(logging.WARNING):
        folder = ObjectFolder(uri="s3://lake/w", storage_options={**OWN, **KEYS, "endpoint": store.endpoint})
        assert delete_markers(folder, ["f", "g"]) == []
        assert store.requests() == 2
    assert [each.message for each in caplog.records] == [
        f"s3://lake/w/{name}/: the marker stays: HTTPError: HTTP Error 403: Forbidden" for name in ("f", "g")
    ]


def test_on_azure_a_mark_is_an_object_of_the_folders_name(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[str] = []
    monkeypatch.setattr(ObjectFolder, "delete", lambda _folder, paths: gone.extend(paths))
    folder = ObjectFolder(uri="abfss://lake@mine.dfs.core.windows.net/w")
    assert delete_markers(folder, ["f/_temporary", "f"]) == ["f/_temporary/", "f/"]
    assert gone == ["f/_temporary", "f"]
    gone.clear()
    delete_found(folder, {"f/_temporary": 0, "f/part.parquet": 9}, of="f")
    assert gone == ["f/part.parquet", "f/_temporary", "f"], "a folder after what is in it"
    gone.clear()
    delete_found(folder, {"f/_temporary": 0, "f/part.parquet": 9})
    assert gone == ["f/part.parquet", "f/_temporary"]


def test_elsewhere_an_empty_object_that_was_found_may_be_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[str] = []
    monkeypatch.setattr(ObjectFolder, "delete", lambda _folder, paths: gone.extend(paths))
    delete_found(ObjectFolder(uri="gs://bucket/folder"), {"f/empty": 0, "f/part.parquet": 9}, of="f")
    assert gone == ["f/empty", "f/part.parquet"]


def test_in_other_stores_nothing_is_deleted() -> None:
    assert delete_markers(ObjectFolder(uri="/folder"), ["f"]) == []
    assert delete_markers(ObjectFolder(uri="gs://bucket/folder"), ["f"]) == []
