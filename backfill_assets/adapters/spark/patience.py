"""How long a Spark Connect server that does not answer is waited for, and which errors mean that it has lost a session.

PySpark waits for ten minutes, and for longer where one of its retries contains another. Here an outage has one deadline,
whatever is retried meanwhile. For a server that hangs, or behind a network that loses what is sent, PySpark waits without
limit: no request has one, as it may compute for hours. Here gRPC asks such a server for signs of life.
"""

import re
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ATTACHING_SECONDS", "KEEPALIVE", "RUNNING_SECONDS", "is_lost", "reason_of_loss", "wait_at_most"]

ATTACHING_SECONDS = 10.0
"""How long a run that begins waits for a server."""
RUNNING_SECONDS = 60.0
"""How long a run waits for a server that has answered before: long enough to start it again."""
KEEPALIVE = {
    "grpc.keepalive_time_ms": 20_000,
    "grpc.keepalive_timeout_ms": 10_000,
    "grpc.http2.ping_timeout_ms": 10_000,
    "grpc.min_reconnect_backoff_ms": 10_000,
}
"""Options of a channel: after 20 seconds without data a server is asked whether it is there, and is to answer in 10, as it
is to accept a connection. Servers take offence if they are asked often while they have nothing to send; gRPC then asks
less often."""
_SAME_OUTAGE_SECONDS = 45.0
"""Failures that follow each other within this time belong to one outage: a request may take 20 seconds to fail."""
_LONGEST_PAUSE_MS = 4000
_LOST = ("INVALID_HANDLE.SESSION", "INVALID_HANDLE.OPERATION", "NO_ACTIVE_SESSION")
"""How conditions begin that a server reports for a session, or for what it computes, that it does not know (any more), and
what requests of a session end with once one of them has learned that."""

_OTHER_SERVER = "incorrect server side session identifier"
"""What PySpark says if a server that was started anew has made a session of the same name, with settings of its own."""

_DETAILS = re.compile(r'^\s*details = "(.*)"$', re.MULTILINE)

_GONE = ("UNAVAILABLE", "UNAUTHENTICATED")
"""What requests of a session end with if there is no server (any more), or one that was started anew with another token."""


def wait_at_most(session: "SparkSession", seconds: float, now: Callable[[], float] = time.monotonic) -> None:
    """Let a Spark Connect session give up a server that has not answered for so many seconds."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    class Patience(DefaultPolicy):
        """As in PySpark, which errors are retried; all retries of an outage share its deadline."""

        def __init__(self) -> None:
            super().__init__(max_retries=None, max_backoff=_LONGEST_PAUSE_MS, max_server_retry_delay=_LONGEST_PAUSE_MS)
            self._began = self._failed = float("-inf")

        def can_retry(self, e: BaseException) -> bool:
            if not super().can_retry(e):
                return False
            at = now()
            if at - self._failed > _SAME_OUTAGE_SECONDS:
                self._began = at
            self._failed = at
            return at - self._began <= seconds

    # PySpark warns when it gives up. What becomes of that is an error of this package.
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
    session.client.set_retry_policies([Patience()])


def is_lost(error: BaseException) -> bool:
    """Whether a Spark Connect server does not answer (any more), or no longer knows a session."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        return False
    named = (error.getCondition() or "").startswith(_LOST) or any(f"[{name}" in str(error) for name in _LOST)
    return named or _OTHER_SERVER in str(error) or _status(error) in _GONE


def reason_of_loss(error: BaseException) -> str:
    """What became of the server, in one line: of gRPC's errors, the status and its details."""
    details = _DETAILS.search(str(error))
    if isinstance(error, Exception) and (status := _status(error)) and details:
        return f"{status}: {details.group(1)}"
    return next(iter(str(error).splitlines()), type(error).__name__)


def _status(error: Exception) -> str:
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    if not isinstance(error, SparkConnectGrpcException):
        return ""
    return cast("str", error.getGrpcStatusCode().name)
