"""Spark sessions that belong to one run: in this process, or on a Spark Connect server.

Each starts with the settings that Spark was started with, not with those that others have set since, and is then
changed according to `session_settings`. It has no temporary views or functions of others.
"""

import atexit
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from backfill_assets.adapters.runtime.java import java_home
from backfill_assets.adapters.runtime.session_settings import CLOSED, Unsettled, changes, pinned, unsettled
from backfill_assets.adapters.runtime.tcp_ports import HOST
from backfill_assets.adapters.spark.patience import ATTACHING_SECONDS, KEEPALIVE, RUNNING_SECONDS, wait_at_most
from backfill_assets.adapters.storage.store_errors import said
from backfill_assets.errors import DeclarationError, EnvironmentSetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Remote", "abandon", "attached", "close", "in_process", "is_remote"]

_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""PySpark's variable of the environment: a token for servers whose address has none."""

_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""PySpark's variable of the environment: all of a process's sessions are on Spark Connect servers."""


_ALWAYS_ASKED_FOR = (
    *("PythonRDD", "PythonSQLUtils", "PythonUtils", "SerDeUtil", "SimplePythonFunction", "functions"),
    *("org.apache.spark.sql.functions", "org.apache.spark.sql.classic.SparkSession"),
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin",
)
"""Classes that PySpark names at each use of a column or a row, most of them without their packages."""


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A Spark Connect server: its address as in PySpark, which may contain a token; or a separate `token`."""

    url: str = field(repr=False)
    token: str | None = field(default=None, repr=False)

    @property
    def host(self) -> str:
        """The server's host."""
        return urlsplit(self.url).hostname or ""

    @property
    def shown(self) -> str:
        """The address without anything that may be a secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    @property
    def full(self) -> str:
        """The address with the token."""
        return f"{self.url}/;token={self.token}" if self.token else self.url


def is_remote(session: "SparkSession") -> bool:
    """Whether a session is a Spark Connect session."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def close(session: "SparkSession") -> None:
    """Close a session. A Spark in this process keeps running for the next session."""
    if is_remote(session):
        wait_at_most(session, 0)  # a server that is gone need not be told
        session.stop()
        atexit.unregister(session.client.close)


def abandon(session: "SparkSession") -> None:
    """Let a session go whose server has lost it, or does not answer: what is still waited for ends at once."""
    session.client._channel.close()
    with suppress(Exception):
        session.client.close()
    atexit.unregister(session.client.close)


def in_process(conf: Mapping[str, str], config: Mapping[str, str]) -> "SparkSession":
    """A session in this process, whose Spark is started with `conf` if it does not run yet.

    Errors: `EnvironmentSetupError` if a running Spark keeps settings that change results, or if this process has used a Spark
    Connect server; `DeclarationError` if Spark refuses the value of a setting.
    """
    from pyspark.sql import SparkSession

    if _CONNECT_MODE in os.environ:
        raise EnvironmentSetupError(
            "this process has used a Spark Connect server, and cannot have a Spark of its own any more; the server is no "
            "longer named by SPARK_REMOTE or by `backfill up`",
            hint="start the server again with `backfill up`, or start a new process",
        )
    # Settings in the sessions of others are not changed.
    with _starting():
        shared = SparkSession.builder.getOrCreate() if _runs_here() else _start(conf)
        _keep_classes(shared)
        session = shared.newSession()
        found = _settings(session)
    return _settled(session, config, found, lambda: _settings(session), "the Spark of this process")


def _keep_classes(session: "SparkSession") -> None:
    """Keep what PySpark always asks for: each time the JVM would look for such a class in all jars, package by package."""
    view: Any = session.sparkContext._jvm
    for name in _ALWAYS_ASKED_FOR:
        if name not in vars(view):
            setattr(view, name, getattr(view, name))


def _settings(session: "SparkSession") -> dict[str, str]:
    """All settings of a session in this process. PySpark would ask for each of them by itself, and find their end by an
    exception, which takes as long as a small query."""
    inner: Any = session
    text = str(inner._jsparkSession.conf().getAll().mkString("\0"))
    return {name: value for name, _, value in (each.partition(" -> ") for each in text.split("\0"))}


def _start(conf: Mapping[str, str]) -> "SparkSession":
    from dagster_pyspark.resources import spark_session_from_config

    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    session: SparkSession = spark_session_from_config({"spark.master": "local[*]", **conf})
    return session


@contextmanager
def _starting() -> Iterator[None]:
    """Tell what Spark says of a value of a setting that it was started with."""
    from pyspark.errors import IllegalArgumentException

    try:
        yield
    except IllegalArgumentException as error:
        raise DeclarationError(
            f"Spark refuses a setting that it was started with: {str(error).splitlines()[0]}",
            hint="correct it in config of SparkResource, or where Spark was started, and start a new process",
            argument="config",
        ) from None


def _runs_here() -> bool:
    """Whether this process has a Spark of its own. One that has died, of lack of memory for example, is forgotten, so that
    another can be started."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is None:
        return False
    try:
        context._jsc.sc().isStopped()
    except (OSError, Py4JError):
        SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
        SparkSession._instantiatedSession = None
        return False
    return True


def attached(remote: Remote, config: Mapping[str, str]) -> "SparkSession":
    """A session on a Spark Connect server.

    Errors: `EnvironmentSetupError` if no server answers, if it requires another token, or if it keeps settings that change
    results.
    """
    if _runs_here():
        raise EnvironmentSetupError(
            "this process has a Spark of its own, beside which it cannot use a Spark Connect server",
            hint="unset SPARK_REMOTE, or start no Spark in this process",
        )
    try:
        session = _connect(remote.full)
        wait_at_most(session, ATTACHING_SECONDS)
        found = session.conf.getAll  # the first request to the server
    except Exception as error:
        raise _refused(remote, error) from None  # its cause may show the token
    wait_at_most(session, RUNNING_SECONDS)
    whose = f"the Spark Connect server at {remote.shown}"
    return _settled(session, config, found, lambda: session.conf.getAll, whose)


def _connect(url: str) -> "SparkSession":
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    os.environ[_CONNECT_MODE] = "1"  # otherwise columns belong to a Spark in this process
    session: Any = RemoteSession.builder.channelBuilder(_channel(url)).create()
    # A channel that is closed by the last garbage collection of a process waits for ever for threads that no longer exist.
    atexit.register(session.client.close)
    return cast("SparkSession", session)


def _channel(url: str) -> Any:
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    class Channel(DefaultChannelBuilder):
        """As in PySpark, which sends a token without TLS only to `localhost`, where a port may belong to another user."""

        def toChannel(self) -> grpc.Channel:  # noqa: N802
            if self.host != HOST or self.use_ssl or self.token is None:
                return super().toChannel()
            token = grpc.access_token_call_credentials(self.token)
            credentials = grpc.composite_channel_credentials(grpc.local_channel_credentials(), token)
            return self._secure_channel(f"ipv4:{self.endpoint}", credentials)

    channel = Channel(url)
    for name, value in KEEPALIVE.items():
        channel.setChannelOption(name, value)
    return channel


def _refused(remote: Remote, error: Exception) -> EnvironmentSetupError:
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    code = error.getGrpcStatusCode().name if isinstance(error, SparkConnectGrpcException) else type(error).__name__
    if code == "UNAUTHENTICATED":
        return EnvironmentSetupError(
            f"the Spark Connect server at {remote.shown} asks for a token, and "
            f"{'this one is wrong' if 'token=' in remote.full or os.environ.get(_TOKEN) else 'none was given'}",
            hint="the token of `backfill up` is in .backfill/spark/token, and is used if SPARK_REMOTE is not set; "
            f"that of another server can be set in {_TOKEN}",
        )
    return EnvironmentSetupError(
        f"no Spark Connect server answered at {remote.shown}: {code}",
        hint="check SPARK_REMOTE, start the local server with `backfill up`, or unset SPARK_REMOTE to run in-process",
    )


def _settled(
    session: "SparkSession",
    config: Mapping[str, str],
    found: Mapping[str, str],
    read: Callable[[], Mapping[str, str]],
    whose: str,
) -> "SparkSession":
    """A session with the settings on which results depend, instead of those that were `found`; `read` gives those that it has
    then. Settings of the JVM are not changed.

    Errors: `EnvironmentSetupError` if the session keeps other settings; `DeclarationError` if Spark refuses one of `config`.
    """
    from pyspark.errors import PySparkException

    wanted = {**{name: value for name, value in config.items() if name.startswith(CLOSED)}, **pinned(found)}
    todo = changes(found, wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a setting of others may be deprecated
        for name in todo.unset:
            with suppress(PySparkException):
                session.conf.unset(name)
        for name, value in todo.set.items():
            with _refusing(name, value) if name in config else suppress(PySparkException):
                session.conf.set(name, value)
    left = unsettled(read(), wanted)
    if left:
        raise _held(whose, left)
    return session


@contextmanager
def _refusing(name: str, value: str) -> Iterator[None]:
    """Tell what Spark says of a setting that `config` has."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise DeclarationError(
            f"SparkResource: config sets {name} to {value!r}, which Spark refuses: {said(error, {})}",
            hint="correct the value in config, or leave it out",
            argument="config",
        ) from None


def _held(whose: str, left: Sequence[Unsettled]) -> EnvironmentSetupError:
    named = "; ".join(
        f"{each.name}: expected {each.expected or 'its default'}, found {each.found or 'none'}" for each in left
    )
    return EnvironmentSetupError(
        f"{whose} was started with settings that change results and cannot be changed in a session: {named}",
        hint="nothing was read. Start Spark with these settings corrected, or use the server of `backfill up`",
        settings=[each.name for each in left],
    )
