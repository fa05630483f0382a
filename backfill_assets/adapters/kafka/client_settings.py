"""Settings of Kafka clients: secrets are read from the environment here, and names translated for Kafka's Java client."""

import os
from collections.abc import Mapping
from pathlib import Path

from backfill_assets.errors import EnvironmentSetupError

__all__ = ["java_settings", "with_secret"]


def with_secret(name: str, value: str) -> str:
    """The value of a setting; `env:NAME` is replaced by that environment variable. Errors: `EnvironmentSetupError`."""
    variable = value.removeprefix("env:")
    if variable == value:
        return value
    if variable not in os.environ:
        raise EnvironmentSetupError(
            f"Kafka setting {name!r} is read from environment variable {variable}, which is not set",
            hint=f"set {variable} where Dagster runs",
        )
    return os.environ[variable]


def java_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's client settings under the names of Kafka's Java client; names that both know stay as they are."""
    java = dict(settings)
    longest = java.pop("fetch.wait.max.ms", None)
    if longest:
        java["fetch.max.wait.ms"] = longest
    mechanism = java.pop("sasl.mechanisms", None) or java.pop("sasl.mechanism", None)
    user, password = java.pop("sasl.username", None), java.pop("sasl.password", None)
    if mechanism:
        java["sasl.mechanism"] = mechanism
    if mechanism and user is not None:
        login = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        java["sasl.jaas.config"] = (
            f'org.apache.kafka.common.security.{login} required username="{_jaas(user)}" password="{_jaas(password or "")}";'
        )
    authority = java.pop("ssl.ca.location", None)
    if authority:
        java.update({"ssl.truststore.type": "PEM", "ssl.truststore.location": authority})
    certificate, private_key = java.pop("ssl.certificate.location", None), java.pop("ssl.key.location", None)
    if certificate and private_key:
        java["ssl.keystore.type"] = "PEM"
        java["ssl.keystore.certificate.chain"] = Path(certificate).read_text(encoding="utf-8")
        java["ssl.keystore.key"] = Path(private_key).read_text(encoding="utf-8")
    if java.get("ssl.endpoint.identification.algorithm") == "none":
        java["ssl.endpoint.identification.algorithm"] = ""
    return java


def _jaas(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
