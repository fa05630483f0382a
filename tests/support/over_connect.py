"""Calls a function in a process of its own that uses a Spark Connect server: a process can use either that, or a
session."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["over_connect"]

LIMIT = 500


def over_connect(remote: str, function: Callable[..., object], *arguments: object) -> Any:
    """The result (as JSON) of a function of a module for these string arguments; without a server it may find another one, or
    start a Spark."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, function.__module__, function.__name__, *map(str, arguments)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "SPARK_REMOTE": remote},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    module, name, *given = sys.argv[1:]
    sys.stdout.write(json.dumps(getattr(importlib.import_module(module), name)(*given)) + "\n")
    sys.stdout.flush()
    os._exit(0)  # only the answer counts, not what threads of libraries do when the interpreter ends
