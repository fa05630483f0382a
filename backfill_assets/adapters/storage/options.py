"""Declared storage as the options of delta-rs: checked by its provider's configuration in `dagster_deltalake`."""

import os
from collections.abc import Mapping

from pydantic import BaseModel, ValidationError

from backfill_assets.adapters.storage.access import options_of_delta
from backfill_assets.declare.stores import LOCAL, VARIABLE, unusable
from backfill_assets.errors import EnvironmentSetupError

__all__ = ["storage_options"]

_SECONDS = {
    "connect_timeout", "http2_keep_alive_interval", "http2_keep_alive_timeout", "pool_idle_timeout", "timeout",
}  # fmt: skip
"""Whole numbers of seconds in a configuration; delta-rs wants durations with their unit."""


def storage_options(declared: Mapping[str, str], *, uri: str) -> dict[str, str]:
    """The options with which delta-rs reaches a warehouse or table, checked by the configuration of their provider.

    Args:
        declared: `provider` and the fields of its configuration; a value `env:NAME` is read from the environment.
        uri: What is reached. Endpoint and region come from the environment if they are not declared.

    Raises:
        DeclarationError: It cannot be used.
        EnvironmentSetupError: A variable that it names is not set.
    """
    return options_of_delta(uri, _checked({name: _value(name, each) for name, each in declared.items()}), os.environ)


def _checked(given: Mapping[str, str]) -> dict[str, str]:
    if given == {"provider": LOCAL}:
        return {}
    # Imported here, because it loads pandas, which costs every command over a local warehouse a sixth of a second.
    from dagster_deltalake.config import AzureConfig, ClientConfig, GcsConfig, LocalConfig, S3Config

    kinds: Mapping[str, type[BaseModel]] = {LOCAL: LocalConfig, "s3": S3Config, "azure": AzureConfig, "gcs": GcsConfig}
    kind = kinds.get(given.get("provider", ""))
    if kind is None:
        raise unusable(f"expected provider to be one of {', '.join(kinds)}, found {given.get('provider', 'none')}")
    client = {name: value for name, value in given.items() if name in ClientConfig.model_fields}
    own = {name: value for name, value in given.items() if name not in client}
    if unknown := sorted(own.keys() - kind.model_fields.keys()):
        raise unusable(f"{kind.__name__} has no {', '.join(unknown)}")
    try:
        parts = (kind.model_validate(own), ClientConfig.model_validate(client))
    except ValidationError as error:
        raise unusable(_reasons(error)) from None
    found = {name: value for part in parts for name, value in part.model_dump().items() if name != "provider"}
    return {name: f"{value}s" if name in _SECONDS else str(value) for name, value in found.items() if value is not None}


def _reasons(error: ValidationError) -> str:
    """What is wrong with which field, without the values, which may be secrets."""
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())


def _value(name: str, declared: str) -> str:
    if not (isinstance(declared, str) and declared.startswith(VARIABLE)):
        return declared
    variable = declared.removeprefix(VARIABLE)
    if variable not in os.environ:
        raise EnvironmentSetupError(
            f"storage setting {name!r} is read from environment variable {variable}, which is not set",
            hint=f"set {variable} where Dagster runs",
        )
    return os.environ[variable]
