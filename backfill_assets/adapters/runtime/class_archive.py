"""An archive of the classes that Spark loads, which saves seconds of each start.

Before it has computed its first rows, Spark loads and verifies 20,000 classes. Java can keep them in an archive (application
class data sharing, JEP 350), and then maps that into memory. An archive belongs to one Java runtime and one installation of
Spark. Java checks this, too, and ignores an archive that does not match.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from filelock import FileLock

from backfill_assets.adapters.runtime.java import java_home
from backfill_assets.errors import EnvironmentSetupError

__all__ = ["archive_options", "class_archive", "make_class_archive"]

_VARIABLE = "BACKFILL_CLASS_ARCHIVE"
"""Where Spark is to write the archive when it ends, in the environment of the program that makes it."""
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""What Java says of an archive that it ignores would stand between the lines of a program."""
_IN_A_HURRY = "-XX:TieredStopAtLevel=1"
"""The process that makes the archive ends before optimized code would pay."""
_LIMIT_SECONDS = 300
_SHOWN = 2000


def archive_options() -> str:
    """Options of Java for a process with Spark: those that use the archive, if there is one; or make it."""
    if draft := os.environ.get(_VARIABLE):
        return f'"-XX:ArchiveClassesAtExit={draft}" {_IN_A_HURRY} {_QUIET}'
    archive = class_archive()
    return "" if archive is None else f'"-XX:SharedArchiveFile={archive}" {_QUIET}'


def class_archive() -> Path | None:
    """The archive for this Java runtime and this Spark, if it is there, and whole: Java would crash with a part of it."""
    folder, name = _place()
    whole = (each for each in folder.glob(f"{name}-*.jsa") if each.name == _named(name, each.stat().st_size))
    return next(whole, None)


def _named(name: str, size: int) -> str:
    return f"{name}-{size}.jsa"


def _place() -> tuple[Path, str]:
    """The archive's folder, in the Python environment that has Spark, and the beginning of its name."""
    home = Path(java_home())
    release = home / "release"
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    installed = (Path(spec.origin).parent / "jars").stat().st_mtime_ns
    parts = [str(home), release.read_text() if release.exists() else "", str(installed)]
    named = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return Path(sys.prefix) / "share" / "backfill-assets", f"classes-{named}"


def make_class_archive(program: Sequence[str]) -> Path:
    """Make the archive of the classes that a Python program loads with Spark, unless it is there.

    Args:
        program: Arguments of Python. It has to wait until the Java process that it started has ended.

    Returns:
        The archive's place. It is put there when it is complete, so processes that start meanwhile do without.

    Raises:
        EnvironmentSetupError: The program failed, or the place cannot be written.
    """
    folder, name = _place()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / "classes.lock"):
            return class_archive() or _made(program, folder, name)
    except OSError as error:
        raise _not_made(f"{folder}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise _not_made(f"it takes more than {_LIMIT_SECONDS} s") from None


def _made(program: Sequence[str], folder: Path, name: str) -> Path:
    with tempfile.TemporaryDirectory(dir=folder, prefix="new-") as inside:
        draft = Path(inside) / "classes"
        done = subprocess.run(
            [sys.executable, *program],
            env=_environment(draft),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_LIMIT_SECONDS,
            check=False,
        )
        if done.returncode != 0 or not draft.exists():
            raise _not_made(done.stdout[-_SHOWN:].strip())
        for old in folder.glob("classes-*.jsa"):  # of another Java, or of a Spark that was there before
            old.unlink()
        return draft.replace(folder / _named(name, draft.stat().st_size))


def _environment(draft: Path) -> dict[str, str]:
    """The caller's environment without a Spark of others, and with the archive's place."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return {**kept, _VARIABLE: str(draft)}


def _not_made(why: str) -> EnvironmentSetupError:
    return EnvironmentSetupError(
        f"the archive of Spark's classes could not be made: {why}",
        hint="everything works without it, and Spark starts more slowly",
    )
