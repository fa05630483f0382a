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

from tests.support.settings import FULL

__all__ = ["Commands", "Done", "start"]

ROOT = Path(__file__).parents[2]
LIMIT = 300
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


class Commands:
    """Runs commands. `close` ends the process from which they are forked."""

    def __init__(self) -> None:
        self._parent: subprocess.Popen[str] | None = None

    def run(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Done:
        """Run a command to its end."""
        return (
            self._from_scratch(arguments, folder, environment) if FULL else self._forked(arguments, folder, environment)
        )

    def close(self) -> None:
        """End the process from which commands are forked."""
        if self._parent is not None:
            self._parent.communicate(timeout=LIMIT)

    def _from_scratch(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Done:
        process = start(arguments, folder, environment)
        try:
            out, err = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
        return Done(out, err, process.returncode)

    def _forked(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Done:
        if self._parent is None:
            command = [sys.executable, "-m", __name__]
            self._parent = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        with tempfile.TemporaryDirectory() as outputs:
            order = {"arguments": [*arguments], "folder": str(folder), "environment": {**environment}, "to": outputs}
            self._parent.stdin.write(json.dumps(order) + "\n")
            self._parent.stdin.flush()
            code = json.loads(self._parent.stdout.readline())
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
