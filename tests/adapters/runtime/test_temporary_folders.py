"""Temporary folders are removed with their owners, and those of killed processes by the next process."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from backfill_assets.adapters.runtime import temporary_folders
from backfill_assets.adapters.runtime.temporary_folders import temporary_folder

PROGRAM = """
import sys
from backfill_assets.adapters.runtime.temporary_folders import temporary_folder
class Owner: pass
owner = Owner()
print(temporary_folder(owner), flush=True)
sys.stdin.read()
"""


class Owner:
    pass


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def other(place: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process, and its folder."""
    pipe = subprocess.PIPE
    environment = {**os.environ, "TMPDIR": str(place)}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def made_old(folder: Path) -> None:
    os.utime(folder.parent, (0, 0))


def test_a_folder_is_removed_with_its_owner() -> None:
    owner = Owner()
    folder = temporary_folder(owner)
    (folder / "file").write_text("some")
    del owner
    assert not folder.exists()


def test_a_process_that_is_forked_leaves_it() -> None:
    owner = Owner()
    folder = temporary_folder(owner)
    if (child := os.fork()) == 0:
        del owner
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert folder.is_dir()


def test_folders_of_a_killed_process_are_removed(other: tuple[subprocess.Popen[str], Path]) -> None:
    process, folder = other
    assert folder.is_dir()
    process.send_signal(signal.SIGKILL)
    process.wait()
    made_old(folder)
    temporary_folder(Owner())
    assert not folder.parent.exists()


def test_those_of_a_living_process_stay(other: tuple[subprocess.Popen[str], Path]) -> None:
    _, folder = other
    made_old(folder)
    temporary_folder(Owner())
    assert folder.is_dir()


def test_what_may_not_be_locked_yet_stays(place: Path) -> None:
    fresh, strange = place / f"{temporary_folders._PREFIX}1", place / f"{temporary_folders._PREFIX}2"
    for folder in (fresh, strange):
        folder.mkdir()
    (fresh / "lock").touch()
    os.utime(strange, (0, 0))
    temporary_folder(Owner())
    assert fresh.is_dir()
    assert strange.is_dir(), "it has no lock, so it is not known whose it is"


def test_a_process_that_ends_leaves_nothing(other: tuple[subprocess.Popen[str], Path]) -> None:
    process, folder = other
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait() == 0
    assert not folder.parent.exists()
