"""Files that only their owner can read, from their first byte on."""

import os
import tempfile
from pathlib import Path

from backfill_assets.errors import EnvironmentSetupError

__all__ = ["private_folder", "write_private"]


def private_folder(folder: Path) -> None:
    """Create a folder that only its owner can enter; an existing one is closed to others.

    Errors: `EnvironmentSetupError` if it belongs to somebody else.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        folder.chmod(0o700)
    except PermissionError as error:
        raise EnvironmentSetupError(
            f"{folder} must be closed to other users, but belongs to one of them",
            hint="remove it, or run this command as its owner",
        ) from error


def write_private(path: Path, text: str) -> None:
    """Replace a file as a whole, because readers take no lock."""
    number, draft = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")  # created with mode 0600
    with os.fdopen(number, "w") as stream:
        stream.write(text)
    Path(draft).replace(path)
