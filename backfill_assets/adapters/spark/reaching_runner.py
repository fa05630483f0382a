"""A runner for views whose tables are in other stores than the warehouse: its session reaches these first."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from backfill_assets.adapters.spark.reach import reach_table
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.storage.upstream_location import TableElsewhere

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ReachingRunner"]

T = TypeVar("T")


class ReachingRunner(SparkRunner):
    """Runs the actions of some views with the thread and the session of another runner, which is closed by its owner.

    Before an action, the session is told of the stores that it was not told of before, and is checked to reach them.
    """

    def __init__(self, runner: SparkRunner, tables: Callable[[], Sequence[TableElsewhere]]) -> None:
        super().__init__(lambda: runner.run(lambda session: session))
        self._runner = runner
        self._tables = tables

    @property
    def started(self) -> bool:
        """Whether a session has been needed."""
        return self._runner.started

    def run(self, action: "Callable[[SparkSession], T]") -> T:
        """Run an action as the other runner does. Errors: `EnvironmentSetupError` if a table is not reached."""

        def reached(session: "SparkSession") -> T:
            for table in self._tables():
                if table.store not in self._runner.stores:
                    reach_table(session, table)
                    self._runner.stores.add(table.store)
            return action(session)

        return self._runner.run(reached)

    def reach(self) -> None:
        """As the other runner does."""
        self._runner.reach()

    def note_reached(self) -> None:
        """As the other runner does."""
        self._runner.note_reached()

    def close(self) -> None:
        """Nothing: the session belongs to the other runner."""
