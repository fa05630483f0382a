"""A whole run of a view that reads by key: when it ends, and that its commits pass the audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from backfill_assets.core.audit import conserved
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.epoch.lives import begin_life, restate
from backfill_assets.core.epoch.parts import Parts
from backfill_assets.core.epoch.ports import Commit, KeyRanges, KeysLeftOut, TableSize, UpstreamState
from backfill_assets.core.epoch.records import CommitRecord, Plan, Staged, UpstreamColumns, fingerprint
from backfill_assets.core.epoch.run import RunReport, create_if_missing, run
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.progress.reads import ChangesRead, KeyRead, TableRead
from backfill_assets.core.strategies.arrangement import ArrangementHistory
from backfill_assets.core.strategies.table_views import TablesDecider, TableUpstream
from backfill_assets.errors import DuplicateKeyError, PoisonRowError, VersionsLostError
from backfill_assets.testing.simulated_table import SimulatedOutput
from backfill_assets.testing.simulation import Operator, World
from tests.support.keyed_world import Lake, Moving, Rows, inside

TARGET = "views/both"
LETTERS: Rows = {(letter, None): 0 for letter in "abcdef"}
BOUNDS = (("c", None),)
MAX_EPOCHS = 30


@dataclass
class Lakes:
    """`ports.KeyedTables` over several tables in memory."""

    tables: Mapping[str, Moving]
    described: UpstreamColumns = field(default_factory=lambda: {"a": (("id", "BIGINT"),)})

    def table_now(self, name: str) -> UpstreamState:
        return self._of(name).table_now("base")

    def columns(self) -> UpstreamColumns:
        return self.described

    def files(self, name: str, version: int) -> Sequence[int]:
        return self._of(name).files(name, version)

    def commits(self, name: str, after: int, until: int) -> Sequence[Commit]:
        return self._of(name).commits("base", after, until)

    def key_ranges(self, name: str, version: int) -> KeyRanges:
        return self._of(name).key_ranges("base", version)

    def size(self, name: str) -> TableSize:
        return self._of(name).size("base")

    def commit_timestamp(self, name: str, version: int) -> int | None:
        return self._of(name).commit_timestamp("base", version)

    def check_readable(self, read: TableRead) -> None:
        self._of(read.source).check_readable(read)

    def check_keys(self, versions: Mapping[str, int], left_out: KeysLeftOut) -> None:
        pass

    def _of(self, name: str) -> Lake:
        return Lake(self.tables[name])


@dataclass(frozen=True)
class Inserting:
    """`ports.Compute` of a world in which rows are only ever added: counts the rows of a plan's ranges."""

    lakes: Lakes

    def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:  # noqa: ARG002  (ports.Compute)
        held = sum(self._rows(read) for read in plan.table_reads)
        return Staged(rows_read=plan.offsets, rows_written=held)

    def _rows(self, read: TableRead) -> int:
        table = self.lakes.tables[read.source]
        if isinstance(read, KeyRead):
            return sum(inside(key, read.keys) for key in table.versions[read.version])
        assert read.kind == "changes"
        return sum(
            read.within is None or inside(key, read.within)
            for version in range(read.first, read.last + 1)
            for key, _, _ in table.changes(version)
        )


@dataclass(frozen=True)
class Strict(Inserting):
    """Refuses rows of `b` that are read at a version before this one: that version corrects them."""

    least: int = 2
    error: type[DuplicateKeyError | PoisonRowError | VersionsLostError] = DuplicateKeyError

    def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:
        for read in plan.reads:
            version = (
                read.version if isinstance(read, KeyRead) else read.last if isinstance(read, ChangesRead) else None
            )
            if version is not None and read.source == "b" and version < self.least:
                raise self.error("no", hint="correct it")
        return super().stage(plan, attempt, at=at)


@dataclass
class Running:
    """One view over tables `a` and `b`, the second of which gets a row after every epoch."""

    lakes: Lakes

    def __post_init__(self) -> None:
        world = World()
        self.table = world.table(TARGET)
        decider = TablesDecider(
            view="both",
            upstreams=tuple(TableUpstream(name=name, keyed=True) for name in self.lakes.tables),
            fingerprint=fingerprint(query="SELECT *", key=[]),
            tables=self.lakes,
            histories={"arrangement": ArrangementHistory(tables=self.lakes)},
            strategy="arrangement",
            choose=lambda: "arrangement",
        )
        self.parts = Parts(
            decider=decider,
            output=SimulatedOutput(self.table),
            ledger=world.parts("sources/none").ledger,
            compute=Inserting(self.lakes),
            clock=world.clock,
            new_id=world.parts("sources/none").new_id,
        )
        create_if_missing(self.parts, self.table)

    def add(self, name: str, *keys: str) -> None:
        versions = self.lakes.tables[name].versions
        versions.append({**versions[-1], **{(key, None): 0 for key in keys}})

    def refresh(self, *, chunk_rows: int = 3) -> RunReport:
        running = self

        class Busy(Operator):
            def after_epoch(self, record: CommitRecord) -> None:
                assert record.epoch < MAX_EPOCHS, "the run never ends"
                running.add("b", f"z{record.epoch:03}")

        look = self.parts.output.look()
        return run(self.parts, look, Limits(chunk_rows=chunk_rows), Busy())


def test_rows_that_came_before_their_keys_were_read_do_not_keep_a_run_from_ending_under_a_busy_upstream() -> None:
    view = Running(Lakes({"a": Moving([LETTERS], BOUNDS), "b": Moving([LETTERS], BOUNDS)}))
    view.add("a", "g", "h", "i")  # never counted as changes: their range is read with these rows in it
    report = view.refresh()
    assert (report.stopped, report.record.live) == (Stop.CAUGHT_UP, True)


@pytest.mark.parametrize("error", [DuplicateKeyError, PoisonRowError, VersionsLostError])
def test_ranges_that_were_refused_are_read_again_once_there_is_a_newer_version_of_them(
    error: type[DuplicateKeyError | PoisonRowError | VersionsLostError],
) -> None:
    view = Running(Lakes({"a": Moving([LETTERS], BOUNDS), "b": Moving([LETTERS], BOUNDS)}))
    view.parts = replace(view.parts, compute=Strict(view.lakes, error=error))
    view.add("b", "x")
    for _ in range(2):
        with pytest.raises(error):
            view.refresh(chunk_rows=100)
    view.add("b", "y")  # in a range that has not been read: not a change that counts
    assert view.refresh(chunk_rows=100).record.live


@pytest.mark.parametrize("error", [DuplicateKeyError, PoisonRowError, VersionsLostError])
def test_changes_that_were_refused_are_read_with_all_later_ones_whatever_the_budget(
    error: type[DuplicateKeyError | PoisonRowError | VersionsLostError],
) -> None:
    view = Running(Lakes({"a": Moving([LETTERS], BOUNDS), "b": Moving([LETTERS], BOUNDS)}))
    assert view.refresh(chunk_rows=100).record.live
    for key in "tuv":  # three versions, of which the first is planned alone
        view.add("b", key)
    corrected = len(view.lakes.tables["b"].versions)
    view.parts = replace(view.parts, compute=Strict(view.lakes, least=corrected, error=error))
    for _ in range(2):
        with pytest.raises(error):
            view.refresh(chunk_rows=1)
    view.add("b", "w")
    epoch = view.refresh(chunk_rows=1).epochs[0]
    assert isinstance(epoch.position, SnapshotPosition)
    assert epoch.position.tables["b"].version == corrected


def test_all_commits_of_a_life_record_the_columns_of_its_beginning() -> None:
    view = Running(Lakes({"a": Moving([LETTERS], BOUNDS), "b": Moving([LETTERS], BOUNDS)}))
    begun = view.lakes.described
    view.lakes.described = {"a": (("id", "BIGINT"), ("total", "DOUBLE"))}
    assert len(view.refresh().epochs) > 1
    restate(view.parts, view.parts.output.look())
    assert [record.columns for record in view.table.commits] == [begun] * len(view.table.commits)
    reborn = begin_life(view.parts, view.parts.output.look(), view.parts.decider.begin(), incarnation="another")
    assert reborn.columns == view.lakes.described


def test_a_life_that_began_before_columns_were_recorded_takes_those_of_its_next_epoch() -> None:
    lakes = Lakes({"a": Moving([LETTERS], BOUNDS), "b": Moving([LETTERS], BOUNDS)}, described={})
    view = Running(lakes)
    lakes.described = {"a": (("id", "BIGINT"),)}
    epochs = view.refresh().epochs
    assert len(epochs) > 1
    assert {str(record.columns) for record in epochs} == {str(lakes.described)}


def test_rows_that_came_to_a_range_since_it_was_planned_are_no_violation() -> None:
    view = Running(Lakes({"a": Moving([LETTERS], BOUNDS), "b": Moving([LETTERS], BOUNDS)}))
    view.add("a", *(f"a{number}" for number in range(20)))
    record = view.refresh().record
    assert isinstance(record.position, SnapshotPosition)
    held = sum(len(view.lakes.tables[name].versions[at.version]) for name, at in record.position.tables.items())
    assert record.rows_total == held
    assert conserved(view.table.commits, held, copies=1) == []
