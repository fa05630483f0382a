"""Makes `.venv` with everything the project needs; `make setup` runs it, and it does nothing if all is there. With
`--only-packages` it leaves out what only makes Spark start sooner.

Standard library only, and readable by any Python 3, because its first task is to say that a Python is too old.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

__all__ = ["main"]

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "setup.done"
ARCHIVED = VENV / "archive.done"
ONLY_PACKAGES = "--only-packages"
LOCK = ROOT / "requirements.lock"
JAVA_LOCK = ROOT / "requirements-java.lock"
UV_LOCK = ROOT / "requirements-uv.lock"
JARS = ROOT / "backfill_assets" / "adapters" / "runtime" / "ivy.xml"
OLDEST_PYTHON = (3, 11)
OTHER_PYTHONS = ("python3", "python3.14", "python3.13", "python3.12", "python3.11")
MIN_MEMORY_GIB = 3.0
NO_JAVA = 3
FIND_JAVA = f"""
import sys
from backfill_assets.errors import EnvironmentSetupError
from backfill_assets.adapters.runtime.java import java_command
try:
    java_command()
except EnvironmentSetupError:
    sys.exit({NO_JAVA})
"""
FETCH_JARS = "from backfill_assets.adapters.runtime.jars import spark_jars; spark_jars()"
ARCHIVE_CLASSES = """
from backfill_assets.app.warm_up import archive_classes
from backfill_assets.errors import EnvironmentSetupError
try:
    archive_classes()
except EnvironmentSetupError as error:
    raise SystemExit(str(error))
"""


def main() -> int:
    """Set up, or say in a sentence what to do; returns the exit code."""
    if not usable_here():
        return run_with_another_python()
    free = available_memory_gib()
    if free is not None and free < MIN_MEMORY_GIB:
        return refuse(
            f"Only {free:.1f} GiB of memory are available and Spark with a broker needs {MIN_MEMORY_GIB:.0f}: "
            "close other programs, or give this machine or container more memory."
        )
    steps = {STAMP: install} if ONLY_PACKAGES in sys.argv else {STAMP: install, ARCHIVED: archive}
    for stamp, work in steps.items():
        if not is_done(stamp):
            complaint = attempt(work)
            if complaint:
                return refuse(complaint)
            stamp.write_text(fingerprint())
    return 0


def is_done(stamp: Path) -> bool:
    return stamp.is_file() and stamp.read_text() == fingerprint()


def attempt(work: "Callable[[], None]") -> str:
    """Do a part of it; returns what went wrong and what to do, or nothing."""
    try:
        work()
    except subprocess.CalledProcessError as error:
        command = " ".join(error.cmd)
        return f"Setup did not finish: '{command}' failed, as the lines above say; run the command again."
    except OSError as error:
        return f"Setup did not finish ({error}); run the command again."
    except KeyboardInterrupt:
        return "Setup was interrupted; run the command again."
    return ""


def usable_here() -> bool:
    """Whether this Python is new enough and can make virtual environments (some systems package that apart)."""
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        return False
    return sys.version_info >= OLDEST_PYTHON


def run_with_another_python() -> int:
    """Run this script with the first other Python on PATH that will do."""
    test = f"import sys, venv, ensurepip; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    for name in OTHER_PYTHONS:
        python = shutil.which(name)
        if python and subprocess.call([python, "-c", test], stderr=subprocess.DEVNULL) == 0:
            return subprocess.call([python, __file__])
    here = ".".join(str(part) for part in sys.version_info[:2])
    if sys.version_info < OLDEST_PYTHON:
        return refuse(f"Python 3.11 or newer is needed and {here} was found: install one and put it on PATH.")
    return refuse(
        f"Python {here} has no 'ensurepip' module, so it cannot make a virtual environment: "
        f"install it (on Debian and Ubuntu: apt-get install python{here}-venv)."
    )


def available_memory_gib() -> "float | None":
    """What can still be allocated on this machine and in this container; None where that is not known."""
    known = [amount for amount in (machine_memory(), container_memory()) if amount is not None]
    return min(known) / 2**30 if known else None


def machine_memory() -> "int | None":
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def container_memory() -> "int | None":
    """The limit of the control group less what is in use; page cache that can be dropped is not in use."""
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        fields = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None  # no limit ("max"), another version of control groups, or none at all
    return limit - used + int(fields.get("inactive_file", 0))


def fingerprint() -> str:
    """Changes with whatever `.venv` depends on, its own place included, since a moved one does not work."""
    parts = [each.read_bytes() for each in (LOCK, JAVA_LOCK, UV_LOCK)] + [(ROOT / "pyproject.toml").read_bytes()]
    parts += [
        (ROOT / "backfill_assets" / "adapters" / "runtime" / "ivy.xml").read_bytes(),
        sys.version.encode(),
        str(VENV).encode(),
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def install() -> None:
    """Every step can be repeated, so a broken one is mended by running all of them again."""
    STAMP.unlink(missing_ok=True)
    if not fits(VENV):
        step("Making .venv")
        # `symlinks` as the venv command does it: a copied interpreter cannot find its library on some builds.
        venv.create(VENV, clear=True, with_pip=True, symlinks=os.name != "nt")
    pip = (python_of(VENV), "-m", "pip", "--disable-pip-version-check", "install")
    step("Installing the pinned packages (the first time this downloads about 0.7 GB)")
    run(*pip, "--quiet", "--require-hashes", "-r", str(UV_LOCK))
    install_packages(pip)
    run(*pip, "--quiet", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    if subprocess.call([python_of(VENV), "-c", FIND_JAVA]) == NO_JAVA:
        step("No Java 17 or newer was found: installing one into .venv")
        run(*pip, "--require-hashes", "-r", str(JAVA_LOCK))
    step("Fetching the jars of Spark and Kafka")
    run(python_of(VENV), "-c", FETCH_JARS)


def archive() -> None:
    """Make what saves time; all works without it."""
    step("Archiving Spark's classes, which saves seconds of each start")
    if subprocess.call([python_of(VENV), "-c", ARCHIVE_CLASSES], cwd=ROOT, env={**os.environ, "TZ": "UTC"}) != 0:
        step("Going on without the archive.")
    step("Ready.")


def install_packages(pip: "tuple[str, ...]") -> None:
    """By uv, a second where all is in its cache and else half of pip's time; by pip where uv cannot reach an index, as it
    does not read pip's configuration."""
    pinned = ("--require-hashes", "-r", str(LOCK))
    uv = (str(VENV / "bin" / "uv"), "pip", "install", "--python", python_of(VENV))
    for attempt in ((*uv, "--quiet", "--offline", *pinned), (*uv, *pinned)):
        if subprocess.call(attempt, cwd=ROOT, stderr=subprocess.DEVNULL if "--offline" in attempt else None) == 0:
            return
    run(*pip, *pinned)


def fits(folder: Path) -> bool:
    """Whether the virtual environment there works and is of this Python."""
    test = "import sys, pip; sys.exit(sys.version != sys.argv[1])"
    python = python_of(folder)
    return os.path.exists(python) and subprocess.call([python, "-c", test, sys.version]) == 0  # noqa: PTH110


def python_of(folder: Path) -> str:
    return str(folder / "bin" / "python")


def run(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


def step(text: str) -> None:
    print(f"==> {text}", flush=True)


def refuse(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
