"""A thread that runs one function after the other, and does not keep a process alive that has given it up."""

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import ParamSpec, TypeVar

__all__ = ["Worker"]

P = ParamSpec("P")
T = TypeVar("T")


class Worker:
    """Runs functions in the order in which they come. A process waits at its end for the threads of an executor, even for one
    that hangs; it does not wait for this one."""

    def __init__(self, name: str) -> None:
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Run a function after those that came before; what becomes of it."""
        future: Future[T] = Future()

        def task() -> None:
            try:
                future.set_result(function(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        self._tasks.put(task)
        return future

    def end(self, seconds: float) -> None:
        """Let the thread end after what it has been given, and wait for that, but no longer than this."""
        self._tasks.put(None)
        self._thread.join(seconds)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
            del task  # it holds what the function has returned
