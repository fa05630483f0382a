"""A runner whose session is lost gets another one with its next action."""

from typing import TYPE_CHECKING, Any

import grpc
import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.errors import SparkLostError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Client:
    def close(self) -> None:
        raise SparkConnectGrpcException("there is nobody to tell", grpc_status_code=grpc.StatusCode.UNAVAILABLE)


class Session:
    """What a runner asks of a Spark Connect session between actions."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self) -> None:
        self.client = Client()

    def addTag(self, tag: str) -> None:  # noqa: N802
        assert tag

    removeTag = addTag  # noqa: N815

    def stop(self) -> None:
        pass


@pytest.fixture
def sessions() -> list[Any]:
    return []


@pytest.fixture
def runner(sessions: list[Any]) -> SparkRunner:
    def connect() -> "SparkSession":
        sessions.append(Session())
        session: SparkSession = sessions[-1]
        return session

    return SparkRunner(connect)


def lose(_session: "SparkSession") -> None:
    raise SparkConnectGrpcException("[INVALID_HANDLE.SESSION_NOT_FOUND] gone\nmore", errorClass=None)


def test_a_lost_session_is_told_and_replaced(runner: SparkRunner, sessions: list[Any]) -> None:
    runner.buckets.add("other")
    assert runner.run(id) == id(sessions[0])
    with pytest.raises(SparkLostError, match=r"SESSION_NOT_FOUND\] gone\n  What"):
        runner.run(lose)
    assert not runner.buckets, "the new session has to be told of other stores"
    assert runner.run(id) == id(sessions[1])
    runner.close()


def test_another_error_keeps_the_session(runner: SparkRunner, sessions: list[Any]) -> None:
    with pytest.raises(ZeroDivisionError):
        runner.run(lambda _session: 1 // 0)
    runner.run(id)
    assert len(sessions) == 1
    runner.close()
