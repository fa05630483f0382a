"""A mutation, and the outcome of the tests that concern it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Mutation", "copy_of_the_project", "fails"]

ROOT = Path(__file__).resolve().parents[2]
NO_TESTS = 5
LIMIT_SECONDS = 900


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
    """A copy of everything that git tracks, in which all packages are found without being installed."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return folder


def fails(project: Path, tests: Sequence[str], *, full: bool) -> bool | None:
    """Whether those of the tests that the gate has (or those that only the full proof has) find the fault.

    They run with few examples and fast settings, as in the gate. A test that does not end has found it, too.

    Returns:
        None where there are no such tests.
    """
    if full and not any(_has_full(project / each.partition("::")[0]) for each in tests):
        return None
    marks = "full" if full else "not full"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", marks, *tests]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(project)}
    environment.pop("BACKFILL_TEST_FULL", None)
    try:
        done = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return True
    if done.returncode not in {0, 1, NO_TESTS}:
        print(f"pytest could not run {' '.join(tests)}: {done.stdout[-2000:]}{done.stderr[-2000:]}", file=sys.stderr)
        return False
    return None if done.returncode == NO_TESTS else done.returncode == 1


def _has_full(path: Path) -> bool:
    """Whether a file or folder may have tests of the full proof alone: judged by its text, because pytest takes seconds
    to answer."""
    files = path.rglob("test_*.py") if path.is_dir() else [path]
    return any("mark.full" in file.read_text() for file in files)
