"""The state store: the warehouse's `_state/` tables (ledger, control, leases, checks) as one Dagster resource.

All are Delta tables that anyone may read. None of them is the truth about a view: that is the view's own log.
"""

import os
import socket
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from dagster import ConfigurableResource
from pydantic import BaseModel, Field, ValidationError, field_validator

from backfill_assets.backfill.ports import Controls
from backfill_assets.errors import DeclarationError
from backfill_assets.resources._process import Process, is_alive
from backfill_assets.resources.keyed_log import KeyedLog
from backfill_assets.resources.ledger import DeltaLedger
from backfill_assets.resources.warehouse import Warehouse

__all__ = ["LEASE_SECONDS", "CheckPass", "Lease", "State", "StateStore"]

LOCAL = "local"
LEASE_SECONDS = 60.0
"""A lease that was not renewed for this long is taken for a dead run's."""

_TEXT, _NUMBER = pa.string(), pa.float64()


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right of one run to work on a table, as last renewed."""

    target: str
    run_id: str
    host: str
    pid: int
    process_started: float
    held: bool
    renewed_at: datetime

    def alive(self, now: datetime) -> bool:
        """Whether its run may still be at work: renewed lately, and on this host its process is still there."""
        if not self.held or (now - self.renewed_at).total_seconds() > LEASE_SECONDS:
            return False
        return self.host != socket.gethostname() or self._process_runs()

    def dead(self, now: datetime) -> bool:
        """Whether its run ended without giving it back. A process of this host that is only slow is not dead."""
        if self.host == socket.gethostname():
            return self.held and not self._process_runs()
        return self.held and not self.alive(now)

    def _process_runs(self) -> bool:
        return is_alive(Process(pid=self.pid, created=self.process_started))


@dataclass(frozen=True, kw_only=True)
class CheckPass:
    """Up to where a check has proved a table."""

    incarnation: str
    epoch: int


class State:
    """The tables of the state store of one warehouse."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self._control = self._keyed("control", ("target",), rows_per_second=_NUMBER, paused=pa.bool_(), by=_TEXT)
        self._leases = self._keyed(
            "leases",
            ("target",),
            run_id=_TEXT,
            host=_TEXT,
            pid=pa.int64(),
            process_started=_NUMBER,
            held=pa.bool_(),
        )
        self._checks = self._keyed("checks", ("target", "check"), incarnation=_TEXT, epoch=pa.int64())

    def ledger(self) -> DeltaLedger:
        """A ledger for one run."""
        return DeltaLedger(self.warehouse.table("_state/ledger"))

    def controls(self, target: str) -> Controls:
        """What the operator has set for a table."""
        return self.all_controls().get(target, Controls())

    def all_controls(self) -> dict[str, Controls]:
        """What the operator has set, by table."""
        return {
            str(row["target"]): Controls(paused=bool(row["paused"]), rows_per_second=_float(row["rows_per_second"]))
            for row in self._control.newest()
        }

    def set_controls(self, target: str, controls: Controls, *, by: str) -> None:
        """Set pause and throttle of a table; they hold until they are set again."""
        row = {"target": target, "paused": controls.paused, "rows_per_second": controls.rows_per_second, "by": by}
        self._control.put(row, at=datetime.now(UTC))

    def leases(self) -> dict[str, Lease]:
        """The newest lease of each table, dead or alive."""
        return {str(row["target"]): _lease(row) for row in self._leases.newest()}

    def put_lease(self, target: str, run_id: str, *, held: bool) -> None:
        """Take, renew or give back the lease of a table for the current process."""
        pid = os.getpid()
        row = {
            "target": target,
            "run_id": run_id,
            "host": socket.gethostname(),
            "pid": pid,
            "process_started": psutil.Process(pid).create_time(),
            "held": held,
        }
        self._leases.put(row, at=datetime.now(UTC))

    def passed(self, target: str, check: str) -> CheckPass | None:
        """Up to where a check last proved a table."""
        for row in self._checks.newest():
            if (row["target"], row["check"]) == (target, check):
                return CheckPass(incarnation=str(row["incarnation"]), epoch=int(str(row["epoch"])))
        return None

    def set_passed(self, target: str, check: str, passed: CheckPass) -> None:
        """Remember up to where a check proved a table."""
        row = {"target": target, "check": check, "incarnation": passed.incarnation, "epoch": passed.epoch}
        self._checks.put(row, at=datetime.now(UTC))

    def forget(self, target: str, lives: Collection[str]) -> None:
        """Leave nothing of a dropped table and its past lives behind."""
        for incarnation in lives:
            self.ledger().remove(target, incarnation)
        for table in (self._control, self._leases, self._checks):
            table.remove("target", target)

    def _keyed(self, name: str, keys: tuple[str, ...], **columns: pa.DataType) -> KeyedLog:
        fields = [*((key, _TEXT) for key in keys), *columns.items()]
        return KeyedLog(location=self.warehouse.table(f"_state/{name}"), columns=pa.schema(fields), keys=keys)


class StateStore(ConfigurableResource[State]):
    """Where sources, views and their state are kept.

    `storage` has the fields of a storage configuration of `dagster_deltalake`: of its `S3Config` with `provider` `s3`, of
    `AzureConfig` with `azure`, of `GcsConfig` with `gcs`; with `local` none.
    """

    warehouse: str = Field(default="warehouse", description="Folder or URI; relative to the project's root.")
    root: str = Field(default=".", description="The project's root folder.")
    storage: dict[str, str] = Field(default={"provider": LOCAL}, description="How the warehouse's storage is reached.")

    @field_validator("storage", mode="before")
    @classmethod
    def _texts(cls, given: Any) -> Any:
        """What is not set is left out, and YAML's own `true` is as good as a text."""
        if not isinstance(given, Mapping):
            raise _no_storage(f"expected a mapping, found {type(given).__name__}")
        return {
            name: str(each).lower() if isinstance(each, bool) else each
            for name, each in given.items()
            if each is not None
        }

    @property
    def place(self) -> Warehouse:
        """The warehouse. Errors: `DeclarationError` for a storage configuration that is none."""
        options = _storage_options(self.storage)
        return Warehouse.at(self.warehouse, root=Path(self.root), storage_options=options)

    def state(self) -> State:
        """The state tables."""
        return State(self.place)


def _storage_options(given: Mapping[str, str]) -> dict[str, str]:
    """The options as delta-rs takes them, checked by the configuration of their provider."""
    if given == {"provider": LOCAL}:
        return {}
    # Not above: it brings pandas, which would take each command over a local warehouse a sixth of a second.
    from dagster_deltalake import AzureConfig, GcsConfig, LocalConfig, S3Config

    kinds: Mapping[str, type[BaseModel]] = {LOCAL: LocalConfig, "s3": S3Config, "azure": AzureConfig, "gcs": GcsConfig}
    kind = kinds.get(given.get("provider", ""))
    if kind is None:
        raise _no_storage(f"expected provider to be one of {', '.join(kinds)}, found {given.get('provider', 'none')}")
    if unknown := sorted(given.keys() - kind.model_fields.keys()):
        raise _no_storage(f"{kind.__name__} has no {', '.join(unknown)}")
    try:
        found = kind(**given).model_dump(exclude={"provider"}, exclude_none=True)
    except ValidationError as error:
        raise _no_storage(str(error)) from None
    return {name: str(value) for name, value in found.items()}


def _no_storage(why: str) -> DeclarationError:
    return DeclarationError(
        f"StateStore: storage cannot be used: {why}",
        hint="give `provider` and the fields of its configuration in dagster_deltalake, for example of S3Config",
        argument="storage",
    )


def _lease(row: dict[str, Any]) -> Lease:
    return Lease(
        target=row["target"],
        run_id=row["run_id"],
        host=row["host"],
        pid=row["pid"],
        process_started=row["process_started"],
        held=row["held"],
        renewed_at=row["written_at"],
    )


def _float(value: object) -> float | None:
    return None if value is None else float(str(value))
