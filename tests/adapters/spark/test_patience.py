"""A Spark Connect server that does not answer is waited for up to a time, whatever is retried meanwhile."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from pyspark.errors import PySparkAssertionError
from pyspark.errors.exceptions.connect import SparkConnectException, SparkConnectGrpcException

from backfill_assets.adapters.spark.patience import is_lost, reason_of_loss, wait_at_most

GRPC = """<_MultiThreadedRendezvous of RPC that terminated with:
\tstatus = StatusCode.UNAVAILABLE
\tdetails = "no route"
\tdebug_error_string = "UNKNOWN:Error received {grpc_status:14}"
>"""


class Refused(grpc.RpcError):  # type: ignore[misc]
    """What gRPC raises where nobody listens."""

    def __init__(self, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE) -> None:
        super().__init__()
        self.code: Callable[[], grpc.StatusCode] = lambda: code
        self.trailing_metadata: Callable[[], Any] = lambda: None
        self.details: Callable[[], str] = lambda: ""


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def policy(clock: Clock, seconds: float) -> Any:
    """The policy that a session gets."""
    given: list[Any] = []
    client = SimpleNamespace(set_retry_policies=given.extend)
    wait_at_most(SimpleNamespace(client=client), seconds, clock)  # type: ignore[arg-type]
    (found,) = given
    return found


def test_all_retries_of_an_outage_share_its_deadline() -> None:
    clock = Clock()
    patience = policy(clock, 75)
    waited: list[float] = []
    while patience.can_retry(Refused()) and len(waited) < 1000:
        waited.append(clock.now)
        clock.now += patience.to_state().next_attempt(Refused()) / 1000 + 4  # each of many nested retries begins anew
    assert 70 < waited[-1] <= 75
    assert not patience.can_retry(Refused()), "nor is anything else retried that fails in the same outage"


def test_a_later_outage_is_waited_for_again() -> None:
    clock = Clock()
    patience = policy(clock, 75)
    for begin in (0, 200, 1000):
        clock.now = begin
        assert patience.can_retry(Refused())
        clock.now = begin + 40
        assert patience.can_retry(Refused())
        clock.now = begin + 76
        assert not patience.can_retry(Refused())


def test_pauses_stay_short_and_other_errors_are_not_retried() -> None:
    patience = policy(Clock(), 75)
    state = patience.to_state()
    pauses = [state.next_attempt(Refused()) for _ in range(50)]
    assert max(pauses) < 5000
    assert not patience.can_retry(Refused(grpc.StatusCode.INVALID_ARGUMENT))
    assert not patience.can_retry(ValueError("other"))


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (SparkConnectGrpcException("no", grpc_status_code=grpc.StatusCode.UNAVAILABLE), True),
        (SparkConnectGrpcException("no", grpc_status_code=grpc.StatusCode.UNAUTHENTICATED), True),
        (SparkConnectGrpcException("no", grpc_status_code=grpc.StatusCode.INTERNAL), False),
        (SparkConnectGrpcException("[INVALID_HANDLE.SESSION_NOT_FOUND] The handle", errorClass=None), True),
        (SparkConnectGrpcException("x", errorClass="INVALID_HANDLE.SESSION_CHANGED"), True),
        (SparkConnectGrpcException("x", errorClass="INVALID_HANDLE.OPERATION_NOT_FOUND"), True),
        (SparkConnectException("[NO_ACTIVE_SESSION] No active Spark session found."), True),
        (SparkConnectGrpcException("[DIVIDE_BY_ZERO] Division", errorClass="DIVIDE_BY_ZERO"), False),
        (PySparkAssertionError("Received incorrect server side session identifier for request. (a != b)"), True),
        (PySparkAssertionError("other"), False),
        (ConnectionRefusedError(), False),
    ],
)
def test_a_lost_session_is_told_from_what_spark_could_not_compute(error: Exception, lost: bool) -> None:
    assert is_lost(error) is lost


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (SparkConnectGrpcException(GRPC, grpc_status_code=grpc.StatusCode.UNAVAILABLE), "UNAVAILABLE: no route"),
        (SparkConnectGrpcException("gone\nmore", grpc_status_code=grpc.StatusCode.UNAVAILABLE), "gone"),
        (PySparkAssertionError("Received another\nidentifier"), "Received another"),
        (ConnectionRefusedError(), "ConnectionRefusedError"),
    ],
)
def test_what_became_of_the_server_is_told_in_one_line(error: Exception, reason: str) -> None:
    assert reason_of_loss(error) == reason
