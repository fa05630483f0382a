"""What a test sets in a simulated world: how sources are declared, and what an operator asks of a run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from backfill_assets.core.epoch.ports import Controls
from backfill_assets.core.epoch.records import CommitRecord

__all__ = ["Operator", "SourceSettings"]


@dataclass(frozen=True, kw_only=True)
class SourceSettings:
    """How the sources of a world are declared.

    Attributes:
        start: As in `kafka_source`, without timestamps.
        keep_history: Whether the source's table keeps all records from the start on.

    Examples:
        >>> SourceSettings(start="latest").keep_history
        True
    """

    start: str | Mapping[int, int] = "earliest"
    keep_history: bool = True


@dataclass
class Operator:
    """What a run checks between its epochs, set by a test; implements `run.RunHooks`.

    Attributes:
        paused: Whether the table is paused.
        rows_per_second: The throttle; None for none.
        waits_for: Why the run has to end early; empty if it need not.
        after: Called after each epoch with the number of epochs so far, for example to change a setting.
        epochs: The epochs so far.

    Examples:
        >>> Operator(paused=True).controls().paused
        True
    """

    paused: bool = False
    rows_per_second: float | None = None
    waits_for: str = ""
    after: Callable[[int], None] | None = None
    epochs: list[int] = field(default_factory=list)

    def controls(self) -> Controls:
        """The current settings."""
        return Controls(paused=self.paused, rows_per_second=self.rows_per_second)

    def after_epoch(self, record: CommitRecord) -> None:
        """Record an epoch, and call `after`.

        Args:
            record: What the epoch's commit recorded.
        """
        self.epochs.append(record.epoch)
        if self.after is not None:
            self.after(len(self.epochs))

    def backpressure(self) -> str:
        """Why the run has to end early; empty if it need not."""
        return self.waits_for
