"""How object stores are declared, and which declarations go together. Opens nothing, and reads no variable."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit

from pydantic import BaseModel

from backfill_assets.errors import DeclarationError, EnvironmentSetupError

__all__ = [
    "LOCAL",
    "SCHEMES",
    "VARIABLE",
    "Stored",
    "as_declared",
    "bucket_of",
    "canonical",
    "check_buckets",
    "checked_storage",
    "misnamed",
    "provider_of",
    "storage_of",
    "store_of",
    "unusable",
]

LOCAL = "local"

SCHEMES = ("s3://", "s3a://")
"""How addresses on S3 begin. Both name the same objects."""

VARIABLE = "env:"
"""How a value begins that is read from the environment when it is used."""

_PROVIDERS: Mapping[str, tuple[str, ...]] = {
    "s3": ("s3", "s3a"),
    "gcs": ("gs",),
    "azure": ("abfss", "abfs", "az", "azure", "adl"),
}
"""The schemes of addresses for which a provider's configuration can be used."""


class Stored(Protocol):
    """What `check_buckets` has to know of a table."""

    @property
    def name(self) -> str:
        """The name that it was declared with."""
        ...

    @property
    def path(self) -> str:
        """Its folder or URI."""
        ...

    @property
    def storage(self) -> Mapping[str, str] | None:
        """How it is reached, if it was declared."""
        ...


def canonical(uri: str) -> str:
    """An address with `s3://` for `s3a://`; others as they are."""
    return f"s3://{uri.removeprefix('s3a://')}" if uri.startswith("s3a://") else uri


def bucket_of(uri: str) -> str | None:
    """The bucket of an address on S3; None for any other address."""
    return urlsplit(uri).netloc if uri.startswith(SCHEMES) else None


def provider_of(uri: str) -> str:
    """The provider of the store that an address names; `local` for a path, and for an address of none that is known."""
    scheme = urlsplit(uri).scheme if "://" in uri else "file"
    return next((name for name, schemes in _PROVIDERS.items() if scheme in schemes), LOCAL)


def misnamed(uri: str) -> bool:
    """Whether an address is on Azure, but not of the form that delta-rs and Spark both take, `abfss://container@account…`, or
    the same with `abfs`."""
    parts = urlsplit(uri)
    return provider_of(uri) == "azure" and not (parts.scheme in {"abfs", "abfss"} and all(parts.netloc.partition("@")))


def store_of(uri: str) -> str:
    """What Spark reaches in one way for all addresses in it: a bucket, on Azure an account, all of Google; empty for a path.

    Example:
        >>> store_of("s3a://lake/orders"), store_of("abfss://lake@mine.dfs.core.windows.net/orders")
        ('s3://lake', 'abfss://mine.dfs.core.windows.net')
    """
    match provider_of(uri):
        case "s3":
            return f"s3://{urlsplit(uri).netloc}"
        case "azure":
            return f"abfss://{urlsplit(uri).netloc.rpartition('@')[2]}"
        case "gcs":
            return "gs://"
        case _:
            scheme, separator, _ = uri.partition("://")
            return f"{scheme}://{urlsplit(uri).netloc}" if separator and scheme != "file" else ""


def as_declared(stated: Any) -> dict[str, Any]:
    """A declaration as a mapping without what is not set, where YAML's own `true` counts like a string."""
    declared = _set_fields(stated) if isinstance(stated, BaseModel) else stated
    if not isinstance(declared, Mapping):
        raise unusable(f"expected a mapping, found {type(stated).__name__}")
    given = {name: each for name, each in declared.items() if each is not None}
    for name, value in given.items():
        if not isinstance(value, str | bool) and not hasattr(value, "env_var_name"):  # Dagster's EnvVar
            raise unusable(f"{name!r} is of type {type(value).__name__}, expected text")  # the value may be a secret
    return {name: str(each).lower() if isinstance(each, bool) else each for name, each in given.items()}


def checked_storage(name: str, path: str, given: Any) -> dict[str, str] | None:
    """How a Delta table is reached, as it was declared. What its fields hold is checked when they are used.

    Args:
        name: The name of the table.
        path: Its folder or URI.
        given: A configuration of `dagster_deltalake` or a mapping like one; None: as the warehouse is reached.

    Raises:
        DeclarationError: It is something else, or does not fit the path. The message shows no value, which may be secret.
    """
    if given is None:
        return None
    with storage_of(f"delta_table {name!r}"):
        declared = {name: _text(each) for name, each in as_declared(given).items()}
        _check_provider(declared.get("provider", "none"), path)
    return declared


def check_buckets(tables: Iterable[Stored]) -> None:
    """Refuse tables in one store that are declared to be reached in different ways. Errors: `DeclarationError`."""
    first: dict[str, Stored] = {}
    for table in tables:
        store = store_of(table.path)
        if not store:
            continue
        other = first.setdefault(store, table)
        if other.storage != table.storage:
            raise _reached_otherwise(store, other, table)


def _reached_otherwise(store: str, one: Stored, other: Stored) -> DeclarationError:
    return DeclarationError(
        f"delta_table {one.name!r} and delta_table {other.name!r} are in one store, {store}, but declared to be reached "
        f"differently: expected the same storage, found {_difference(one.storage, other.storage)}",
        hint="give both the same storage: Spark reaches a store in one way. If two stores have this name, put the tables "
        "into different projects, each with a Spark of its own",
        argument="storage",
    )


@contextmanager
def storage_of(whose: str) -> Iterator[None]:
    """Say whose storage it is in errors about a declaration."""
    try:
        yield
    except (DeclarationError, EnvironmentSetupError) as error:
        raise type(error)(f"{whose}: {error.message}", hint=error.hint, **error.facts) from None


def unusable(why: str, hint: str = "") -> DeclarationError:
    """The error about a declaration of storage; `storage_of` says whose it is."""
    return DeclarationError(
        f"storage cannot be used: {why}",
        hint=hint
        or "give `provider` and the fields of its configuration in dagster_deltalake, for example of S3Config",
        argument="storage",
    )


def _set_fields(given: BaseModel) -> dict[str, Any]:
    """The fields of a configuration that differ from their defaults, and its provider."""
    fields = given.model_dump()
    return {"provider": fields.get("provider"), **given.model_dump(exclude_defaults=True)}


def _text(value: object) -> str:
    variable = getattr(value, "env_var_name", None)  # Dagster's EnvVar, which may only be read by Dagster itself
    if isinstance(variable, str):
        return f"{VARIABLE}{variable}"
    return str(value)


def _check_provider(provider: str, path: str) -> None:
    if provider not in {LOCAL, *_PROVIDERS}:
        raise unusable(f"expected provider to be one of {', '.join((LOCAL, *_PROVIDERS))}, found {provider}")
    if provider != provider_of(path):
        raise unusable(
            f"provider {provider!r} does not fit the path, which names a store of provider {provider_of(path)!r}",
            "give the provider of the store that the path names, or leave storage out",
        )


def _difference(one: Mapping[str, str] | None, other: Mapping[str, str] | None) -> str:
    """In which settings two declarations differ, without the values, which may be secrets."""
    if one is None or other is None:
        return "that one of them has none, and is reached as the warehouse is"
    return f"other values of {', '.join(sorted(name for name in {*one, *other} if one.get(name) != other.get(name)))}"
