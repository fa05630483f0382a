"""The archive of Spark's classes: used where it is, made once, and never left half made."""

import shlex
import sys
from pathlib import Path

import pytest

from backfill_assets.adapters.runtime import class_archive
from backfill_assets.adapters.runtime.class_archive import archive_options, make_class_archive
from backfill_assets.errors import EnvironmentSetupError

WRITES = """
import os, shlex
from backfill_assets.adapters.runtime.class_archive import archive_options
place = shlex.split(archive_options())[0].removeprefix("-XX:ArchiveClassesAtExit=")
open(place, "w").write("".join(["archive", *(name for name in os.environ if name.startswith("SPARK_"))]))
"""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python environment of its own, in a folder with a space in its name."""
    folder = tmp_path / "an environment"
    monkeypatch.setattr(sys, "prefix", str(folder))
    return folder


def left(environment: Path) -> list[str]:
    return [each.suffix for each in environment.rglob("*") if each.is_file() and each.suffix != ".lock"]


def test_without_an_archive_java_gets_no_option(environment: Path) -> None:
    assert archive_options() == ""
    assert not environment.exists()


def test_an_archive_is_made_once_without_the_spark_of_others(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere:15002")
    made = make_class_archive(("-c", WRITES))
    assert made.read_text() == "archive"
    assert make_class_archive(("-c", "raise SystemExit('it is there')")) == made
    assert shlex.split(archive_options())[0] == f"-XX:SharedArchiveFile={made}"
    assert left(environment) == [".jsa"]


@pytest.mark.parametrize(
    ("program", "says"),
    [("raise SystemExit('no Spark')", "no Spark"), ("print('done')", "done")],
    ids=["fails", "none"],
)
def test_a_program_that_makes_none_is_an_error_and_leaves_nothing(environment: Path, program: str, says: str) -> None:
    with pytest.raises(EnvironmentSetupError, match=f"could not be made: {says}"):
        make_class_archive(("-c", program))
    assert left(environment) == []
    assert archive_options() == ""


def test_an_environment_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(sys, "prefix", str(file))
    with pytest.raises(EnvironmentSetupError, match="file/share/backfill-assets: Not a directory"):
        make_class_archive(("-c", WRITES))


@pytest.mark.usefixtures("environment")
def test_a_program_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "_LIMIT_SECONDS", 1)
    with pytest.raises(EnvironmentSetupError, match="it takes more than 1 s"):
        make_class_archive(("-c", "import threading; threading.Event().wait()"))


def test_another_java_has_another_archive_in_its_place(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = make_class_archive(("-c", WRITES))
    assert mine.is_relative_to(environment)
    monkeypatch.setattr(class_archive, "java_home", lambda: "/another")
    assert archive_options() == ""
    assert make_class_archive(("-c", WRITES)) != mine
    assert left(environment) == [".jsa"]


@pytest.mark.usefixtures("environment")
def test_a_part_of_an_archive_is_not_used_and_is_replaced() -> None:
    made = make_class_archive(("-c", WRITES))
    made.write_text("arch")
    assert archive_options() == ""
    assert make_class_archive(("-c", WRITES)).read_text() == "archive"
    assert archive_options() != ""
