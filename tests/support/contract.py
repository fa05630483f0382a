"""The contract of all strategies, and the worlds in which it is tested: an upstream that changes, a view over it, its
oracle.

The oracles read what the test itself sent, or the table's files with delta-rs, and compute the query in Python.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from backfill_assets.app.refresh import Refresh
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.epoch.costs import TableStrategy
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.core.progress.positions import Phase, SnapshotPosition, TablePosition, ViewPosition
from backfill_assets.declare.model import DeclaredStrategy
from tests.support.lake import Lake
from tests.support.project import Project
from tests.support.runner import LAKE_QUERY, declared, order_of, over_lake
from tests.support.statements import updated

__all__ = ["CHANGES", "MAX_EPOCHS", "NOTHING", "ONE", "STRATEGIES", "TableWorld", "World", "world_of"]

STRATEGIES: tuple[DeclaredStrategy, ...] = ("source", *get_args(TableStrategy))
ONE = Limits(chunk_rows=10, max_rows=10)
"""An epoch of ten rows, or a few smaller ones."""
NOTHING = Limits(max_rows=0)
"""Creates the view, and reads nothing."""
FILES, ROWS = 4, 10
COLUMNS = ("id", "twice")
CHANGES = ("insert", "update", "delete", "merge", "move", "compact")
"""What happens to a table between epochs."""
MAX_EPOCHS = 60

Rows = Counter[tuple[Any, ...]]


class World(ABC):
    """A project with view `large` over an upstream of forty rows, read by one strategy."""

    strategy: DeclaredStrategy
    project: Project

    @abstractmethod
    def change(self, number: int) -> None:
        """Make one change to the upstream; the number determines its kind."""

    @abstractmethod
    def wanted(self, record: CommitRecord, found: Rows) -> Rows:
        """The expected rows of the view at a commit. The order of history depends on the strategy, and is taken from
        the commit."""

    @abstractmethod
    def newest(self) -> Rows:
        """The batch query over all present rows of the upstream."""

    @abstractmethod
    def in_history(self, record: CommitRecord) -> bool:
        """Whether some history is still unread at a commit."""

    @abstractmethod
    def follow(self) -> None:
        """Bring everything between upstream and view up to date."""

    def job(self, **given: object) -> dict[str, Any]:
        """The jobs for `tests.support.runner` on the view."""
        return {"refresh": "large", "chunk_rows": ROWS, "strategy": self.strategy, **given}

    @property
    def order(self) -> dict[str, object]:
        """The arguments that a separate process needs for this world."""
        return order_of(self.project)

    @property
    def record(self) -> CommitRecord:
        """The view's newest commit."""
        return self.project.record("large")

    @property
    def rows(self) -> Rows:
        """The rows of the view."""
        return self.project.rows("large", *COLUMNS)

    def refresh(self, limits: Limits = ONE, on_step: Callable[[str], None] = lambda _step: None) -> Refresh:
        """One run of the view."""
        return self.project.refresh("large", limits, on_step=on_step)

    def begin(self) -> None:
        """Create the view, and read the first part of history if it can be read in parts."""
        self.refresh(NOTHING if self.strategy == "snapshot_once" else ONE)
        assert self.in_history(self.record)

    def leave_history(self) -> None:
        """Read history to its end, and stop after that epoch."""
        for _ in range(MAX_EPOCHS):
            if not self.in_history(self.record):
                return
            self.refresh()
        raise AssertionError("history does not end")

    def assert_exact(self) -> None:
        """The view has the expected rows."""
        found = self.rows
        assert found == self.wanted(self.record, found)

    def finish(self, *checks: str) -> None:
        """Bring the view up to date, and prove it by the batch query and by the checks."""
        self.follow()
        assert self.refresh(Limits()).report.record.live
        found = self.rows
        assert found == self.newest() == self.wanted(self.record, found)
        assert found, "nothing to compare"
        for check in checks or CHECKS:
            outcome = self.project.check("large", check)
            assert outcome.passed, (check, outcome.summary)


class TableWorld(World):
    """A keyed Delta table with change data feed; a file has ten rows, and key ranges of files do not overlap."""

    def __init__(self, root: Path, strategy: DeclaredStrategy, *, files: int = FILES) -> None:
        self.lake = Lake(root)
        self.project, self.strategy = self.lake.project, strategy
        self.lake.append("base", pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}))
        for file in range(files):
            self.insert(file * ROWS)
        self.declare(strategy)

    def declare(self, strategy: DeclaredStrategy) -> None:
        """Declare the view with a strategy."""
        self.strategy = strategy
        self.project.declare(*over_lake(self.project.root, strategy))

    def insert(self, first: int) -> None:
        """A file of ten rows."""
        self.lake.append("base", ({"id": at, "v": at % 10} for at in range(first, first + ROWS)))

    def change(self, number: int) -> None:
        change(self.lake, number)

    def wanted(self, record: CommitRecord, found: Rows) -> Rows:
        table = _table(record)
        if table.backfilled:
            return self._query(self._at(table.version))
        if table.expected:
            return self._query(row for row in self._at(table.version) if _passed(table, row["id"]))
        files = [self._query(pq.read_table(uri).to_pylist()) for uri in self._version(table.pinned).file_uris()]
        held = [file for file in files if file <= found]
        assert len(held) == sum(bucket.next for bucket in table.buckets.values()), "as many files as were read, whole"
        return sum(held, Counter())

    def newest(self) -> Rows:
        rows = self.lake.spark.read.format("delta").load(self.lake.path("base"))
        rows.createOrReplaceTempView("base")
        return Counter(map(tuple, self.lake.spark.sql(LAKE_QUERY).collect()))

    def in_history(self, record: CommitRecord) -> bool:
        return not _table(record).backfilled

    def follow(self) -> None:
        pass

    def _version(self, number: int) -> DeltaTable:
        return DeltaTable(self.lake.path("base"), version=number)

    def _at(self, version: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._version(version).to_pyarrow_table().to_pylist()
        return rows

    @staticmethod
    def _query(rows: Iterable[Mapping[str, Any]]) -> Rows:
        return Counter((row["id"], row["v"] * 2) for row in rows if row["v"] != 3)


class TopicWorld(World):
    """A topic of two partitions, ingested by source `orders`. Records are only ever added."""

    strategy = "source"

    def __init__(self, root: Path, broker: str, *, files: int = FILES) -> None:
        self.project = Project(root=root, servers=broker)
        self.topic = self.project.topic(partitions=2)
        self.sent: dict[int, list[dict[str, Any]]] = {0: [], 1: []}
        for file in range(files):
            self._send(file * ROWS, ROWS)
        self.project.declare(*declared(self.topic))

    @property
    def order(self) -> dict[str, object]:
        return order_of(self.project, self.topic)

    def change(self, number: int) -> None:
        """Records arrive, sometimes before the source reads them, so that the seam can be anywhere."""
        self._send(1000 + number * ROWS, 3 + number % 3)
        if number % 2:
            self.follow()

    def wanted(self, record: CommitRecord, found: Rows) -> Rows:
        del found  # the offsets are sufficient
        partitions = _partitions(record).items()
        return self._query(each for partition, state in partitions for each in self.sent[partition][: state.next])

    def newest(self) -> Rows:
        return self._query(each for sent in self.sent.values() for each in sent)

    def in_history(self, record: CommitRecord) -> bool:
        return any(state.phase is Phase.BACKFILLING for state in _partitions(record).values())

    def follow(self) -> None:
        self.project.refresh("orders")

    def _send(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self.sent[number % 2].append({"id": number, "amount": number / 4})
        for partition, sent in self.sent.items():
            self.project.produce(
                self.topic, [each for each in sent if first <= each["id"] < first + count], partition=partition
            )

    @staticmethod
    def _query(rows: Iterable[Mapping[str, Any]]) -> Rows:
        return Counter((row["id"], row["amount"] * 2) for row in rows)


def world_of(strategy: DeclaredStrategy, root: Path, broker: str, **given: Any) -> World:
    """The world of a strategy."""
    return TopicWorld(root, broker, **given) if strategy == "source" else TableWorld(root, strategy, **given)


def change(lake: Lake, number: int) -> None:
    """One change of table `base`, of the kind that the number determines, on both sides of everything that has been
    read of it.

    Each number may be used once, because keys are derived from it.
    """
    table, kind = DeltaTable(lake.path("base")), CHANGES[number % len(CHANGES)]
    match kind:
        case "insert":
            lake.append("base", ({"id": at, "v": number % 9} for at in (-1 - number, 500 + number, 5000 + number)))
        case "update":
            table.update(predicate=f"id % 5 = {number % 5}", updates={"v": "v + 10"})
        case "delete":
            table.delete(f"id % 7 = {number % 7}")
        case "merge":
            _merge(table, number)
        case "move":
            moved = f"id % 10 = {number % 10} AND id BETWEEN 0 AND 40"
            updated(table, {"id": f"{1000 * (number + 10)} - id", "v": "3 - v"}, moved)
        case "compact":
            table.optimize.compact()


def _merge(table: DeltaTable, number: int) -> None:
    ids = pa.array(range(5, 45, 4), pa.int64())
    rows = pa.table({"id": ids, "v": pa.array([number % 8] * len(ids), pa.int64())})
    merge = table.merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
    both = {"id": "s.id", "v": "s.v"}
    merge = merge.when_matched_delete("s.id % 3 = 0").when_matched_update(both).when_not_matched_insert(both)
    merge.execute()


def _table(record: CommitRecord) -> TablePosition:
    assert isinstance(record.position, SnapshotPosition)
    return record.position.tables["base"]


def _partitions(record: CommitRecord) -> Mapping[int, Any]:
    assert isinstance(record.position, ViewPosition)
    return record.position.sources["orders"].partitions


def _passed(table: TablePosition, key: int) -> bool:
    """Whether a range that has been read by key contains this key; ranges end at the bounds, and are distributed to
    buckets in consecutive runs."""
    ends = [int(bound[0]) for bound in table.bounds if bound[0] is not None]
    place = sum(key > end for end in ends)
    first = 0
    for _, bucket in sorted(table.buckets.items()):
        if place < first + bucket.parts:
            return place < first + bucket.next
        first += bucket.parts
    raise AssertionError(f"no bucket has range {place}")
