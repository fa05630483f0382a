"""The state store: what the warehouse's `_state/` folder holds (plans, leases, controls, passes), as one Dagster resource.

Each is a JSON document of one table, so runs of different tables share nothing. Anyone may read them. The truth about a view
is in none of them, but in the view's own log.
"""

import os
import socket
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagster import ConfigurableResource
from pydantic import AwareDatetime, Field, PositiveInt, TypeAdapter, field_validator

from backfill_assets.adapters.runtime.processes import Process, is_alive, process_of
from backfill_assets.adapters.state.ledger import ObjectLedger
from backfill_assets.adapters.state.table_documents import Documents
from backfill_assets.adapters.storage.documents import CONTROLS, LEASE, PASS, SKIP
from backfill_assets.adapters.storage.object_store import Stored
from backfill_assets.adapters.storage.options import storage_options
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.core.epoch.ports import Controls
from backfill_assets.core.epoch.skips import Skip, read_skip
from backfill_assets.declare.stores import LOCAL, as_declared, storage_of
from backfill_assets.errors import StoredFormatError

if TYPE_CHECKING:
    from obstore import PutResult

__all__ = ["LEASE_SECONDS", "CheckPass", "Lease", "State", "StateStore"]

LEASE_SECONDS = 60.0
"""A lease that was not renewed for this long counts as that of a dead run."""
MOST_AHEAD = 3600.0
"""Clocks of hosts differ. A lease that was renewed so many seconds from now is one of a wrong clock, and tells nothing."""
_TABLES = "_state/tables"
"""Lease, controls and rows to leave out of a table lie together, so that one list tells a run all of it."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right of one run to work on a table, as last renewed."""

    target: str
    run_id: str
    host: str
    pid: PositiveInt
    process_started: float
    renewed_at: AwareDatetime

    def alive(self, now: datetime) -> bool:
        """Whether its run may still work: it was renewed recently and, if it is on this host, its process still exists."""
        if not -MOST_AHEAD <= (now - self.renewed_at).total_seconds() <= LEASE_SECONDS:
            return False
        return self.host != socket.gethostname() or self._process_runs()

    def dead(self, now: datetime) -> bool:
        """Whether its run ended without releasing it. A process on this host that is only slow is not dead."""
        if self.host == socket.gethostname():
            return not self._process_runs()
        return not self.alive(now)

    def _process_runs(self) -> bool:
        return is_alive(Process(pid=self.pid, created=self.process_started))


@dataclass(frozen=True, kw_only=True)
class CheckPass:
    """The last pass of a check: the epoch, and the version of the table, up to which it proved the table."""

    incarnation: str
    epoch: int
    version: int


class State:
    """The state store of one warehouse.

    What is asked for with `again=False` is told by the last list of a table, or one that is made then; what has not changed
    since it was read is not requested. Errors of all that is read: `StoredFormatError`.
    """

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        of_tables = partial(Documents, place=_TABLES, warehouse=warehouse)
        self._controls = of_tables(kind=CONTROLS, make=_controls, inside="/controls")
        self._leases = of_tables(kind=LEASE, make=_lease, inside="/lease", empty_is_none=True)
        self._skips = of_tables(kind=SKIP, make=_skip, inside="/skips")
        self._passes = Documents(place="_state/passes", kind=PASS, warehouse=warehouse, make=_pass)
        self._listed: dict[str, Mapping[str, Stored]] = {}
        self._put_leases: dict[str, PutResult] = {}

    def check_layout(self) -> None:
        """Refuse a warehouse where an earlier release has kept what the operator has set: nobody would read it there."""
        for place in ("_state/controls", "_state/skips"):
            if found := self.warehouse.objects(place).names(""):
                raise StoredFormatError(
                    f"the warehouse {self.warehouse.uri} has settings of an earlier release: expected them below {_TABLES}, "
                    f"found {place}/{found[0]}",
                    hint="go on with the release that wrote them; or delete _state/controls and _state/skips, and pause, "
                    "throttle and skip again",
                    place=place,
                )

    def ledger(self) -> ObjectLedger:
        """A ledger for one run."""
        return ObjectLedger(self.warehouse.objects("_state/plans"))

    def controls(self, target: str, *, again: bool = True) -> Controls:
        """What the operator has set for a table."""
        return next(iter(self._controls.listed(target, self._list(target, again=again))), Controls())

    def all_controls(self) -> Mapping[str, Controls]:
        """What the operator has set, by table; an error is that of the table that is asked for."""
        return self._controls.all()

    def set_controls(self, target: str, controls: Controls, *, by: str) -> None:
        """Set pause and throttle of a table; they apply until they are set again."""
        name = self._controls.name(target)
        self._controls.put(name, paused=controls.paused, rows_per_second=controls.rows_per_second, by=by)

    def skips(self, target: str, *, again: bool = True) -> list[Skip]:
        """The rows that the operator wants a view to leave out."""
        return self._skips.listed(target, self._list(target, again=again))

    def add_skip(self, target: str, skip: Skip, *, by: str) -> None:
        """Make a view leave a row out. Each row has a document of its own, so concurrent changes are not lost."""
        self._skips.put(self._skips.name(target, skip.id), skip=skip.model_dump(mode="json"), by=by)

    def remove_skip(self, target: str, skip: Skip) -> None:
        """Make a view take a row back."""
        self._skips.folder.delete([self._skips.name(target, skip.id)])

    def lease(self, target: str, *, again: bool = True) -> Lease | None:
        """The newest lease of a table, dead or alive; None if it was given back."""
        return next(iter(self._leases.listed(target, self._list(target, again=again))), None)

    def leases(self) -> Mapping[str, Lease]:
        """The lease of each table that has one, dead or alive; an error is that of the table that is asked for."""
        return self._leases.all()

    def put_lease(self, target: str, run_id: str) -> None:
        """Take or renew the lease of a table for the current process."""
        self._put_leases[target] = self._leases.put(self._leases.name(target), **_own(run_id))

    def release_lease(self, target: str, run_id: str) -> None:
        """Give back a lease that `put_lease` took, unless another run has taken it over since."""
        put = self._put_leases.pop(target, None)
        if put is not None and not self.warehouse.is_local:
            # Who holds it is asked where the store does not replace on this condition, or has another lease: that of another
            # run, or one of this run that was put, though the store's reply was lost.
            with suppress(Exception):
                if self._leases.folder.put_over(self._leases.name(target), b"", put):
                    return
        with suppress(StoredFormatError):  # a successor of another release
            lease = self.lease(target)
            if lease is not None and lease.run_id == run_id:
                self.free_lease(target)

    def free_lease(self, target: str) -> None:
        """Give back the lease of a table, whoever has it. What is left is empty, which a list tells."""
        self._leases.folder.put(self._leases.name(target), b"")

    def passed(self, target: str, check: str) -> CheckPass | None:
        """The last pass of a check; None if it is unknown, so that everything has to be proved."""
        return self._passes.get(self._passes.name(target, check))

    def set_passed(self, target: str, check: str, passed: CheckPass) -> None:
        """Store up to where a check proved a table."""
        self._passes.put(self._passes.name(target, check), **asdict(passed))

    def forget_unreadable(self, target: str) -> list[str]:
        """Delete all documents of a table that cannot be read; returns the names of the objects."""
        kinds = (self._controls, self._leases, self._passes, self._skips)
        return [name for kind in kinds for name in kind.remove_unreadable(target)]

    def forget(self, target: str, incarnations: Collection[str]) -> None:
        """Delete everything about a dropped table and its past incarnations."""
        for incarnation in incarnations:
            self.ledger().remove(target, incarnation)
        for documents in (self._controls, self._leases, self._passes, self._skips):
            documents.remove(target)

    def _list(self, target: str, *, again: bool) -> Mapping[str, Stored]:
        if again or target not in self._listed:
            self._listed[target] = self._leases.folder.listed(target)
        return self._listed[target]


class StateStore(ConfigurableResource[State]):
    """Dagster resource: where sources, views and their state are stored.

    Attributes:
        warehouse: A folder or URI. A relative path starts at the project's root.
        root: The project's root folder.
        storage: How to reach an object store: `provider`, and the fields of the storage configuration that
            `dagster_deltalake` has for it (`s3`: `S3Config`, `azure`: `AzureConfig`, `gcs`: `GcsConfig`) and of its
            `ClientConfig`, or such a configuration itself. `local` has none. Spark is told the same of them. A
            value `env:NAME` is read from the environment when it is used, and never stored. Dagster shows all other values,
            so `build_definitions` refuses keys that are written here. Keys that are not declared are found by delta-rs and
            Spark, each for itself; endpoint and region of S3 may come from `AWS_ENDPOINT_URL` and `AWS_REGION`.

    Examples:
        >>> store = StateStore(warehouse="s3://lake/warehouse", storage={"provider": "s3", "region": "eu-central-1"})
        >>> store.place.uri
        's3://lake/warehouse'
    """

    warehouse: str = Field(default="warehouse", description="Folder or URI; relative to the project's root.")
    root: str = Field(default=".", description="The project's root folder.")
    storage: dict[str, str] = Field(
        default={"provider": LOCAL}, description="How the warehouse's storage is reached.", repr=False
    )

    @field_validator("storage", mode="before")
    @classmethod
    def _texts(cls, given: Any) -> Any:
        with storage_of("StateStore"):
            return as_declared(given)

    @property
    def place(self) -> Warehouse:
        """The warehouse.

        Raises:
            DeclarationError: `storage` is not a valid storage configuration.
            EnvironmentSetupError: A variable that it names is not set.
        """
        with storage_of("StateStore"):
            options = storage_options(self.storage, uri=self.warehouse)
        return Warehouse.at(self.warehouse, root=Path(self.root), storage_options=options)

    def state(self) -> State:
        """The plans, leases, controls and check results of the warehouse, ready to read and write."""
        return State(self.place)


_LEASE, _CONTROLS, _PASS = TypeAdapter(Lease), TypeAdapter(Controls), TypeAdapter(CheckPass)
"""They are checked as they are read, because anybody may have written them."""


def _own(run_id: str) -> dict[str, object]:
    """What a lease says of the current process."""
    process = process_of(os.getpid())
    return {"run_id": run_id, "host": socket.gethostname(), "pid": process.pid, "process_started": process.created}


def _controls(_target: str, document: Mapping[str, Any]) -> Controls:
    given = {name: document[name] for name in ("paused", "rows_per_second")}
    found = _CONTROLS.validate_python(given)
    if found.rows_per_second is not None and not found.rows_per_second >= 0:
        raise ValueError(f"expected rows per second, or null, found {found.rows_per_second}")
    return found


def _pass(_target: str, document: Mapping[str, Any]) -> CheckPass:
    given = {name: document[name] for name in ("incarnation", "epoch", "version")}
    return _PASS.validate_python(given)


def _skip(_target: str, document: Mapping[str, Any]) -> Skip:
    return read_skip(document["skip"])


def _lease(target: str, document: Mapping[str, Any]) -> Lease:
    given = {name: document[name] for name in ("run_id", "host", "pid", "process_started")}
    renewed_at = datetime.fromisoformat(document["written_at"])
    return _LEASE.validate_python({"target": target, "renewed_at": renewed_at, **given})
