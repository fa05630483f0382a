"""What a store's client says of an error, as an error of this package: in one line, and without keys."""

import re
from collections.abc import Mapping

from backfill_assets.errors import EnvironmentSetupError

__all__ = ["cannot_be_read", "said"]

_SHOWN = 400
_SECRETS = ("key_id", "key", "secret", "token")
"""How the names of settings end whose values nothing shows."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_DETAILS = re.compile(r"\n\s*Debug source:.*", re.DOTALL)
_ARROWS = re.compile(r"\s*↳\s*")


def cannot_be_read(what: str, uri: str, error: Exception, settings: Mapping[str, str]) -> EnvironmentSetupError:
    """The error about something at an address whose store does not answer a read, or refuses it.

    Args:
        what: What was to be read, such as `the warehouse`.
        uri: Where it is.
        error: What the store's client raised.
        settings: How the store is reached; the message shows none of its keys.
    """
    return EnvironmentSetupError(
        f"{what} at {uri} cannot be read: expected an answer of its store, found {said(error, settings)}",
        hint="check that the store can be reached, and its endpoint, region and bucket, and the keys and their rights",
    )


def said(error: Exception, settings: Mapping[str, str]) -> str:
    """The class of an error and the beginning of its text, without what is secret in these settings."""
    text = _ARROWS.sub(": ", _COLOURS.sub("", _DETAILS.sub("", str(error))))
    for secret in (value for name, value in settings.items() if value and name.lower().endswith(_SECRETS)):
        text = text.replace(secret, "…")
    return f"{type(error).__name__}: {' '.join(text.split())[:_SHOWN]}"
