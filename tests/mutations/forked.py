"""Runs pytest on a copy of the project, in a process that has loaded no module of the project yet.

`mutation.fails` gives it, as globals, the copy's folder (`PROJECT`), pytest's `ARGUMENTS`, a file for its output (`SAID`),
the process that waits for it (`MAIN`), with which it ends, and whether it uses the servers of others (`SERVERS`).
"""

import contextlib
import os
import sys
import threading
import time
import traceback

_given = globals()


def _end_with(main: int) -> None:
    """End this process once another one is gone, which may have been killed."""
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(main, 0)
            time.sleep(1)
    os._exit(3)


threading.Thread(target=_end_with, args=(_given["MAIN"],), daemon=True).start()
with open(_given["SAID"], "w") as _said:  # noqa: PTH123 # pathlib may be loaded, but need not be
    os.dup2(_said.fileno(), 1)
    os.dup2(_said.fileno(), 2)
os.chdir(_given["PROJECT"])
os.environ["PYTHONPATH"] = sys.path[0] = _given["PROJECT"]
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
os.environ.pop("BACKFILL_TEST_FULL", None)
if not _given["SERVERS"]:
    os.environ.pop("BACKFILL_TEST_SERVERS", None)
sys.dont_write_bytecode = True

for _name in [*sys.modules]:
    if _name.partition(".")[0] in {"backfill_assets", "resources", "scripts", "tests"}:
        del sys.modules[_name]  # a module of the sound project

import pytest  # noqa: E402

_CRASHED = 3  # pytest's own code for an error inside it; 1 would mean that a test has failed
try:
    # Plugins that are loaded already are not rewritten, which pytest warns of.
    _quiet = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
    _code = int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *_quiet, *_given["ARGUMENTS"]]))
except BaseException:
    traceback.print_exc()
    _code = _CRASHED
sys.exit(_code)
