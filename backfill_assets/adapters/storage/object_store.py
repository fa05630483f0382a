"""Small objects in a folder or bucket prefix: read, list, write, and put-if-absent, which delta-rs does not have.

obstore has the same operations for local disks and for object stores. Each of them is atomic for one object.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = ["ObjectFolder"]

_CLIENT = {"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "timeout", "user_agent"}
"""Options of the HTTP client, which obstore takes separately from those of the store."""

_REQUESTS = 16

_DELTA_ONLY = {"allow_unsafe_rename", "s3_allow_unsafe_rename", "s3_locking_provider", "force_credential_load"}
"""Options that only delta-rs itself reads, and no store knows."""


@dataclass(frozen=True, kw_only=True)
class ObjectFolder:
    """A folder's path, or a prefix's URI, with the options of delta-rs to reach it. Reading does not create the folder."""

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)  # they may hold secrets
    seconds: float | None = None
    """For how long a request that fails is repeated; by default as obstore has it."""

    def put_if_absent(self, path: str, content: bytes) -> bool:
        """Write an object unless one with that name exists.

        Returns:
            Whether this call wrote it. Only one of several concurrent calls does. False is not certain: a store's client
            that repeats a request finds what its first attempt wrote.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError

        try:
            obstore.put(self._store, path, content, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def put(self, path: str, content: bytes) -> None:
        """Write an object, replacing one with that name."""
        import obstore

        obstore.put(self._store, path, content)

    def get(self, path: str) -> bytes | None:
        """An object's content; None if it does not exist."""
        import obstore

        if self._is_missing:
            return None
        try:
            return bytes(obstore.get(self._store, path).bytes())
        except FileNotFoundError:
            return None

    def get_all(self, paths: Sequence[str]) -> list[bytes | None]:
        """The contents of objects, in the order of their paths; several requests run at the same time."""
        with ThreadPoolExecutor(_REQUESTS) as requests:
            return list(requests.map(self.get, paths))

    def names(self, prefix: str, *, after: str | None = None) -> list[str]:
        """The paths of all objects in a folder, sorted; only those after `after`."""
        import obstore

        if self._is_missing:
            return []
        pages = obstore.list(self._store, prefix=prefix, offset=after)
        return sorted(str(listed["path"]) for page in pages for listed in page)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects; it is no error if some are already gone."""
        import obstore

        for path in () if self._is_missing else paths:
            try:
                obstore.delete(self._store, path)
            except FileNotFoundError:
                continue

    @property
    def _is_missing(self) -> bool:
        """Whether it is a local folder that does not exist; reading must not create it."""
        return "://" not in self.uri and not Path(self.uri).exists()

    @cached_property
    def _store(self) -> "ObjectStore":
        from obstore.store import LocalStore, from_url

        if "://" not in self.uri:
            return LocalStore(self.uri, mkdir=True)
        given = {name.lower().removeprefix("aws_"): value for name, value in self.storage_options.items()}
        client: Any = {name: value for name, value in given.items() if name in _CLIENT}
        config: Any = {name: value for name, value in given.items() if name not in _CLIENT | _DELTA_ONLY}
        retry: Any = {"retry_config": {"retry_timeout": timedelta(seconds=self.seconds)}} if self.seconds else {}
        return from_url(self.uri, config=config, client_options=client, **retry)
