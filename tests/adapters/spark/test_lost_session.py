"""A runner whose session is lost gets another one with its next action; one whose server hangs can be interrupted."""

import socket
import threading
from contextlib import nullcontext
from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import grpc
import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from backfill_assets.adapters.spark import resource, session
from backfill_assets.adapters.spark.patience import KEEPALIVE
from backfill_assets.adapters.spark.resource import SparkRunner, do_nothing
from backfill_assets.adapters.spark.session import Remote, _channel, _refused
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.errors import EnvironmentSetupError, SparkLostError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Channel:
    """What a hanging server is asked is waited for until the channel is closed."""

    def __init__(self) -> None:
        self.closed = Event()

    def close(self) -> None:
        self.closed.set()


class Client:
    def __init__(self) -> None:
        self._channel = Channel()
        self.patience: list[Any] = []

    def set_retry_policies(self, policies: list[Any]) -> None:
        self.patience = policies

    def close(self) -> None:
        raise SparkConnectGrpcException("there is nobody to tell", grpc_status_code=grpc.StatusCode.UNAVAILABLE)


class Session:
    """What a runner asks of a Spark Connect session between actions."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self) -> None:
        self.client = Client()
        self.tags: list[str] = []
        self.interrupted: list[str] = []

    def addTag(self, tag: str) -> None:  # noqa: N802
        self.tags.append(tag)

    def removeTag(self, tag: str) -> None:  # noqa: N802
        self.tags.remove(tag)

    def interruptTag(self, tag: str) -> None:  # noqa: N802
        self.interrupted.append(tag)
        hang(self)

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
    runner.stores.add("other")
    assert runner.run(id) == id(sessions[0])
    with pytest.raises(SparkLostError, match=r"SESSION_NOT_FOUND\] gone\n  What"):
        runner.run(lose)
    assert not runner.stores, "the new session has to be told of other stores"
    assert runner.run(id) == id(sessions[1])
    runner.close()


def test_where_there_was_no_server_the_next_table_does_not_wait_for_one_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def connect() -> "SparkSession":
        tries.append(1)
        if len(tries) == 1:
            raise EnvironmentSetupError("no server answered", hint="start it")
        session: Any = Session()
        return cast("SparkSession", session)

    runner = SparkRunner(connect)
    for _ in range(20):
        with pytest.raises(EnvironmentSetupError, match="no server answered"):
            runner.run(id)
    assert len(tries) == 1
    monkeypatch.setattr(resource, "_REFUSED_SECONDS", 0.0)
    assert runner.run(id)
    assert len(tries) == 2
    runner.close()


@pytest.mark.parametrize(
    ("remote", "variable", "said"),
    [
        (Remote(url="sc://h:1"), "", "none was given"),
        (Remote(url="sc://h:1"), "a-secret", "this one is wrong"),
        (Remote(url="sc://h:1", token="a-secret"), "", "this one is wrong"),
        (Remote(url="sc://h:1/;token=a-secret"), "", "this one is wrong"),
    ],
)
def test_a_wrong_token_is_told_from_none(
    monkeypatch: pytest.MonkeyPatch, remote: Remote, variable: str, said: str
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", variable)
    error = _refused(remote, SparkConnectGrpcException("no", grpc_status_code=grpc.StatusCode.UNAUTHENTICATED))
    assert error.message.endswith(said)
    assert "a-secret" not in str(error)


def hang(session: Any) -> None:
    assert session.client._channel.closed.wait(30), "the session was not let go"
    raise SparkConnectGrpcException("Channel closed!", grpc_status_code=grpc.StatusCode.CANCELLED)


def test_an_interrupt_ends_an_action_of_a_server_that_hangs(
    runner: SparkRunner, sessions: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "CANCEL_SECONDS", 0.1)
    hanging = Event()

    def interrupt() -> None:
        if hanging.wait(30):
            raise KeyboardInterrupt

    tags: list[str] = []

    def action(session: Any) -> None:
        tags.extend(session.tags)
        hanging.set()
        hang(session)

    runner.on_wait = interrupt
    with pytest.raises(KeyboardInterrupt):
        runner.run(action)
    assert sessions[0].client._channel.closed.is_set(), "what the run waited for has ended"
    assert (len(tags), sessions[0].interrupted[:1], sessions[0].tags) == (1, tags, [])
    hanging.clear()
    runner.on_wait = do_nothing
    assert runner.run(id) == id(sessions[1])
    runner.close()


def test_another_error_keeps_the_session(runner: SparkRunner, sessions: list[Any]) -> None:
    with pytest.raises(ZeroDivisionError):
        runner.run(lambda _session: 1 // 0)
    runner.run(id)
    assert len(sessions) == 1
    runner.close()


def test_a_server_is_asked_for_signs_of_life() -> None:
    for url in ("sc://127.0.0.1:1/;token=t", "sc://elsewhere:1/;use_ssl=true"):
        assert KEEPALIVE.items() <= dict(_channel(url)._channel_options).items()


def test_a_server_on_this_machine_is_reached_as_spark_does_where_tls_is_asked_for() -> None:
    class OpenedError(Exception):
        pass

    def opened(endpoint: str, credentials: grpc.ChannelCredentials) -> None:
        raise OpenedError(endpoint, credentials)

    url = "sc://127.0.0.1:1/;token=t"
    for given, endpoint in ((url, "ipv4:127.0.0.1:1"), (f"{url};use_ssl=true", "127.0.0.1:1")):
        channel = _channel(given)
        channel._secure_channel = opened
        with pytest.raises(OpenedError) as found:
            channel.toChannel()
        assert found.value.args[0] == endpoint


def test_an_interrupt_ends_an_action_of_a_spark_in_this_process_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "CANCEL_SECONDS", 0.1)
    monkeypatch.setattr(resource, "ENDING_SECONDS", 0.1)
    hanging, released, sessions = Event(), Event(), list[Any]()

    def connect() -> Any:
        context = SimpleNamespace(setJobGroup=lambda *_, **__: None, cancelJobGroup=lambda _: released.wait(30))
        sessions.append(SimpleNamespace(sparkContext=context))
        return sessions[-1]

    def action(_session: "SparkSession") -> None:
        hanging.set()
        released.wait(30)

    def interrupt() -> None:
        if hanging.wait(30):
            raise KeyboardInterrupt

    runner = SparkRunner(connect)
    runner.on_wait = interrupt
    with pytest.raises(KeyboardInterrupt):
        runner.run(action)
    assert not released.is_set(), "it hangs still"
    assert all(each.daemon for each in threading.enumerate() if each.name == "spark"), "a process does not wait for it"
    runner.on_wait = do_nothing
    assert runner.run(id) == id(sessions[1])
    runner.close()
    released.set()


def test_an_action_that_ends_late_is_waited_for_and_keeps_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "CANCEL_SECONDS", 0.01)
    monkeypatch.setattr(resource, "POLL_SECONDS", 0.01)
    cancelled, sessions = Event(), list[Any]()

    def connect() -> Any:
        context = SimpleNamespace(setJobGroup=began, cancelJobGroup=cancel)
        sessions.append(SimpleNamespace(sparkContext=context))
        return sessions[-1]

    groups: list[str] = []

    def began(group: str, _words: str, *, interruptOnCancel: bool) -> None:  # noqa: N803
        assert interruptOnCancel
        groups.append(group)

    def cancel(group: str) -> None:
        """A job that begins after the first call is cancelled by the next one alone."""
        assert group == groups[0]
        groups.append(group)
        if len(groups) > 2:
            cancelled.set()

    def interrupt() -> None:
        raise KeyboardInterrupt

    runner = SparkRunner(connect)
    runner.on_wait = interrupt
    ended: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        runner.run(lambda _session: ended.append(cancelled.wait(30)))
    assert ended == [True]
    runner.on_wait = do_nothing
    assert runner.run(id) == id(sessions[0])
    runner.close()


@pytest.mark.parametrize(("host", "is_here"), [("localhost", True), (socket.gethostname(), True), ("10.1.2.3", False)])
def test_a_warehouse_on_a_disk_needs_a_server_on_the_same_host(host: str, is_here: bool) -> None:
    remote = Remote(url=f"sc://{host}:15002")
    with nullcontext() if is_here else pytest.raises(EnvironmentSetupError, match="runs on another host"):
        resource._check_reach(remote, Warehouse(uri="/a/folder"))
    resource._check_reach(remote, Warehouse(uri="s3a://bucket/a"))


def test_an_action_that_runs_out_of_time_by_itself_is_no_wait(runner: SparkRunner, sessions: list[Any]) -> None:
    def late(_session: object) -> None:
        raise TimeoutError("a lock")

    with pytest.raises(TimeoutError, match="a lock"):
        runner.run(late)
    assert len(sessions) == 1
    runner.close()


def test_a_server_is_refused_beside_a_spark_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_runs_here", lambda: True)
    with pytest.raises(EnvironmentSetupError, match="this process has a Spark of its own"):
        session.attached(Remote(url="sc://localhost:1"), {})


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("odd"), "no Spark Connect server answered at sc://localhost:1: RuntimeError"),
        (SparkConnectGrpcException("x", grpc_status_code=grpc.StatusCode.UNAVAILABLE), "sc://localhost:1: UNAVAILABLE"),
    ],
)
def test_a_server_that_does_not_answer_is_told_by_its_state(error: Exception, said: str) -> None:
    assert said in str(_refused(Remote(url="sc://localhost:1"), error))
