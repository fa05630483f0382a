"""Temporary folders of this process. Those of processes that were killed are removed by the next one."""

import atexit
import fcntl
import os
import shutil
import tempfile
import time
import weakref
from functools import cache
from pathlib import Path

__all__ = ["temporary_folder"]

_PREFIX = "backfill-process-"
_LOCK = "lock"
_FRESH = 3_600.0
"""Seconds for which a folder is left alone, as its process may not have locked it yet."""


def temporary_folder(owner: object) -> Path:
    """A new folder that is removed with its owner, or when the process ends."""
    folder = Path(tempfile.mkdtemp(dir=_of_process(tempfile.gettempdir(), os.getpid())))
    weakref.finalize(owner, _remove, folder, os.getpid())
    return folder


def _remove(folder: Path, process: int) -> None:
    """Remove a folder of a process, if this is the process: one that was forked has the same objects."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _of_process(place: str, _process: int) -> Path:
    """The folder of this process, which is locked as long as it lives."""
    _sweep(Path(place))
    folder = Path(tempfile.mkdtemp(dir=place, prefix=_PREFIX))
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    atexit.register(_remove, folder, os.getpid())
    return folder


def _sweep(place: Path) -> None:
    """Remove folders whose processes are gone."""
    for folder in place.glob(f"{_PREFIX}*"):
        try:
            is_fresh = time.time() - folder.stat().st_mtime < _FRESH
            lock = None if is_fresh else os.open(folder / _LOCK, os.O_RDWR)
        except OSError:  # of somebody else, or just removed
            continue
        if lock is not None:
            _remove_unlocked(folder, lock)


def _remove_unlocked(folder: Path, lock: int) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
