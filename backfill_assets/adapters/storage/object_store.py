"""Small objects below a folder or bucket prefix: read, list, write, and put-if-absent, which delta-rs does not offer.

obstore has the same operations for local disks and for object stores. Each of them is atomic for one object.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = ["ObjectFolder"]

_CLIENT = {"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "timeout", "user_agent"}
"""Options of the HTTP client, which obstore takes apart from those of the store."""

_REQUESTS = 16

_DELTA_ONLY = {"allow_unsafe_rename", "s3_allow_unsafe_rename", "s3_locking_provider", "force_credential_load"}
"""Options that delta-rs reads itself and that no store knows."""


@dataclass(frozen=True, kw_only=True)
class ObjectFolder:
    """A folder's path, or a prefix's URI, with the options that delta-rs takes to reach it. Nothing is made to read it."""

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict)

    def put_if_absent(self, path: str, content: bytes) -> bool:
        """Write an object unless there is one of that name.

        Returns:
            Whether this call wrote it. Of several that write at once, one does. False is not certain: a store's client
            that repeats a request finds what its first try wrote.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError

        try:
            obstore.put(self._store, path, content, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def put(self, path: str, content: bytes) -> None:
        """Write an object, in place of the one of that name."""
        import obstore

        obstore.put(self._store, path, content)

    def get(self, path: str) -> bytes | None:
        """An object's content; None where there is none."""
        import obstore

        if self._is_missing:
            return None
        try:
            return bytes(obstore.get(self._store, path).bytes())
        except FileNotFoundError:
            return None

    def get_all(self, paths: Sequence[str]) -> list[bytes | None]:
        """The contents of objects, in the order of their paths; several requests are under way at once."""
        with ThreadPoolExecutor(_REQUESTS) as requests:
            return list(requests.map(self.get, paths))

    def names(self, prefix: str, *, after: str | None = None) -> list[str]:
        """The paths of all objects below a folder, sorted; only those that sort behind `after`."""
        import obstore

        if self._is_missing:
            return []
        pages = obstore.list(self._store, prefix=prefix, offset=after)
        return sorted(str(listed["path"]) for page in pages for listed in page)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects; those that are gone already are no error."""
        import obstore

        for path in () if self._is_missing else paths:
            try:
                obstore.delete(self._store, path)
            except FileNotFoundError:
                continue

    @property
    def _is_missing(self) -> bool:
        """Whether it is a local folder that nobody has made: to look into it must not make it."""
        return "://" not in self.uri and not Path(self.uri).exists()

    @cached_property
    def _store(self) -> "ObjectStore":
        from obstore.store import LocalStore, from_url

        if "://" not in self.uri:
            return LocalStore(self.uri, mkdir=True)
        given = {name.lower().removeprefix("aws_"): value for name, value in self.storage_options.items()}
        client: Any = {name: value for name, value in given.items() if name in _CLIENT}
        config: Any = {name: value for name, value in given.items() if name not in _CLIENT | _DELTA_ONLY}
        return from_url(self.uri, config=config, client_options=client)
