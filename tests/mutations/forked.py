"""Runs pytest on a copy of the project, in a process that has loaded no module of the project yet.

`mutation.fails` gives it, as globals, the copy's folder (`PROJECT`), pytest's `ARGUMENTS` and a file for its output (`SAID`).
"""

import os
import sys

_given = globals()
with open(_given["SAID"], "w") as _said:  # noqa: PTH123 # pathlib may be loaded, but need not be
    os.dup2(_said.fileno(), 1)
    os.dup2(_said.fileno(), 2)
os.chdir(_given["PROJECT"])
os.environ["PYTHONPATH"] = sys.path[0] = _given["PROJECT"]
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
os.environ.pop("BACKFILL_TEST_FULL", None)
sys.dont_write_bytecode = True

import pytest  # noqa: E402

sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *_given["ARGUMENTS"]]))
