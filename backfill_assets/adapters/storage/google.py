"""One declaration of Google's store, as delta-rs takes it and as Spark takes it. This module asks no store.

Spark is told of a file with the keys of a service account. All else it finds for itself, as its own machines are set up: a
session cannot be told keys as a text.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from backfill_assets.adapters.storage.loopback import is_loopback
from backfill_assets.declare.stores import unusable

__all__ = ["GoogleAccess", "google_access", "google_options", "google_settings"]

_EMULATOR = "STORAGE_EMULATOR_HOST"
"""The variable by which Google's own clients are told of an emulator."""
_KEYS = ("service_account", "service_account_key", "application_credentials")
_FILES = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH")
_CONTENT = "GOOGLE_SERVICE_ACCOUNT_KEY"
_COUNT_BESIDE: Mapping[str, tuple[str, ...]] = {
    "service_account": (_CONTENT,),
    "service_account_key": _FILES,
    "application_credentials": (*_FILES, _CONTENT),
}
"""The variables with which delta-rs would log in instead, or not at all."""
_NO_KEYS = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
"""The keys with which delta-rs asks an emulator."""
_CONNECTOR: Mapping[str, str] = {
    "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
    "fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
    # Hadoop has defaults for a connector of its own under the same names, with units that Google's cannot read.
    "fs.gs.block.size": str(64 * 2**20),
    "fs.gs.inputstream.inplace.seek.limit": str(8 * 2**20),
    "fs.gs.inputstream.min.range.request.size": str(2 * 2**20),
    "fs.gs.outputstream.buffer.size": str(8 * 2**20),
    "fs.gs.rewrite.max.chunk.size": str(512 * 2**20),
    # It reads several ranges at once by a method that this Hadoop no longer has.
    "parquet.hadoop.vectored.io.enabled": "false",
}


@dataclass(frozen=True, kw_only=True)
class GoogleAccess:
    """How Google's store is reached.

    Attributes:
        keys: A file with the keys of a service account, on Spark's machines as on this one; None if each side finds its own.
        emulator: An emulator on this machine, `http://host:port`; None for Google itself.
    """

    keys: str | None = None
    emulator: str | None = None


def google_access(options: Mapping[str, str], environment: Mapping[str, str]) -> GoogleAccess:
    """How the store is reached, from declared options and the variable of an emulator.

    Errors: `DeclarationError` for what cannot work.
    """
    named = [name for name in _KEYS if options.get(name)]
    if len(named) > 1:
        raise unusable(
            f"it has {' and '.join(named)}: expected one of them, as both sides would not choose the same",
            "declare service_account, a file that Spark finds on its machines, too",
        )
    _check_environment(named, environment)
    emulator = environment.get(_EMULATOR) or _base_of(options.get("service_account_key", "")) or None
    if emulator is not None and (urlsplit(emulator).scheme != "http" or not is_loopback(emulator)):
        raise unusable(
            f"{_EMULATOR} names {emulator}: expected an emulator on this machine, http://127.0.0.1:PORT",
            f"unset {_EMULATOR}",
        )
    return GoogleAccess(keys=options.get("service_account") or None, emulator=emulator)


def google_options(options: Mapping[str, str], access: GoogleAccess) -> dict[str, str]:
    """The options of delta-rs: those that are declared, and what the environment adds to them."""
    signed = {**options, "skip_signature": "false"}  # whatever a variable of the environment says
    if access.emulator is None:
        return signed
    others = {name: value for name, value in signed.items() if name not in _KEYS}
    keys = json.dumps({**_NO_KEYS, "gcs_base_url": access.emulator})
    return {**others, "service_account_key": keys, "allow_http": "true"}


def _check_environment(named: Sequence[str], environment: Mapping[str, str]) -> None:
    """Refuse variables with which delta-rs would log in otherwise than as it is declared, or ask another store than Spark."""
    found = [name for way in named for name in _COUNT_BESIDE[way] if name in environment]
    if found:
        raise unusable(
            f"its {named[0]} is declared, and the environment has {found[0]}, which delta-rs would use as well",
            f"unset {found[0]}, or declare no keys, so that each side finds its own",
        )
    if not named and not environment.get(_EMULATOR) and _base_of(environment.get(_CONTENT, "")):
        raise unusable(
            f"the environment has {_CONTENT}, which tells delta-rs alone of another store than Google's",
            f"unset {_CONTENT}, or name an emulator on this machine by {_EMULATOR}",
        )


def _base_of(keys: str) -> str:
    """The address that keys name; empty if they name none."""
    try:
        found = json.loads(keys or "{}")
    except ValueError:
        raise unusable(
            f"its service_account_key, or {_CONTENT}, is no JSON", "give the content of the file with the keys"
        ) from None
    return str(found.get("gcs_base_url", "")) if isinstance(found, dict) else ""


def google_settings(access: GoogleAccess) -> dict[str, str]:
    """The settings of a Spark session that reaches the store in the same way."""
    if access.emulator is not None:
        return {
            **_CONNECTOR,
            "fs.gs.storage.root.url": f"{access.emulator.rstrip('/')}/",
            "fs.gs.auth.type": "UNAUTHENTICATED",
        }
    if access.keys is None:
        return dict(_CONNECTOR)
    keys = {"fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", "fs.gs.auth.service.account.json.keyfile": access.keys}
    return {**_CONNECTOR, **keys}
