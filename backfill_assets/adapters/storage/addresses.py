"""Addresses of folders, which all clients of a store understand alike."""

import re
from pathlib import Path

from backfill_assets.declare.stores import canonical, misnamed
from backfill_assets.errors import EnvironmentSetupError

__all__ = ["address"]

_UNCLEAR = re.compile(r"[#?]|//")
"""What ends the path of a URI for some clients, and is a part of it for others."""


def address(place: str, root: Path) -> str:
    """The address of a URI or a path; a relative path starts at the project's root, and `s3a://` is `s3://`.

    Errors: `EnvironmentSetupError` for a URI that does not name one folder of a store for everybody who reads it.
    """
    path = canonical(place.removeprefix("file://"))
    if "://" not in path:
        return str((root / path).resolve()).rstrip("/")
    uri = path.rstrip("/")
    scheme, _, inside = uri.partition("://")
    if not inside or scheme != scheme.lower() or _UNCLEAR.search(inside):
        raise EnvironmentSetupError(
            f"{place} names no folder that all clients of a store understand alike",
            hint="write scheme://bucket/folder: the scheme in small letters, a bucket, and no #, ? or empty folder in it",
        )
    if misnamed(uri):
        raise EnvironmentSetupError(
            f"{place} does not say by itself where a folder is on Azure, as all clients understand it",
            hint="write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER",
        )
    return uri
