"""Spark: one session for each runner, created only when there is work, used from one thread, and cancelled cleanly.

In-process through dagster-pyspark, or by Spark Connect (`session`). In-process PySpark replaces the handler of SIGINT,
and an interrupt inside a call can break its connection. So every action runs on one worker thread while the caller's
thread waits. An interrupt there cancels the action, waits until it has ended, and is then raised. A server that does not
answer is left, and so is an action that does not end, so that an interrupt always ends a run.
"""

import os
import socket
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from dagster import ConfigurableResource
from pydantic import ByteSize, Field, TypeAdapter

from backfill_assets.adapters.local.servers import endpoints, spark_token
from backfill_assets.adapters.runtime.session_settings import not_open
from backfill_assets.adapters.runtime.spark_conf import changed_conf, spark_conf
from backfill_assets.adapters.spark.patience import is_lost, reason_of_loss
from backfill_assets.adapters.spark.reach import check_reached, told
from backfill_assets.adapters.spark.session import Remote, abandon, attached, close, in_process, is_remote
from backfill_assets.adapters.spark.worker import Worker
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.declare.stores import provider_of
from backfill_assets.errors import BackfillError, DeclarationError, EnvironmentSetupError, SparkLostError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkResource", "SparkRunner", "do_nothing"]

T = TypeVar("T")
_SIZE = TypeAdapter(ByteSize)
POLL_SECONDS = 0.25
_REFUSED_SECONDS = 30.0
"""For so long after a session was refused, another one is not asked for."""
CANCEL_SECONDS = 20.0
"""How long a Spark Connect server has time to cancel an action."""
ENDING_SECONDS = 60.0
"""How long an action may go on after that, as what it does in this process cannot be cancelled. One that is left then may
hang for ever. It can only stage files that nobody reads: commits are made by the caller's thread."""


class SparkResource(ConfigurableResource[Any]):
    """Dagster resource: which Spark computes, a Spark Connect server or a session inside the run's own process.

    Attributes:
        remote: A Spark Connect address, `sc://host:port`. By default `SPARK_REMOTE`; if that is not set, the server of
            `backfill up`; if there is none, a session inside the process. Dagster shows what is given here, so an address
            with a token belongs in `SPARK_REMOTE`.
        driver_memory: The heap of a session inside the process.
        config: Further Spark settings. Settings that can change results are refused.
        root: The project's root folder.

    Examples:
        >>> SparkResource(driver_memory="4g", config={"spark.sql.shuffle.partitions": "64"}).memory_bytes
        4294967296
    """

    remote: str | None = Field(
        default=None,
        description="sc://host:port; unset: SPARK_REMOTE, else the server of `backfill up`, else in-process.",
        repr=False,
    )
    driver_memory: str = Field(default="1g", description="Heap of an in-process session.")
    config: dict[str, str] = Field(default_factory=dict, description="Further Spark settings.", repr=False)
    root: str = Field(default=".", description="The project's root folder.")

    @property
    def memory_bytes(self) -> int:
        """The heap of an in-process session in bytes. A server is assumed to have at least as much."""
        return int(_SIZE.validate_python(f"{self.driver_memory.lower().removesuffix('b')}ib"))  # Spark's g is a GiB

    def runner(self, warehouse: Warehouse, *, stores: Collection[str] = ()) -> "SparkRunner":
        """A runner of Spark actions. Spark starts with the first action.

        Args:
            warehouse: The warehouse that Spark reads and writes.
            stores: The providers of other stores in which it reads tables, such as `s3`.

        Returns:
            The runner; close it after use.

        Raises:
            DeclarationError: `config` has a setting that can change results.
            EnvironmentSetupError: The server runs on another machine, and the warehouse is on this one's disk.
        """
        _check_config(self.config)
        remote = self._remote()
        if remote is not None:
            _check_reach(remote, warehouse)
            # A server that was started anew has another token.
            return SparkRunner(lambda: told(attached(self._remote() or remote, self.config), warehouse), warehouse)
        providers = {*stores, provider_of(warehouse.uri)}
        return SparkRunner(lambda: told(self._in_process(providers), warehouse), warehouse)

    def _in_process(self, stores: Collection[str]) -> "SparkSession":
        conf = changed_conf({**spark_conf(stores=stores), "spark.driver.memory": self.driver_memory}, self.config)
        return in_process(conf, self.config)

    def _remote(self) -> Remote | None:
        named = self.remote or os.environ.get("SPARK_REMOTE")
        if named:
            return Remote(url=named)
        running = endpoints(Path(self.root))
        if running is None or running.spark_remote is None:
            return None
        return Remote(url=running.spark_remote, token=spark_token(Path(self.root)))


def do_nothing() -> None:
    """The default of `on_wait`: nothing."""


def _let_be(_session: "SparkSession") -> None:
    """Let a session be whose Spark hangs: whatever it is asked may hang, too."""


class SparkRunner:
    """Runs functions of a session on one thread of its own; the first of them creates the session."""

    def __init__(self, connect: "Callable[[], SparkSession]", warehouse: Warehouse | None = None) -> None:
        self._connect = connect
        self._warehouse = warehouse
        self._reached = warehouse is None
        self._session: SparkSession | None = None
        self._refusal: tuple[float, EnvironmentSetupError] | None = None
        self._thread: Worker | None = None
        self.on_wait: Callable[[], None] = do_nothing
        self.stores: set[str] = set()
        """The stores besides the warehouse's that the session was told of, and reaches."""

    @property
    def started(self) -> bool:
        """Whether a session has been needed."""
        return self._session is not None

    def run(self, action: "Callable[[SparkSession], T]") -> T:
        """Run an action and wait for it, calling `on_wait` at once and a few times a second.

        Any interrupt while waiting cancels Spark's jobs, waits until the thread is idle, and is raised again. The session of
        a server that does not cancel in time is let go, which ends all that waits for it. An action that does not end even so
        is left with its thread and its session; the next one gets others.

        Errors: what the action raises; `EnvironmentSetupError` where Spark has failed and does not reach the warehouse's
        store; `SparkLostError` where a Spark Connect server has lost the session, of which the next action gets another one.
        """
        if self._thread is None:
            self._thread = Worker("spark")
        tag = f"backfill-{uuid.uuid4().hex}"
        future = self._thread.submit(self._on_thread, action, tag)
        try:
            return self._wait(future)
        except BaseException:
            Thread(target=self._cancel, args=(future, tag), daemon=True).start()  # the request itself may hang
            wait([future], timeout=CANCEL_SECONDS)
            if not future.done() and self._session is not None and is_remote(self._session):
                self._forget(abandon)
            wait([future], timeout=ENDING_SECONDS)
            if not future.done():
                self._leave()
            raise

    def reach(self) -> None:
        """Check, once for a session, that it reaches the warehouse's store; an action calls it before Spark writes there.

        Errors: `EnvironmentSetupError`.
        """
        if self._warehouse is not None and not self._reached and self._session is not None:
            check_reached(self._session, self._warehouse)
            self._reached = True

    def note_reached(self) -> None:
        """Take note that the session has read there what no other store has: something that this process has just written."""
        self._reached = True

    def close(self) -> None:
        """Release the thread and the session. A Spark in this process stays up for the next runner."""
        if self._thread is not None:
            self._thread.end(ENDING_SECONDS)
            self._thread = None
        self._forget(close)

    def _leave(self) -> None:
        """Give up a thread that hangs, and its session."""
        if self._thread is not None:
            self._thread.end(0)
            self._thread = None
        self._forget(_let_be)

    def _forget(self, end: "Callable[[SparkSession], None]") -> None:
        """End the session, if there is one."""
        if self._session is not None:
            session, self._session = self._session, None
            self._reached = self._warehouse is None
            self.stores.clear()
            end(session)

    def _wait(self, future: "Future[T]") -> T:
        while True:
            self.on_wait()
            try:
                return future.result(timeout=POLL_SECONDS)
            except FutureTimeoutError:
                if future.done():
                    raise

    def _on_thread(self, action: "Callable[[SparkSession], T]", tag: str) -> T:
        if self._session is None:
            self._session = self._connected()
        session = self._session
        if is_remote(session):
            session.addTag(tag)
        else:
            session.sparkContext.setJobGroup(tag, tag, interruptOnCancel=True)
        try:
            return action(session)
        except Exception as error:
            if not (is_remote(session) and is_lost(error)):
                if not isinstance(error, BackfillError):
                    self.reach()  # a store that is not reached explains it
                raise
            self._forget(abandon)
            raise SparkLostError(
                f"the Spark Connect server has lost the session of this run, or does not answer: {reason_of_loss(error)}",
                hint="nothing was committed; run it again once the server is there",
            ) from error
        finally:
            if is_remote(session):
                session.removeTag(tag)

    def _connected(self) -> "SparkSession":
        """A new session. If one has just been refused, so is this one: each table of a run would wait again."""
        if self._refusal is not None and time.monotonic() - self._refusal[0] < _REFUSED_SECONDS:
            raise self._refusal[1]
        try:
            return self._connect()
        except EnvironmentSetupError as error:
            self._refusal = (time.monotonic(), error)
            raise

    def _cancel(self, future: "Future[T]", tag: str) -> None:
        """Cancel an action until it has ended: a job that starts after a cancel is not cancelled by it."""
        while not future.done():
            session = self._session
            if session is not None and is_remote(session):
                with suppress(Exception):  # of a server that does not answer, the action itself soon learns it, too
                    session.interruptTag(tag)
            elif session is not None:
                session.sparkContext.cancelJobGroup(tag)
            wait([future], timeout=POLL_SECONDS)


def _check_config(config: Mapping[str, str]) -> None:
    refused = not_open(config)
    if not refused:
        return
    named = ", ".join(f"{name} (is {value or 'as Spark has it by default'})" for name, value in refused.items())
    raise DeclarationError(
        f"SparkResource: config has settings that can change results, and must not be set: {named}",
        hint="remove them from config; OPEN in backfill_assets/adapters/runtime/session_settings.py lists what may be set",
        argument="config",
    )


def _check_reach(remote: Remote, warehouse: Warehouse) -> None:
    if not warehouse.is_local or remote.host in {"localhost", "127.0.0.1", "::1", socket.gethostname()}:
        return
    raise EnvironmentSetupError(
        f"Spark at {remote.shown} runs on another host, but the warehouse {warehouse.uri} is on this machine's disk",
        hint="set BACKFILL_WAREHOUSE to an object store or shared file system that both reach",
    )
