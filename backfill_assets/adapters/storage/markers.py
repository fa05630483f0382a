"""Deletes the objects with which Spark's connectors mark folders: empty ones, named as the folder, on S3 with a slash.

delta-rs and obstore cannot name an object with a slash, as they drop it. But of a store whose own address is the folder it is
the root. So obstore signs the request that deletes it, with the keys that it finds as always.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from urllib.parse import quote
from urllib.request import Request, urlopen

from obstore.exceptions import BaseError

from backfill_assets.adapters.storage.object_store import ObjectFolder
from backfill_assets.adapters.storage.s3 import DEFAULT_REGION, ENDPOINTS, s3_access
from backfill_assets.adapters.storage.store_errors import said
from backfill_assets.declare.stores import bucket_of, provider_of
from backfill_assets.errors import EnvironmentSetupError

__all__ = ["delete_found", "delete_markers", "rooted_at"]

_SECONDS = 30.0

_log = logging.getLogger(__name__)


def delete_markers(folder: ObjectFolder, paths: Iterable[str]) -> list[str]:
    """Delete the markers of folders; it is no error if there are none. One that cannot be deleted stays, with a warning.

    Args:
        folder: A folder on S3 or Azure; in any other store nothing is deleted, whatever its connector leaves.
        paths: The names of folders in it, without their slash.

    Returns:
        The names of those that are gone, with their slash.
    """
    delete = {"s3": _delete_root, "azure": _delete_object}.get(provider_of(folder.uri))
    if delete is None:
        return []
    return [f"{path}/" for path in paths if _is_deleted(delete, folder, path)]


def delete_found(folder: ObjectFolder, found: Mapping[str, int], of: str = "") -> None:
    """Delete objects that were found, with their sizes, and the markers among them; on Azure, which does not list it with
    what is in a folder, also the marker `of` the folder."""
    empty = [path for path, size in found.items() if not size]
    is_azure = provider_of(folder.uri) == "azure"
    folder.delete([path for path, size in found.items() if size or not is_azure])
    delete_markers(folder, [*empty, of] if is_azure and of else empty)


def rooted_at(folder: ObjectFolder, path: str) -> ObjectFolder:
    """A store whose root, the object without a name, is the marker of a folder on S3."""
    bucket, prefix = bucket_of(folder.uri), folder.uri.partition("://")[2].partition("/")[2]
    access = s3_access(folder.storage_options, {})
    host = access.endpoint or f"https://s3.{access.region or DEFAULT_REGION}.amazonaws.com"
    place = host if access.endpoint and not access.path_style else f"{host}/{bucket}"
    options = {
        **folder.storage_options,
        **dict.fromkeys(ENDPOINTS, f"{place}/{quote(f'{prefix}/{path}'.strip('/'))}"),
        "virtual_hosted_style_request": "true",
    }
    return replace(folder, uri=f"s3://{bucket}", storage_options=options)


def _delete_root(folder: ObjectFolder, path: str) -> None:
    url = rooted_at(folder, path).signed("DELETE", "", seconds=_SECONDS)
    urlopen(Request(url, method="DELETE"), timeout=_SECONDS).close()


def _delete_object(folder: ObjectFolder, path: str) -> None:
    folder.delete([path])


def _is_deleted(delete: Callable[[ObjectFolder, str], None], folder: ObjectFolder, path: str) -> bool:
    try:
        delete(folder, path)
    except (BaseError, EnvironmentSetupError, OSError) as error:
        _log.warning("%s/%s/: the marker stays: %s", folder.uri, path, said(error, folder.storage_options))
        return False
    return True
