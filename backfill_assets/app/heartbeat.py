"""What a run does between its epochs: renew the lease, read the controls, report commits, compact the table."""

import logging
import time
from collections.abc import Callable, Set
from dataclasses import dataclass, field

from backfill_assets.adapters.delta.staging import sweep
from backfill_assets.adapters.storage.store_errors import mask
from backfill_assets.app.dependents import awaited_view, expire_log
from backfill_assets.app.wiring.table import Table
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.ports import Controls
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.errors import EnvironmentSetupError

__all__ = ["Heartbeat", "Listener"]

HEARTBEAT_SECONDS = 10.0
COMPACT_FILES = 100
TIDY_EVERY = 50

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Listener:
    """Callbacks of a run: for commits, at intervals; when the table of a long run becomes live; and for the id of a dead run
    whose lease it took over."""

    on_commit: Callable[[CommitRecord], None] = lambda _record: None
    on_live: Callable[[CommitRecord], None] = lambda _record: None
    on_takeover: Callable[[str], None] = lambda _run_id: None


@dataclass
class Heartbeat:
    """`run.RunHooks` for one run of one table: lease, controls, reports at intervals, compaction."""

    workspace: Workspace
    table: Table
    run_id: str
    listener: Listener
    endless: bool
    yields_to_views: bool
    renewed_at: float = 0.0
    last_reported: float = field(default_factory=time.monotonic)
    tidy_due: bool = False
    spooled: Set[str] = frozenset()
    epochs: int = 0
    asked: bool = False

    def controls(self) -> Controls:
        if self.held:
            self.renew_lease()
        again, self.asked = self.asked, True  # the run has begun with a list of what there is
        return self.workspace.state.controls(self.table.target, again=again)

    def backpressure(self) -> str:
        if not self.yields_to_views:
            return ""
        return awaited_view(self.workspace, self.table.declared.name, run_id=self.run_id)

    @property
    def held(self) -> bool:
        """Whether this run has taken the lease; one that finds nothing to do does not."""
        return self.renewed_at > 0

    def renew_lease(self) -> None:
        """Take the lease, or renew it at intervals; called whenever Spark has work, and between epochs from then on."""
        now = time.monotonic()
        if self.held and now - self.renewed_at < HEARTBEAT_SECONDS:
            return
        self.renewed_at = now
        try:
            self.workspace.state.put_lease(self.table.target, self.run_id)
        except EnvironmentSetupError as error:
            _log.warning("%s: the lease could not be renewed: %s", self.table.target, error)
        except Exception as error:  # no guarantee depends on the lease: work must not end because it cannot be renewed
            mask(error)
            _log.warning("%s: the lease could not be renewed", self.table.target, exc_info=True)

    def after_epoch(self, record: CommitRecord) -> None:
        now = time.monotonic()
        if now - self.last_reported >= HEARTBEAT_SECONDS:
            self.listener.on_commit(record)
            self.last_reported = now
        if self.endless and record.live:
            self.endless = False
            if self.table.output.set_status("live"):
                self.listener.on_live(record)
        spooled, ledger = set(record.spooled.values()), self.table.parts.ledger
        # Who planned an epoch and did not commit it may have left staged files.
        if self.tidy_due or ledger.left_behind or self.spooled - spooled:
            sweep(self.table.output.location, self.table.output.look)
            self.tidy_due = ledger.left_behind = False
        self.spooled = spooled
        if record.epoch % TIDY_EVERY == 0:  # not in each run: both list what there is
            expire_log(self.workspace, self.table)
            self.workspace.state.ledger().prune(record)
        if self.epochs % TIDY_EVERY == 0:
            self.table.output.compact(COMPACT_FILES)
        self.epochs += 1
