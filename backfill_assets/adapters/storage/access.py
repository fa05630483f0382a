"""How the store of an address is reached: one declaration, as delta-rs takes it and as Spark takes it, for each provider."""

from collections.abc import Mapping

from backfill_assets.adapters.storage.azure import azure_access, azure_options, azure_settings
from backfill_assets.adapters.storage.google import google_access, google_options, google_settings
from backfill_assets.adapters.storage.s3 import bucket_settings, delta_options, s3_access, spark_settings
from backfill_assets.declare.stores import bucket_of, provider_of

__all__ = ["options_of_delta", "settings_beside", "settings_of_spark"]


def options_of_delta(uri: str, declared: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The options with which delta-rs reaches an address: those that are declared, and what the environment adds to them.

    Errors: `DeclarationError` for what cannot work, or would risk what is stored or sent.
    """
    match provider_of(uri):
        case "s3":
            return delta_options(declared, s3_access(declared, environment))
        case "azure":
            return azure_options(declared, azure_access(uri, declared, environment))
        case "gcs":
            return google_options(declared, google_access(declared, environment))
        case _:
            return dict(declared)


def settings_of_spark(uri: str, options: Mapping[str, str]) -> dict[str, str]:
    """The settings of a Spark session that reaches an address as these options of delta-rs do; none for a local disk."""
    match provider_of(uri):
        case "s3":
            return spark_settings(s3_access(options, {}))
        case "azure":
            return azure_settings(azure_access(uri, options, {}))
        case "gcs":
            return google_settings(google_access(options, {}))
        case _:
            return {}


def settings_beside(uri: str, options: Mapping[str, str], general: Mapping[str, str]) -> dict[str, str]:
    """The same for an address in another store than the warehouse's, which is reached by `general` as before."""
    bucket = bucket_of(uri)
    if bucket is None:
        return settings_of_spark(uri, options)
    return bucket_settings(s3_access(options, {}), bucket, general)
