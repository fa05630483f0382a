"""The folder for downloads and generated launchers: one per user, outside every project."""

import os
from pathlib import Path

import platformdirs

from backfill_assets.errors import EnvironmentSetupError

__all__ = ["cache_folder"]


def cache_folder(name: str) -> Path:
    """The folder `name` inside the cache, created if it is missing.

    `BACKFILL_CACHE` names the cache; otherwise it is where the platform keeps a user's caches.
    """
    named = os.environ.get("BACKFILL_CACHE")
    root = Path(named).expanduser().resolve() if named else platformdirs.user_cache_path("backfill-assets")
    folder = root / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentSetupError(
            f"The cache folder {folder} could not be created: {error.strerror}.",
            hint="Set BACKFILL_CACHE to a folder that this user can write in.",
        ) from error
    return folder
