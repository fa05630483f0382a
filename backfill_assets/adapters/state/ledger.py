"""The ledger: the plans of all tables, one object for each: `<target>/<incarnation>/<epoch>-<revision>.json`.

A plan is stored by put-if-absent, as the first revision of its epoch that its run has not seen. So one of several competing
runs wins an epoch, and runs of different tables share nothing. A run lists only plans at or after its last commit; much
older plans are deleted.
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
from backfill_assets.adapters.storage.store_errors import cannot_be_written
from backfill_assets.core.audit import KEPT_PLANS, LedgerEntry
from backfill_assets.core.epoch.records import CommitRecord, Plan

__all__ = ["ObjectLedger"]

_NAME = re.compile(r"(\d{12})-(\d{4})\.json")


@dataclass
class ObjectLedger:
    """`ports.Ledger` on objects in a folder. Each run has its own instance."""

    folder: ObjectFolder
    left_behind: bool = field(default=False, init=False)
    _seen: dict[tuple[str, str, int], int] = field(default_factory=dict, init=False)
    """The newest revision of the epochs of each life that this run listed last, or planned since."""

    def newest(self, target: str, incarnation: str, *, since: int = 0) -> int | None:
        """List the plans from an epoch on; the next `append` competes with plans that are stored after this call."""
        listed = self._listed(target, incarnation, since)
        others = {key: revision for key, revision in self._seen.items() if key[:2] != (target, incarnation)}
        self._seen = others | {(target, incarnation, epoch): revision for epoch, revision in listed}
        self.left_behind |= bool(listed) and listed[-1][0] > since
        return listed[-1][0] if listed else None

    def plan(self, target: str, incarnation: str, epoch: int) -> Plan | None:
        planned = [entry.plan for entry in self.entries(target, incarnation, since=epoch, until=epoch)]
        return planned[-1] if planned else None

    def entries(self, target: str, incarnation: str, *, since: int, until: int) -> list[LedgerEntry]:
        """The entries of these epochs, oldest first; a superseded plan comes before the one that counts.

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
        """Store a plan; False if another run planned the epoch first. If the outcome is unclear, the ledger is read."""
        key = (plan.target, plan.incarnation, plan.epoch)
        revision = self._seen.get(key, -1) + 1
        name = _name(*key, revision)
        entered = self._enter(name, _content(plan.hash, plan.model_dump(mode="json")))
        if entered:
            self._seen[key] = revision
        return entered

    def _enter(self, name: str, content: bytes) -> bool:
        """Put an object if it is absent; returns whether it is there with this content, whatever the put has said."""
        fault: Exception | None = None
        try:
            if self.folder.put_if_absent(name, content):
                return True
        except Exception as error:  # of as many kinds as there are stores
            fault = error
        stored = self.folder.get(name)
        if stored is None and fault is not None:  # there is no plan, so this is not a race
            raise cannot_be_written(f"{self.folder.uri}/{name}", fault, self.folder.storage_options) from None
        return stored == content

    def rebuild(self, record: CommitRecord) -> None:
        """Store a table's newest commit, so that a ledger that was lost or restored can continue from there."""
        if record.epoch == 0 or self.newest(record.target, record.incarnation, since=record.epoch) is not None:
            return
        name = _name(record.target, record.incarnation, record.epoch, 0)
        self._enter(name, _content(record.plan_hash, None))

    def incarnations(self, target: str) -> set[str]:
        """The incarnations of a table that have plans."""
        return {name.split("/")[-2] for name in self.folder.names(target)}

    def prune(self, record: CommitRecord) -> None:
        """Delete the plans of epochs more than `KEPT_PLANS` below a commit."""
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
        """The epochs and revisions from an epoch on, in order."""
        prefix = f"{target}/{incarnation}"
        names = self.folder.names(prefix, after=f"{prefix}/{since:012d}")
        matches = (_NAME.fullmatch(name.rpartition("/")[2]) for name in names)
        return [(int(match[1]), int(match[2])) for match in matches if match]


def _name(target: str, incarnation: str, epoch: int, revision: int) -> str:
    return f"{target}/{incarnation}/{epoch:012d}-{revision:04d}.json"


def _content(plan_hash: str, plan: object) -> bytes:
    """The content of an object. Its id identifies the attempt, so equal plans of two runs differ."""
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
