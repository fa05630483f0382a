"""The state store: what the warehouse's `_state/` folder holds (plans, leases, controls, passes), as one Dagster resource.

Each is a JSON document of one table, so runs of different tables share nothing. Anyone may read them. The truth about a view
is in none of them, but in the view's own log.
"""

import json
import os
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import psutil
from dagster import ConfigurableResource
from pydantic import Field, field_validator

from backfill_assets.adapters.runtime.processes import Process, is_alive
from backfill_assets.adapters.state.ledger import ObjectLedger
from backfill_assets.adapters.storage.documents import CONTROLS, LEASE, PASS, SKIP, DocumentKind
from backfill_assets.adapters.storage.object_store import ObjectFolder
from backfill_assets.adapters.storage.options import storage_options
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.core.epoch.ports import Controls
from backfill_assets.core.epoch.skips import Skip, read_skip
from backfill_assets.declare.stores import LOCAL, as_declared, storage_of
from backfill_assets.errors import StoredFormatError

if TYPE_CHECKING:
    from obstore import PutResult

__all__ = ["LEASE_SECONDS", "CheckPass", "Lease", "State", "StateStore"]

T = TypeVar("T")

LEASE_SECONDS = 60.0
"""A lease that was not renewed for this long counts as that of a dead run."""


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
        """Whether its run may still work: it was renewed recently and, if it is on this host, its process still exists."""
        if not self.held or (now - self.renewed_at).total_seconds() > LEASE_SECONDS:
            return False
        return self.host != socket.gethostname() or self._process_runs()

    def dead(self, now: datetime) -> bool:
        """Whether its run ended without releasing it. A process on this host that is only slow is not dead."""
        if self.host == socket.gethostname():
            return self.held and not self._process_runs()
        return self.held and not self.alive(now)

    def _process_runs(self) -> bool:
        return is_alive(Process(pid=self.pid, created=self.process_started))


@dataclass(frozen=True, kw_only=True)
class CheckPass:
    """The last pass of a check: the epoch, and the version of the table, up to which it proved the table."""

    incarnation: str
    epoch: int
    version: int


@dataclass(frozen=True, eq=False)
class _Read(Mapping[str, T]):
    """One JSON document for each key, such as `views/revenue`. A document is replaced as a whole."""

    documents: "_Documents[T]"
    contents: Mapping[str, bytes]

    def __getitem__(self, key: str) -> T:
        return self.documents.read(key, self.contents[key])

    def __contains__(self, key: object) -> bool:
        return key in self.contents

    def __iter__(self) -> Iterator[str]:
        return iter(self.contents)

    def __len__(self) -> int:
        return len(self.contents)


@dataclass(frozen=True, kw_only=True)
class _Documents(Generic[T]):
    """One JSON document for each key, such as `views/revenue`. The newest one counts; each is written at once.

    Reading one that is of another format, or damaged, is a `StoredFormatError`.
    """

    name: str
    kind: DocumentKind
    warehouse: Warehouse
    make: Callable[[str, dict[str, Any]], T]

    @cached_property
    def folder(self) -> ObjectFolder:
        """Where they lie."""
        return self.warehouse.objects(f"_state/{self.name}")

    def put(self, key: str, **document: object) -> "PutResult":
        return self.folder.put(f"{key}.json", self.content(**document))

    def content(self, **document: object) -> bytes:
        written = self.kind.written({**document, "written_at": datetime.now(UTC).isoformat()})
        return json.dumps(written).encode()

    def get(self, key: str) -> T | None:
        content = self.folder.get(f"{key}.json")
        return None if content is None else self.read(key, content)

    def read(self, key: str, content: bytes) -> T:
        target = "/".join(key.split("/")[:2])
        place = f"object _state/{self.name}/{key}.json"
        return self.kind.read(content, partial(self.make, target), target=target, place=place)

    def all(self) -> Mapping[str, T]:
        """The documents of all sources and views, by key."""
        names = [name for kind in ("sources", "views") for name in self.folder.names(kind)]
        contents = zip(names, self.folder.get_all(names), strict=True)
        return _Read(self, {name.removesuffix(".json"): found for name, found in contents if found is not None})

    def of(self, target: str) -> list[str]:
        """The names of the documents of a table."""
        return [f"{target}.json", *self.folder.names(target)]

    def remove(self, target: str) -> None:
        """Delete the documents of a table."""
        self.folder.delete(self.of(target))

    def remove_unreadable(self, target: str) -> list[str]:
        """Delete those documents of a table that cannot be read; their names."""
        found = [name for name in self.of(target) if not self._is_readable(name)]
        self.folder.delete(found)
        return found

    def _is_readable(self, name: str) -> bool:
        try:
            self.get(name.removesuffix(".json"))
        except StoredFormatError:
            return False
        return True


class State:
    """The state store of one warehouse."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self._controls = _Documents(name="controls", kind=CONTROLS, warehouse=warehouse, make=_controls)
        self._leases = _Documents(name="leases", kind=LEASE, warehouse=warehouse, make=_lease)
        self._passes = _Documents(name="passes", kind=PASS, warehouse=warehouse, make=_pass)
        self._skips = _Documents(name="skips", kind=SKIP, warehouse=warehouse, make=_skip)
        self._known_skips: dict[str, Skip] = {}
        self._listed_skips: dict[str, list[str]] = {}
        self._put_leases: dict[str, PutResult] = {}

    def ledger(self) -> ObjectLedger:
        """A ledger for one run."""
        return ObjectLedger(self.warehouse.objects("_state/plans"))

    def controls(self, target: str) -> Controls:
        """What the operator has set for a table. Errors: `StoredFormatError`, as with all that is read here."""
        return self._controls.get(target) or Controls()

    def all_controls(self) -> Mapping[str, Controls]:
        """What the operator has set, by table; an error is that of the table that is asked for."""
        return self._controls.all()

    def set_controls(self, target: str, controls: Controls, *, by: str) -> None:
        """Set pause and throttle of a table; they apply until they are set again."""
        self._controls.put(target, paused=controls.paused, rows_per_second=controls.rows_per_second, by=by)

    def skips(self, target: str, *, again: bool = True) -> list[Skip]:
        """The rows that the operator wants a view to leave out; as they were listed before, if not `again`. The document of a
        row never changes, so it is read once."""
        if again or target not in self._listed_skips:
            self._listed_skips[target] = self._skips.folder.names(target)
        names = self._listed_skips[target]
        new = [name for name in names if name not in self._known_skips]
        for name, content in zip(new, self._skips.folder.get_all(new), strict=True):
            if content is not None:  # it was taken back at this moment
                self._known_skips[name] = self._skips.read(name.removesuffix(".json"), content)
        gone = {name for name in self._known_skips if name.startswith(f"{target}/")} - set(names)
        for name in gone:
            del self._known_skips[name]
        return [self._known_skips[name] for name in names if name in self._known_skips]

    def add_skip(self, target: str, skip: Skip, *, by: str) -> None:
        """Make a view leave a row out. Each row has a document of its own, so concurrent changes are not lost."""
        self._skips.put(f"{target}/{skip.id}", skip=skip.model_dump(mode="json"), by=by)

    def remove_skip(self, target: str, skip: Skip) -> None:
        """Make a view take a row back."""
        self._skips.remove(f"{target}/{skip.id}")

    def lease(self, target: str) -> Lease | None:
        """The newest lease of a table, dead or alive."""
        return self._leases.get(target)

    def leases(self) -> Mapping[str, Lease]:
        """The newest lease of each table, dead or alive; an error is that of the table that is asked for."""
        return self._leases.all()

    def put_lease(self, target: str, run_id: str, *, held: bool) -> None:
        """Take, renew or release the lease of a table for the current process."""
        self._put_leases[target] = self._leases.put(target, **_own(run_id, held=held))

    def release_lease(self, target: str, run_id: str) -> None:
        """Release a lease that `put_lease` took, unless another run has taken it over since."""
        put = self._put_leases.pop(target, None)
        if put is not None and not self.warehouse.is_local:
            with suppress(Exception):  # a store that does not replace on this condition is asked who holds the lease
                self._leases.folder.put_over(f"{target}.json", self._leases.content(**_own(run_id, held=False)), put)
                return
        with suppress(StoredFormatError):  # a successor of another release
            lease = self.lease(target)
            if lease is not None and lease.run_id == run_id:
                self.put_lease(target, run_id, held=False)

    def passed(self, target: str, check: str) -> CheckPass | None:
        """The last pass of a check; None if it is unknown, so that everything has to be proved."""
        return self._passes.get(f"{target}/{check}")

    def set_passed(self, target: str, check: str, passed: CheckPass) -> None:
        """Store up to where a check proved a table."""
        self._passes.put(f"{target}/{check}", **asdict(passed))

    def forget_unreadable(self, target: str) -> list[str]:
        """Delete all documents of a table that cannot be read; returns the names of the objects."""
        kinds = (self._controls, self._leases, self._passes, self._skips)
        return [f"_state/{kind.name}/{name}" for kind in kinds for name in kind.remove_unreadable(target)]

    def forget(self, target: str, incarnations: Collection[str]) -> None:
        """Delete everything about a dropped table and its past incarnations."""
        for incarnation in incarnations:
            self.ledger().remove(target, incarnation)
        for documents in (self._controls, self._leases, self._passes, self._skips):
            documents.remove(target)


class StateStore(ConfigurableResource[State]):
    """Dagster resource: where sources, views and their state are stored.

    Attributes:
        warehouse: A folder or URI. A relative path starts at the project's root.
        root: The project's root folder.
        storage: How to reach an object store: `provider`, and the fields of the storage configuration that
            `dagster_deltalake` has for it (`s3`: `S3Config`, `azure`: `AzureConfig`, `gcs`: `GcsConfig`) and of its
            `ClientConfig`, or such a configuration itself. `local` has none. Spark is told the same of S3. A value
            `env:NAME` is read from the environment when it is used, and never stored. Keys of S3 that are not declared
            are found by the provider chains of delta-rs and of Spark; endpoint and region may come from `AWS_ENDPOINT_URL`
            and `AWS_REGION`.

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


def _own(run_id: str, *, held: bool) -> dict[str, object]:
    """What a lease says of the current process."""
    pid = os.getpid()
    started = psutil.Process(pid).create_time()
    return {"run_id": run_id, "host": socket.gethostname(), "pid": pid, "process_started": started, "held": held}


def _controls(_target: str, document: Mapping[str, Any]) -> Controls:
    return Controls(paused=document["paused"], rows_per_second=document["rows_per_second"])


def _pass(_target: str, document: Mapping[str, Any]) -> CheckPass:
    return CheckPass(**{name: document[name] for name in ("incarnation", "epoch", "version")})


def _skip(_target: str, document: Mapping[str, Any]) -> Skip:
    return read_skip(document["skip"])


def _lease(target: str, document: Mapping[str, Any]) -> Lease:
    return Lease(
        target=target,
        run_id=document["run_id"],
        host=document["host"],
        pid=document["pid"],
        process_started=document["process_started"],
        held=document["held"],
        renewed_at=datetime.fromisoformat(document["written_at"]),
    )
