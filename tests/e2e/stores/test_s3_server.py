"""The S3 server of `backfill up --s3`: found by its variables, closed to others, and kept over `down`."""

import json
import os
import stat
from pathlib import Path

import psutil
import pytest

from backfill_assets.adapters.local.servers import down, endpoints, s3_variables, up
from backfill_assets.adapters.state.state_store import StateStore
from backfill_assets.adapters.storage.put_if_absent import MARKER, check_store
from tests.support.commands import run

pytestmark = [pytest.mark.e2e, pytest.mark.full]


def test_an_s3_server_is_this_shells_warehouse_and_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "ä b"  # a path that no properties file can hold as it is
    root.mkdir()
    try:
        found = up(root, kafka=False, spark=False, s3=True)
        text = (root / ".backfill" / "s3" / "environment").read_text()
        variables = dict(line.split("=", 1) for line in text.splitlines())
        assert variables == {**s3_variables(root), "BACKFILL_WAREHOUSE": "s3://lake/warehouse"}
        assert variables["AWS_ENDPOINT_URL"] == found.s3_endpoint
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        place = StateStore(warehouse=variables["BACKFILL_WAREHOUSE"]).place
        check_store(place)
        assert_closed(root, variables["AWS_SECRET_ACCESS_KEY"])
        assert down(root) == ("s3",)
        assert endpoints(root) is None
        assert up(root, kafka=False, spark=False, s3=True).s3_endpoint == found.s3_endpoint
        assert place.objects("_state").names("") == [MARKER.removeprefix("_state/")]
    finally:
        down(root)


def assert_closed(root: Path, secret: str) -> None:
    """Other users neither read the files nor see the key among the arguments of processes."""
    assert stat.S_IMODE((root / ".backfill").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / ".backfill" / "s3" / "environment").stat().st_mode) == 0o600
    arguments = [each.info["cmdline"] or [] for each in psutil.process_iter(["cmdline"])]
    assert not [line for line in arguments if any(secret in word for word in line)]


def test_the_spark_server_has_the_connector_beside_a_local_warehouse_if_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "workspace.yaml").touch()
    try:
        for asked in (["--s3-tables"], []):
            done = run(["up", "--json", "--no-kafka", *asked], tmp_path, dict(os.environ))
            assert done.code == 0, done.err
            entries = json.loads((tmp_path / ".backfill" / "endpoints.json").read_text())["processes"]
            line = " ".join(psutil.Process(entries["spark"]["pid"]).cmdline())
            assert ("hadoop-aws" in line) is bool(asked)
            down(tmp_path)
    finally:
        down(tmp_path)
