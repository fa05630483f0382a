"""The project's root folder, and what environment variables say about the warehouse and the spool."""

import os
from pathlib import Path

from backfill_assets.errors import EnvironmentSetupError

__all__ = ["project_root", "spool_bytes", "warehouse_place"]

_SPOOL_BYTES = 10 * 2**30
_MARKERS = ("workspace.yaml", "dagster.yaml", "pyproject.toml")


def project_root(start: Path) -> Path:
    """The nearest folder at or above `start` that looks like a project's root; the folder of `start` if there is none."""
    folder = start.resolve()
    if folder.is_file():
        folder = folder.parent
    for each in (folder, *folder.parents):
        if any((each / marker).exists() for marker in _MARKERS):
            return each
    return folder


def warehouse_place() -> str:
    """The warehouse that the environment names; a relative path starts at the project's root."""
    return os.environ.get("BACKFILL_WAREHOUSE") or "warehouse"


def spool_bytes() -> int:
    """The maximum size of one view's spool in bytes. Errors: `EnvironmentSetupError`."""
    given = os.environ.get("BACKFILL_SPOOL_BYTES") or str(_SPOOL_BYTES)
    if not (given.isascii() and given.isdigit()):
        raise EnvironmentSetupError(
            f"BACKFILL_SPOOL_BYTES is {given!r}: expected a number of bytes", hint="use digits alone, or leave it unset"
        )
    return int(given)
