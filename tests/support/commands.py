"""Runs `backfill` in processes of their own, forked from one that has already imported all modules.

Imports take seconds and prove nothing. The parent only imports modules, so the forks inherit no threads and no
connections. The full proof starts each command from scratch, as a user does.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tests.support.forks import Forks
from tests.support.settings import FULL

__all__ = ["Done", "run", "start"]

LIMIT = 300
_FORKS = Forks("-m", "tests.support.commands")
LOADED = (
    "backfill_assets.cli.commands",
    "backfill_assets.defs.definitions",
    "backfill_assets.app.lifecycle",
    "backfill_assets.app.refresh",
    "backfill_assets.app.table_checks",
    "dagster._core.execution.api",
    "deltalake",
    "pyspark.sql.connect.session",
)


@dataclass(frozen=True)
class Done:
    """What a command printed to both outputs, and its exit code."""

    out: str
    err: str
    code: int


def start(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> "subprocess.Popen[str]":
    """Start a command from scratch, in a folder, with exactly this environment."""
    return subprocess.Popen(
        [sys.executable, "-c", "from backfill_assets.cli.commands import main; main()", *arguments],
        cwd=folder,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Done:
    """Run a command to its end."""
    return _from_scratch(arguments, folder, environment) if FULL else _forked(arguments, folder, environment)


def _from_scratch(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Done:
    process = start(arguments, folder, environment)
    try:
        out, err = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    return Done(out, err, process.returncode)


def _forked(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Done:
    with tempfile.TemporaryDirectory() as outputs:
        order = {"arguments": [*arguments], "folder": str(folder), "environment": {**environment}, "to": outputs}
        (code,) = map(json.loads, _FORKS.ask(order))
        out, err = (Path(outputs, name).read_text() for name in ("out", "err"))
    return Done(out, err, code)


def _serve() -> None:
    for module in LOADED:
        importlib.import_module(module)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _become(json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _become(order: Mapping[str, object]) -> NoReturn:
    """Run a command as the request says, and exit like it."""
    os.chdir(str(order["folder"]))
    os.environ.clear()
    os.environ.update(dict(order["environment"]))  # type: ignore[call-overload]
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(Path(str(order["to"]), name), os.O_WRONLY | os.O_CREAT, 0o600), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["backfill", *order["arguments"]]  # type: ignore[misc]
    sys.path[0] = ""  # as with `python -c`: the folder in which the command is run
    from backfill_assets.cli.commands import main

    try:
        main()
        code = 0
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve()
