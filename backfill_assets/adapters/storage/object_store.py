"""Small objects in a folder or bucket prefix: read, list, write, and put-if-absent, which delta-rs does not have.

obstore has the same operations for local disks and for object stores. Each of them is atomic for one object. What a store
refuses is an `EnvironmentSetupError`; but a put with a condition raises the client's error, as its outcome is unknown: its
caller looks again. No error shows keys.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from backfill_assets.adapters.storage.s3 import ENDPOINTS
from backfill_assets.adapters.storage.store_errors import cannot_be_read, cannot_be_written, masking
from backfill_assets.declare.stores import provider_of

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutResult
    from obstore.store import ObjectStore

__all__ = ["ObjectFolder", "Stored", "tag_of"]

_CLIENT = {
    "allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type", "http1_only",
    "http2_keep_alive_interval", "http2_keep_alive_timeout", "http2_keep_alive_while_idle", "http2_only", "pool_idle_timeout",
    "pool_max_idle_per_host", "proxy_url", "timeout", "user_agent",
}  # fmt: skip
"""Options of the HTTP client, which obstore takes separately from those of the store."""

_REQUESTS = 16
_CUT_ANSWERS = 4
"""After so many answers that were cut, an error is raised with the next one."""

T = TypeVar("T")

_DELTA_ONLY = {
    "allow_unsafe_rename", "checksum", "force_credential_load", "s3_allow_unsafe_rename", "s3_locking_provider",
}  # fmt: skip
"""Options that only delta-rs itself reads, and no store knows."""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What a store says of an object: its size, when it was written, in microseconds since 1970, and the tag that it gave it,
    which another object in its place does not have."""

    size: int
    modified: int
    tag: str | None


@dataclass(frozen=True, kw_only=True)
class ObjectFolder:
    """A folder's path, or a prefix's URI, with the options of delta-rs to reach it. Reading does not create the folder."""

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)  # they may hold secrets
    seconds: float | None = None
    """For how long a request that fails is repeated; by default as obstore has it."""

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine's disk."""
        return "://" not in self.uri

    def put_if_absent(self, path: str, content: bytes) -> bool:
        """Write an object unless one with that name exists.

        Returns:
            Whether this call wrote it. Only one of several concurrent calls does. False is not certain: a store's client
            that repeats a request finds what its first attempt wrote.
        """
        return self.put_new(path, content)[0]

    def put_new(self, path: str, content: bytes) -> tuple[bool, str | None]:
        """`put_if_absent`, with the tag that the store gave the object, if it tells one."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        try:
            with masking(self.storage_options):
                made = obstore.put(self._store, path, content, mode="create")
        except AlreadyExistsError:
            return False, None
        return True, tag_of(made["e_tag"])

    def put_unless_there(self, path: str, content: bytes) -> None:
        """`put_if_absent` for what may have been there. Errors: `EnvironmentSetupError` if the store refuses it."""
        with self._writing(path):
            self.put_if_absent(path, content)

    def put(self, path: str, content: bytes) -> "PutResult":
        """Write an object, replacing one with that name; what the store says of it."""
        import obstore

        with self._writing(path):
            return obstore.put(self._store, path, content)

    def put_over(self, path: str, content: bytes, put: "PutResult") -> bool:
        """Replace an object if it still is the one that was `put`; returns whether it was. False is not certain, as with
        `put_if_absent`. Errors: `NotImplementedError` on a local disk; those of a store that has no such put."""
        import obstore
        from obstore.exceptions import PreconditionError

        known: Any = {name: value for name, value in put.items() if value is not None}
        try:
            with masking(self.storage_options):
                obstore.put(self._store, path, content, mode=known)
        except PreconditionError:
            return False
        return True

    def copy(self, path: str, to: str) -> None:
        """Copy an object within the folder; on a local disk, by another link to the same file. Errors: `FileNotFoundError` if
        there is none."""
        import obstore

        with self._writing(to, through=FileNotFoundError):
            obstore.copy(self._store, path, to)

    def get(self, path: str) -> bytes | None:
        """An object's content; None if it does not exist. Errors: `EnvironmentSetupError` if the store cannot be read."""
        import obstore

        if self._is_missing:
            return None
        try:
            with self._reading():
                return retried(lambda: bytes(obstore.get(self._store, path).bytes()))
        except FileNotFoundError:
            return None

    def head(self, path: str) -> Stored | None:
        """What the store says of an object; None if it does not exist. Errors: as `get`."""
        import obstore

        if self._is_missing:
            return None
        try:
            with self._reading():
                found = obstore.head(self._store, path)
        except FileNotFoundError:
            return None
        return _stored(found)

    def head_all(self, paths: Sequence[str]) -> list[Stored | None]:
        """`head` of several objects, in the order of their paths; several requests run at the same time."""
        with ThreadPoolExecutor(_REQUESTS) as requests:
            return list(requests.map(self.head, paths))

    def get_all(self, paths: Sequence[str]) -> list[bytes | None]:
        """The contents of objects, in the order of their paths; several requests run at the same time."""
        if len(paths) < 2:
            return [self.get(path) for path in paths]
        with ThreadPoolExecutor(_REQUESTS) as requests:
            return list(requests.map(self.get, paths))

    def names(self, prefix: str, *, after: str | None = None) -> list[str]:
        """The paths of all objects in a folder, sorted; only those after `after`. Errors: as `get`."""
        return sorted(self.sizes(prefix, after=after))

    def sizes(self, prefix: str, *, after: str | None = None) -> dict[str, int]:
        """All objects in a folder with their sizes; only those after `after`. Errors: as `get`.

        An object whose name ends in a slash, as S3A marks folders, comes without the slash.
        """
        return {path: stored.size for path, stored in self.listed(prefix, after=after).items()}

    def listed(self, prefix: str, *, after: str | None = None) -> dict[str, Stored]:
        """All objects in a folder, as `sizes`, with all that a list says of them."""
        if self._is_missing:
            return {}
        with self._reading():
            return retried(lambda: self._pages(prefix, after))

    def _pages(self, prefix: str, after: str | None) -> dict[str, Stored]:
        import obstore

        # A store may list from its beginning all the same, as Azure's emulator does.
        pages = obstore.list(self._store, prefix=prefix, offset=after)
        found = {str(each["path"]): _stored(each) for page in pages for each in page}
        return {path: stored for path, stored in found.items() if after is None or path > after}

    def try_to_list(self) -> None:
        """List the beginning of the folder; raises what the store's client raises."""
        import obstore

        if not self._is_missing:
            with masking(self.storage_options):
                next(iter(obstore.list(self._store)), None)

    def signed(self, method: Literal["DELETE"], path: str, *, seconds: float) -> str:
        """A URL with which anybody may make one request for a while."""
        import obstore

        store: Any = self._store  # one that can sign, as those of all providers but a local disk
        return obstore.sign(store, method, path, timedelta(seconds=seconds))

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects, on S3 by one request; it is no error if some are already gone."""
        import obstore

        if self._is_missing or not paths:
            return
        for each in [paths] if provider_of(self.uri) == "s3" else [[path] for path in paths]:
            with self._writing(each[0]), suppress(FileNotFoundError):
                obstore.delete(self._store, each)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn what a store's client raises into an error of this package, except that there is no such object."""
        from obstore.exceptions import BaseError

        try:
            yield
        except FileNotFoundError:
            raise
        except (BaseError, OSError) as error:
            raise cannot_be_read("the folder", self.uri, error, self.storage_options) from None

    @contextmanager
    def _writing(self, path: str, *, through: type[Exception] | tuple[()] = ()) -> Iterator[None]:
        """Turn what a store's client raises into an error of this package, but for what goes `through`."""
        from obstore.exceptions import BaseError

        try:
            yield
        except through:
            raise
        except (BaseError, OSError) as error:
            raise cannot_be_written(f"{self.uri}/{path}", error, self.storage_options) from None

    @property
    def _is_missing(self) -> bool:
        """Whether it is a local folder that does not exist; reading must not create it."""
        return self.is_local and not Path(self.uri).exists()

    @cached_property
    def _store(self) -> "ObjectStore":
        from obstore.store import LocalStore, S3Store, from_url

        if self.is_local:
            return LocalStore(self.uri, mkdir=True)
        short = {
            name: name if name in ENDPOINTS else name.lower().removeprefix("aws_") for name in self.storage_options
        }
        given = {short[name]: value for name, value in self.storage_options.items()}
        client: Any = {name: value for name, value in given.items() if name in _CLIENT}
        config: Any = {name: value for name, value in given.items() if name not in _CLIENT | _DELTA_ONLY}
        retry: Any = {"retry_config": {"retry_timeout": timedelta(seconds=self.seconds)}} if self.seconds else {}
        if provider_of(self.uri) == "s3":  # from_url does not take every option
            bucket, _, prefix = self.uri.partition("://")[2].partition("/")
            config.pop("bucket", None)
            return S3Store(bucket, prefix=prefix.strip("/") or None, config=config, client_options=client, **retry)
        return from_url(self.uri, config=config, client_options=client, **retry)


def retried(read: Callable[[], T]) -> T:
    """What a store answers; the request is repeated if the answer is cut. The client repeats only those without an answer."""
    from obstore.exceptions import BaseError

    for _ in range(_CUT_ANSWERS):
        try:
            return read()
        except (BaseError, OSError) as error:
            if "response body" not in str(error):
                raise
    return read()


def _stored(listed: "ObjectMeta") -> Stored:
    modified = int(listed["last_modified"].timestamp() * 1e6)
    return Stored(size=int(listed["size"]), modified=modified, tag=tag_of(listed["e_tag"]))


def tag_of(told: str | None) -> str | None:
    """The tag of an object as it can be compared: Azure tells it in quotes, but not in lists."""
    return None if told is None else told.strip('"')
