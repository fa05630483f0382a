"""A mutation, and the outcome of the tests that concern it."""

import compileall
import multiprocessing
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Mutation", "copy_of_the_project", "fails"]

ROOT = Path(__file__).resolve().parents[2]
NO_TESTS = 5
LIMIT_SECONDS = 900
FORKED = Path(__file__).with_name("forked.py")
LIBRARIES = (
    "confluent_kafka",
    "dagster",
    "deltalake",
    "hypothesis",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pyspark.sql.connect.session",
    "pytest",
    "sqlglot.optimizer.qualify",
)
"""What the tests import, and no mutation changes: importing it takes longer than most tests."""


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A fault in the product.

    Attributes:
        name: What goes wrong, in a few words.
        file: The module, relative to the project's root.
        old: Text that stands in it exactly once.
        new: What stands there instead.
        tests: Arguments of pytest that select the tests which concern it, of the gate and of the full proof alike.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, text: str) -> str:
        """The module with the fault in it; `ValueError` if the text to be replaced does not occur exactly once."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} holds {self.old!r} {text.count(self.old)} times, expected once")
        return text.replace(self.old, self.new)


def copy_of_the_project(folder: Path) -> Path:
    """A copy of everything that git tracks, in which all packages are found without being installed, and are compiled."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    compileall.compile_dir(folder, quiet=2)
    return folder


def fails(project: Path, tests: Sequence[str], *, full: bool, servers: bool = True) -> bool | None:
    """Whether those of the tests that the gate has (or those that only the full proof has) find the fault.

    They run with few examples and fast settings, as in the gate, and with the servers of other runs, unless a fault may be
    in how `servers` are started. A test that does not end has found it, too.

    Returns:
        None where there are no such tests.
    """
    if full and not any(_has_full(project / each.partition("::")[0]) for each in tests):
        return None
    with tempfile.NamedTemporaryFile(mode="r") as said:
        code = _exit_code(project, ["-m", "full" if full else "not full", *tests], said.name, servers=servers)
        if code not in {None, 0, 1, NO_TESTS}:
            print(f"pytest could not run {' '.join(tests)}: {said.read()[-4000:]}", file=sys.stderr)
            return False
    return None if code == NO_TESTS else code != 0


def _exit_code(project: Path, arguments: Sequence[str], said: str, *, servers: bool) -> int | None:
    """How pytest ends in a process that is forked from one which has loaded the libraries; None if it does not end."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(list(LIBRARIES))
    given = {
        "PROJECT": str(project),
        "ARGUMENTS": list(arguments),
        "SAID": said,
        "MAIN": os.getpid(),
        "SERVERS": servers,
    }
    # Nothing of this package may be loaded there but what is in the copy.
    process = processes.Process(target=runpy.run_path, args=(str(FORKED), given))
    process.start()
    process.join(LIMIT_SECONDS)
    if process.exitcode is None:
        process.kill()
        process.join()
        return None
    return process.exitcode


def _has_full(path: Path) -> bool:
    """Whether a file or folder may have tests of the full proof alone: judged by its text, because pytest takes seconds
    to answer."""
    files = path.rglob("test_*.py") if path.is_dir() else [path]
    return any(marked in file.read_text() for file in files for marked in ("mark.full", "one_in_gate"))
