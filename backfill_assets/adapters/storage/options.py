"""How the warehouse's storage is declared: a provider, and the fields of its configuration in `dagster_deltalake`."""

import os
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from backfill_assets.adapters.storage.s3 import bucket_of, delta_options, s3_access
from backfill_assets.errors import DeclarationError, EnvironmentSetupError

__all__ = ["LOCAL", "as_declared", "storage_options"]

LOCAL = "local"

_VARIABLE = "env:"


def as_declared(given: Any) -> dict[str, Any]:
    """A declaration as a mapping without what is not set, where YAML's own `true` counts like a string."""
    declared = given.model_dump() if isinstance(given, BaseModel) else given
    if not isinstance(declared, Mapping):
        raise _refused(f"expected a mapping, found {type(given).__name__}")
    return {
        name: str(each).lower() if isinstance(each, bool) else each
        for name, each in declared.items()
        if each is not None
    }


def storage_options(declared: Mapping[str, str], *, uri: str) -> dict[str, str]:
    """The options with which delta-rs reaches a warehouse, checked by the configuration of their provider.

    Args:
        declared: `provider` and the fields of its configuration; a value `env:NAME` is read from the environment.
        uri: The warehouse. On S3, endpoint and region come from the environment if they are not declared.

    Raises:
        DeclarationError: It cannot be used.
        EnvironmentSetupError: A variable that it names is not set.
    """
    options = _checked({name: _value(name, each) for name, each in declared.items()})
    if bucket_of(uri) is None:
        return options
    return delta_options(options, s3_access(options, os.environ))


def _checked(given: Mapping[str, str]) -> dict[str, str]:
    if given == {"provider": LOCAL}:
        return {}
    # Imported here, because it loads pandas, which costs every command over a local warehouse a sixth of a second.
    from dagster_deltalake.config import AzureConfig, ClientConfig, GcsConfig, LocalConfig, S3Config

    kinds: Mapping[str, type[BaseModel]] = {LOCAL: LocalConfig, "s3": S3Config, "azure": AzureConfig, "gcs": GcsConfig}
    kind = kinds.get(given.get("provider", ""))
    if kind is None:
        raise _refused(f"expected provider to be one of {', '.join(kinds)}, found {given.get('provider', 'none')}")
    client = {name: value for name, value in given.items() if name in ClientConfig.model_fields}
    own = {name: value for name, value in given.items() if name not in client}
    if unknown := sorted(own.keys() - kind.model_fields.keys()):
        raise _refused(f"{kind.__name__} has no {', '.join(unknown)}")
    try:
        parts = (kind.model_validate(own), ClientConfig.model_validate(client))
    except ValidationError as error:
        raise _refused(_reasons(error)) from None
    found = {name: value for part in parts for name, value in part.model_dump().items() if name != "provider"}
    return {name: str(value) for name, value in found.items() if value is not None}


def _reasons(error: ValidationError) -> str:
    """What is wrong with which field, without the values, which may be secrets."""
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())


def _value(name: str, declared: str) -> str:
    if not (isinstance(declared, str) and declared.startswith(_VARIABLE)):
        return declared
    variable = declared.removeprefix(_VARIABLE)
    if variable not in os.environ:
        raise EnvironmentSetupError(
            f"storage setting {name!r} is read from environment variable {variable}, which is not set",
            hint=f"set {variable} where Dagster runs",
        )
    return os.environ[variable]


def _refused(why: str) -> DeclarationError:
    return DeclarationError(
        f"StateStore: storage cannot be used: {why}",
        hint="give `provider` and the fields of its configuration in dagster_deltalake, for example of S3Config",
        argument="storage",
    )
