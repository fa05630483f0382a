"""One declaration of an Azure account, as delta-rs takes it and as Spark takes it. This module asks no store.

Keys that are not declared are looked up by each side: by delta-rs in the variables `AZURE_*` and by the machine's identity,
by Spark in the settings that its own machines have for the account.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from backfill_assets.adapters.storage.loopback import is_loopback
from backfill_assets.declare.stores import unusable

__all__ = ["AzureAccess", "azure_access", "azure_options", "azure_settings"]

_ENDPOINTS = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
_TYPE = "fs.azure.account.auth.type"
_OAUTH = "fs.azure.account.oauth"
_PROVIDER = "org.apache.hadoop.fs.azurebfs.oauth2.{}TokenProvider"
_AUTHORITY = "https://login.microsoftonline.com/{}/oauth2/token"
_LOGINS: Mapping[str, tuple[str, ...]] = {
    "a key": ("account_key",),
    "a shared access signature": ("sas_key",),
    "a client's secret": ("client_id", "client_secret", "tenant_id"),
    "a client's federated token": ("client_id", "federated_token_file", "tenant_id"),
}
"""The fields of each way to log in that both sides know."""
_TOKENS = frozenset({"azure_storage_token", "bearer_token", "token"})
_KEYS = frozenset({
    *("access_key", "account_key", "azure_storage_access_key", "azure_storage_account_key", "azure_storage_key"),
    *("azure_storage_master_key", "master_key"),
})
_CLIENT_SECRETS = frozenset({"azure_client_secret", "azure_storage_client_secret", "client_secret"})
_TOKEN_FILES = frozenset({"azure_federated_token_file", "federated_token_file"})
_COUNT_MORE: Mapping[str, frozenset[str]] = {
    "account_key": _TOKENS,
    "client_secret": _TOKENS | _KEYS,
    "federated_token_file": _TOKENS | _KEYS | _CLIENT_SECRETS,
    "sas_key": _TOKENS | _KEYS | _CLIENT_SECRETS | _TOKEN_FILES,
}
"""The variables, in small letters, with which delta-rs would log in instead; it takes them in any case."""
_DECIDING = ("account_key", "sas_key", "client_secret", "federated_token_file")


@dataclass(frozen=True, kw_only=True)
class AzureAccess:
    """How an account is reached.

    Attributes:
        host: The account's host, as addresses name it.
        endpoint: An emulator on this machine, `http://host:port/account`; None for Azure itself.
        login: The declared fields by which both sides log in; empty if each finds its own.
    """

    host: str
    endpoint: str | None = None
    login: Mapping[str, str] = field(default_factory=dict, repr=False)


def azure_access(uri: str, options: Mapping[str, str], environment: Mapping[str, str]) -> AzureAccess:
    """How the account of an address is reached, from declared options and `AZURE_*` variables.

    Errors: `DeclarationError` for what cannot work, or would risk what is stored or sent.
    """
    parts = urlsplit(uri)
    container, _, host = parts.netloc.rpartition("@")
    for name, expected in (("account_name", host.partition(".")[0]), ("container_name", container)):
        if options.get(name, expected) != expected:
            raise unusable(
                f"its {name} is {options[name]}, and the address {uri} names {expected}",
                f"declare the {name} of the address, or write the other one in the address",
            )
    found = (environment[name] for name in _ENDPOINTS if environment.get(name))
    endpoint = options.get("endpoint") or next(found, None)
    _check_emulator(endpoint, uri)
    login = _login(options)
    _check_environment(login, environment)
    return AzureAccess(host=host, endpoint=endpoint, login=login)


def azure_options(options: Mapping[str, str], access: AzureAccess) -> dict[str, str]:
    """The options of delta-rs: those that are declared, and what the environment adds to them."""
    signed = {**options, "skip_signature": "false"}  # whatever a variable of the environment says
    if access.endpoint is None:
        return signed
    return {**signed, "endpoint": access.endpoint, "allow_http": "true"}


def azure_settings(access: AzureAccess) -> dict[str, str]:
    """The settings of a Spark session that reaches the account in the same way. They say nothing of other accounts."""
    settings = {f"{name}.{access.host}": value for name, value in _told(access.login).items()}
    if access.endpoint is None:
        return {**settings, "fs.azure.always.use.https": "true"}
    return {
        **settings,
        "fs.azure.abfs.endpoint": urlsplit(access.endpoint).netloc,
        "fs.azure.always.use.https": "false",
        # The connector's other client refuses to speak without TLS.
        "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
        # An emulator has no folders, and does not know how to be asked for them.
        "fs.azure.account.hns.enabled": "false",
        "fs.azure.fns.account.service.type": "BLOB",
    }


def _told(login: Mapping[str, str]) -> dict[str, str]:
    """What the connector is told of a login, under its names without the account at their end."""
    if "account_key" in login:
        return {_TYPE: "SharedKey", "fs.azure.account.key": login["account_key"]}
    if "sas_key" in login:
        return {_TYPE: "SAS", "fs.azure.sas.fixed.token": login["sas_key"]}
    if not login:
        return {}
    client = {_TYPE: "OAuth", f"{_OAUTH}2.client.id": login["client_id"]}
    if "client_secret" in login:
        return {
            **client,
            f"{_OAUTH}.provider.type": _PROVIDER.format("ClientCreds"),
            f"{_OAUTH}2.client.endpoint": _AUTHORITY.format(login["tenant_id"]),
            f"{_OAUTH}2.client.secret": login["client_secret"],
        }
    return {
        **client,
        f"{_OAUTH}.provider.type": _PROVIDER.format("WorkloadIdentity"),
        f"{_OAUTH}2.msi.tenant": login["tenant_id"],
        f"{_OAUTH}2.token.file": login["federated_token_file"],
    }


def _login(options: Mapping[str, str]) -> dict[str, str]:
    """The fields of the way to log in that is declared. Errors: `DeclarationError` if there are several, or a part of one."""
    deciding = [name for name in _DECIDING if options.get(name)]
    if len(deciding) > 1:
        raise unusable(
            f"it has {' and '.join(deciding)}: expected one way to log in, as both sides would not choose the same",
            f"declare one of: {_ways()}",
        )
    if not deciding:
        return {}
    names = next(each for each in _LOGINS.values() if deciding[0] in each)
    if missing := [name for name in names if not options.get(name)]:
        raise unusable(f"it has {deciding[0]} without {', '.join(missing)}", f"declare one of: {_ways()}")
    return {name: options[name] for name in names}


def _check_environment(login: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Refuse variables with which delta-rs would log in otherwise than as it is declared."""
    for way in (name for name in _DECIDING if name in login):
        found = sorted(name for name in environment if name.lower() in _COUNT_MORE[way])
        if found:
            raise unusable(
                f"its {way} is declared, and the environment has {found[0]}, with which delta-rs would log in instead",
                f"unset {found[0]}, or declare no way to log in, so that each side finds its own",
            )


def _ways() -> str:
    return "; ".join(f"{way} ({', '.join(names)})" for way, names in _LOGINS.items())


def _check_emulator(endpoint: str | None, uri: str) -> None:
    """Refuse an endpoint of which Spark cannot be told: one on another machine, or that is to be spoken to with TLS."""
    if endpoint is None:
        return
    if urlsplit(endpoint).scheme != "http" or not is_loopback(endpoint):
        raise unusable(
            f"{_ENDPOINTS[0]} names {urlsplit(endpoint).hostname}: expected an emulator on this machine, "
            "http://127.0.0.1:PORT/ACCOUNT",
            f"unset {_ENDPOINTS[0]}; the address of a table names the account, and so its host",
        )
    if not uri.startswith("abfs://"):
        raise unusable(
            f"{_ENDPOINTS[0]} names an emulator, to which Spark speaks without TLS, and {uri} asks for it",
            f"write abfs:// for abfss:// in the address, or unset {_ENDPOINTS[0]}",
        )
