"""The local S3 server, without starting it: its keys are for its owner alone, and stay; its data may lie in any folder."""

import re
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from backfill_assets.adapters.local import s3_server
from backfill_assets.adapters.local.s3_server import s3_environment, start_s3_server


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(s3_server, "s3_server_jars", lambda: ())
    monkeypatch.setattr(s3_server, "start", lambda *_, **__: None)
    return tmp_path / "läger 雪"


def started(folder: Path, port: int) -> Mapping[str, str]:
    start_s3_server(folder, port=port)
    return s3_environment(folder, port=port)


def test_what_holds_its_keys_is_readable_for_the_owner_alone(folder: Path) -> None:
    key = started(folder, 1)["AWS_SECRET_ACCESS_KEY"]
    holding = [each for each in folder.rglob("*") if each.is_file() and key in each.read_text()]
    assert {each.name for each in holding} == {"key", "environment", "s3proxy.properties"}
    assert {stat.S_IMODE(each.stat().st_mode) for each in holding} == {0o600}


def test_its_keys_stay_when_it_is_started_again(folder: Path) -> None:
    first, again = started(folder, 1), started(folder, 2)
    assert first["AWS_SECRET_ACCESS_KEY"] == again["AWS_SECRET_ACCESS_KEY"]
    assert (first["AWS_ENDPOINT_URL"], again["AWS_ENDPOINT_URL"]) == ("http://127.0.0.1:1", "http://127.0.0.1:2")


def test_a_folder_is_written_as_a_file_in_latin_1_can_hold_it(folder: Path) -> None:
    started(folder, 1)
    (line,) = re.findall("(?m)^jclouds.filesystem.basedir=(.*)$", (folder / "s3proxy.properties").read_text())
    assert line.isascii()
    assert line.encode().decode("unicode_escape") == str((folder / "data").resolve())
