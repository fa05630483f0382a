"""Whether an endpoint is on this machine, so that what is sent there does not leave it."""

from urllib.parse import urlsplit

__all__ = ["is_loopback"]

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def is_loopback(endpoint: str) -> bool:
    """Whether a URL names this machine by its loopback address."""
    return urlsplit(endpoint).hostname in _LOOPBACK
