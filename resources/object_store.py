"""Put-if-absent: the one operation on files that delta-rs's Python interface does not have.

obstore has it for local disks and for object stores alike: a name that is taken stays as it is.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = ["put_if_absent"]

_CLIENT = {"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "timeout", "user_agent"}
"""Options of the HTTP client, which obstore takes apart from those of the store."""

_DELTA_ONLY = {"allow_unsafe_rename", "s3_allow_unsafe_rename", "s3_locking_provider", "force_credential_load"}
"""Options that delta-rs reads itself and that no store knows."""


def put_if_absent(uri: str, storage_options: Mapping[str, str], path: str, content: bytes) -> bool:
    """Write a small file below a folder or bucket prefix, unless there is one of that name.

    Args:
        uri: The folder's path, or the prefix's URI.
        storage_options: What delta-rs takes to reach it.
        path: The file, relative to `uri`.
        content: All of the file.

    Returns:
        Whether this call wrote the file. Of several that write at once, one does.
    """
    import obstore
    from obstore.exceptions import AlreadyExistsError

    try:
        obstore.put(_store(uri, storage_options), path, content, mode="create")
    except AlreadyExistsError:
        return False
    return True


def _store(uri: str, storage_options: Mapping[str, str]) -> "ObjectStore":
    from obstore.store import LocalStore, from_url

    if "://" not in uri:
        return LocalStore(uri, mkdir=True)
    given = {name.lower().removeprefix("aws_"): value for name, value in storage_options.items()}
    client: Any = {name: value for name, value in given.items() if name in _CLIENT}
    config: Any = {name: value for name, value in given.items() if name not in _CLIENT | _DELTA_ONLY}
    return from_url(uri, config=config, client_options=client)
