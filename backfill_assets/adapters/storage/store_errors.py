"""What a store's client says of an error, as an error of this package: in one line, and without keys.

Stores repeat what they were sent: S3 answers a token that has expired with that token, and a wrong signature with what was
signed. So declared keys are left out, those of the environment, and whatever stands where stores put such things.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from urllib.parse import quote

from backfill_assets.errors import EnvironmentSetupError

__all__ = ["cannot_be_read", "cannot_be_written", "is_secret", "mask", "masked", "masking", "of_store", "said"]

_SHOWN = 400
_SECRETS = ("key_id", "key", "secret", "token", "password", "connection_string")
"""How the names of settings end whose values nothing shows."""
_OF_ACCOUNTS = re.compile(r"fs\.azure\..*\b(key|secret|token)\.")
"""What is in the names of Spark's settings of an account on Azure whose values nothing shows; the account is at their end."""
_PROVIDERS = ("aws_", "azure_", "google_", "gcp_", "spark_connect_")
"""How variables of the environment begin that clients of stores and of Spark read keys from."""
_PROXIES = ("all_proxy", "http_proxy", "https_proxy")
"""The variables, in either case, with which clients are told of a proxy."""
_SHORTEST = 8
"""A value in the environment with fewer letters is no key of a provider, and may be part of any word."""
_NONE: Mapping[str, str] = MappingProxyType({})

_HELD = "…"
_PATTERNS = (
    re.compile(
        r"(<(?:Token-\d+|AWSAccessKeyId|SignatureProvided|StringToSign\w*|CanonicalRequest\w*|AuthenticationErrorDetail)>)"
        r"[^<]+",
        re.IGNORECASE,
    ),
    re.compile(
        r"((?<![\w-])(?:X-(?:Amz|Goog)-(?:Security-Token|Signature|Credential)|AWSAccessKeyId|Signature|sig)=)[^&\s\"'<>]+",
        re.IGNORECASE,
    ),
    re.compile(r"((?<!\w)token=)[^;/\s\"'<>]+", re.IGNORECASE),
    re.compile(r"(\bBearer\s+)[^\s\"'<>]+"),
    re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@\"'<>]*:[^\s/@\"'<>]+(?=@)", re.IGNORECASE),
)
"""Where secrets stand: in the answers of stores, in signed URLs, in addresses of Spark Connect servers and of
proxies, in headers."""
_OF_STORES = re.compile(r"Generic (S3|MicrosoftAzure|GCS) error|lacked (the necessary privileges|valid authentication)")
"""What delta-rs says of a table whose store does not answer it, or refuses it."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_DETAILS = re.compile(r"\n\s*Debug source:.*|(\s*\d+: <unknown>)+\s*", re.DOTALL)
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
        hint="check that the store can be reached, and its endpoint, region and bucket, and the keys and their rights"
        f"{_proxies()}",
    )


def cannot_be_written(uri: str, error: Exception, settings: Mapping[str, str]) -> EnvironmentSetupError:
    """The error about an object that its store, or disk, does not let this process write or delete; as `cannot_be_read`."""
    return EnvironmentSetupError(
        f"{uri} cannot be written or deleted: expected its store to accept that, found {said(error, settings)}",
        hint="what was committed stays. Check the rights to write and delete there, the space that is left, and what stands "
        f"between this machine and the store{_proxies()}; then run it again",
    )


def of_store(error: Exception) -> bool:
    """Whether an error of delta-rs is about its store, and not about what is in it."""
    return _OF_STORES.search(str(error)) is not None


def said(error: Exception, settings: Mapping[str, str]) -> str:
    """The class of an error and the beginning of its text, without what is secret."""
    text = masked(_ARROWS.sub(": ", _COLOURS.sub("", _DETAILS.sub("", str(error)))), settings)
    return f"{type(error).__name__}: {' '.join(text.split())[:_SHOWN]}"


def is_secret(name: str) -> bool:
    """Whether the value of a setting of this name is not to be shown."""
    return name.lower().endswith(_SECRETS) or _OF_ACCOUNTS.search(name.lower()) is not None


def masked(text: str, settings: Mapping[str, str] = _NONE) -> str:
    """A text without what is secret in these settings or in the environment, or stands where stores put secrets."""
    found = {value for name, value in settings.items() if value and is_secret(name)} | _of_environment()
    for secret in sorted({each for value in found for each in (value, quote(value, safe=""))}, key=len, reverse=True):
        text = text.replace(secret, _HELD)
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\1{_HELD}", text)
    return text


def mask(error: BaseException, settings: Mapping[str, str] = _NONE) -> None:
    """Take what is secret out of the texts of an error, and of those that led to it: a log shows all of them."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.args = tuple(masked(part, settings) if isinstance(part, str) else part for part in each.args)
        own = vars(each)
        own.update({name: masked(value, settings) for name, value in own.items() if isinstance(value, str)})
        left += [each.__cause__, each.__context__]


@contextmanager
def masking(settings: Mapping[str, str]) -> Iterator[None]:
    """Let errors through without what is secret; their classes stay."""
    try:
        yield
    except Exception as error:
        mask(error, settings)
        raise


def _proxies() -> str:
    """Which variables of a proxy are set, as the end of a hint; nothing if none is."""
    found = sorted(name for name in os.environ if name.lower() in _PROXIES and os.environ[name])
    return f" (requests may go to a proxy: {', '.join(found)} is set)" if found else ""


def _of_environment() -> set[str]:
    keys = (name for name in os.environ if name.lower().startswith(_PROVIDERS) and is_secret(name))
    return {value for name in keys if len(value := os.environ[name]) >= _SHORTEST}
