"""The ledger: the plans of all tables, each an object of its own: `<target>/<incarnation>/<epoch>-<revision>.json`.

A plan is entered by put-if-absent of the first revision of its epoch that its run has not seen. So of rivals for one epoch
one wins, and runs of different tables share nothing. A run lists what comes at or after its last commit and nothing
older; plans far below that are pruned.
"""

import json
import re
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from backfill_assets.adapters.storage.documents import PLAN
from backfill_assets.adapters.storage.object_store import ObjectFolder
from backfill_assets.core.audit import KEPT_PLANS, LedgerEntry
from backfill_assets.core.epoch.records import CommitRecord, Plan

__all__ = ["ObjectLedger"]

_NAME = re.compile(r"(\d{12})-(\d{4})\.json")


@dataclass
class ObjectLedger:
    """`ports.Ledger` on objects below a folder. One instance serves one run."""

    folder: ObjectFolder
    _seen: dict[tuple[str, str, int], int] = field(default_factory=dict, init=False)
    """The newest revision of the epochs of each life that this run listed last, or planned since."""

    def newest(self, target: str, incarnation: str, *, since: int = 0) -> int | None:
        """List the plans from an epoch on; the next `append` competes with those that come after this."""
        listed = self._listed(target, incarnation, since)
        others = {key: revision for key, revision in self._seen.items() if key[:2] != (target, incarnation)}
        self._seen = others | {(target, incarnation, epoch): revision for epoch, revision in listed}
        return listed[-1][0] if listed else None

    def plan(self, target: str, incarnation: str, epoch: int) -> Plan | None:
        planned = [entry.plan for entry in self.entries(target, incarnation, since=epoch, until=epoch)]
        return planned[-1] if planned else None

    def entries(self, target: str, incarnation: str, *, since: int, until: int) -> list[LedgerEntry]:
        """The entries of these epochs, oldest first; a superseded plan comes before the one in force.

        Errors: `StoredFormatError`.
        """
        names = [
            _name(target, incarnation, epoch, revision)
            for epoch, revision in self._listed(target, incarnation, since)
            if epoch <= until
        ]
        contents = self.folder.get_all(names)
        return [
            _entry(target, name, content) for name, content in zip(names, contents, strict=True) if content is not None
        ]

    def append(self, plan: Plan) -> bool:
        """Enter a plan; False where a rival planned the epoch first. An unclear outcome is settled by looking."""
        key = (plan.target, plan.incarnation, plan.epoch)
        revision = self._seen.get(key, -1) + 1
        name = _name(*key, revision)
        content = _content(plan.hash, plan.model_dump(mode="json"))
        try:
            entered = self.folder.put_if_absent(name, content) or self.folder.get(name) == content
        except Exception:
            stored = self.folder.get(name)
            if stored is None:  # nobody's plan is there, so this is no race but a fault
                raise
            entered = stored == content
        if entered:
            self._seen[key] = revision
        return entered

    def rebuild(self, record: CommitRecord) -> None:
        """Enter a table's newest commit, so that a ledger that was lost or restored can go on from there."""
        if record.epoch == 0 or self.newest(record.target, record.incarnation, since=record.epoch) is not None:
            return
        name = _name(record.target, record.incarnation, record.epoch, 0)
        self.folder.put_if_absent(name, _content(record.plan_hash, None))

    def incarnations(self, target: str) -> set[str]:
        """The incarnations of a table of which there are plans."""
        return {name.split("/")[-2] for name in self.folder.names(target)}

    def prune(self, record: CommitRecord) -> None:
        """Delete the plans that lie more than `KEPT_PLANS` epochs below a commit."""
        listed = self._listed(record.target, record.incarnation, 0)
        self.folder.delete([
            _name(record.target, record.incarnation, epoch, revision)
            for epoch, revision in listed
            if epoch <= record.epoch - KEPT_PLANS
        ])

    def remove(self, target: str, incarnation: str) -> None:
        """Delete all plans of one incarnation of a table."""
        self.folder.delete(self.folder.names(f"{target}/{incarnation}"))

    def _listed(self, target: str, incarnation: str, since: int) -> list[tuple[int, int]]:
        """The epochs and revisions that are there from an epoch on, in order."""
        prefix = f"{target}/{incarnation}"
        names = self.folder.names(prefix, after=f"{prefix}/{since:012d}")
        matches = (_NAME.fullmatch(name.rpartition("/")[2]) for name in names)
        return [(int(match[1]), int(match[2])) for match in matches if match]


def _name(target: str, incarnation: str, epoch: int, revision: int) -> str:
    return f"{target}/{incarnation}/{epoch:012d}-{revision:04d}.json"


def _content(plan_hash: str, plan: object) -> bytes:
    """What an object holds. Its id makes it this attempt's own: equal plans of two runs differ."""
    planned_at = datetime.now(UTC).isoformat()
    entry = {"id": uuid.uuid4().hex, "planned_at": planned_at, "plan_hash": plan_hash, "plan": plan}
    return json.dumps(PLAN.written(entry)).encode()


def _entry(target: str, name: str, content: bytes) -> LedgerEntry:
    made = partial(_entered, int(name.rpartition("/")[2][:12]))
    return PLAN.read(content, made, target=target, place=f"object _state/plans/{name}")


def _entered(epoch: int, stored: dict[str, Any]) -> LedgerEntry:
    plan = None if stored["plan"] is None else json.dumps(stored["plan"])
    return LedgerEntry(
        epoch=epoch,
        plan_hash=stored["plan_hash"],
        plan=None if plan is None else Plan.model_validate_json(plan),
        found_hash=stored["plan_hash"] if plan is None else Plan.hash_of(plan),
    )
