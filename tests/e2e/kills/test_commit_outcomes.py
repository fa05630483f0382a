"""What can happen between a look and its commit on a real Delta table, and how each case must end: no row twice, none
lost."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.app.lifecycle import reset
from backfill_assets.app.wiring.table import Table
from backfill_assets.core.epoch.commit import COMMIT_TRIES
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.epoch.records import CommitRecord, Plan, Staged
from backfill_assets.errors import BackfillError, ExternalWriteError, StagingError, UnsettledCommitError
from tests.support.project import Project

pytestmark = pytest.mark.e2e

EVENTS = [{"id": number} for number in range(12)]
FEW_TASKS = "SET spark.sql.sources.parallelPartitionDiscovery.parallelism = 2"
"""VACUUM lists files with this number of tasks."""
IN_GATE = {"OPTIMIZE by Spark"}
IN_FULL = {
    "a rival commits another plan",
    "maintenance up to the bound",
    "maintenance beyond it",
    "VACUUM without retention",
}
ALL = Counter((each["id"],) for each in EVENTS)


@dataclass(frozen=True)
class Meddler:
    """What a case may do to the view while its third epoch waits for its commit."""

    project: Project
    name: str

    @property
    def table(self) -> Table:
        return self.project.workspace().table(self.project.declared[self.name])

    @property
    def version(self) -> int:
        return self.table.output.look().version

    def sql(self, *statements: str) -> None:
        """Run statements in Spark; `{}` stands for the table."""
        name = f"delta.`{self.table.output.location.uri}`"
        self.table.runner.run(lambda spark: [spark.sql(each.replace("{}", name)).collect() for each in statements])

    def rival(self) -> None:
        """Let another run do everything that is left to do."""
        self.project.workspace().state.free_lease(f"views/{self.name}")
        assert self.project.refresh(self.name, Limits(chunk_rows=4)).report.stopped is Stop.CAUGHT_UP


def rival_of_another_plan(m: Meddler) -> None:
    parts = m.table.parts
    last = parts.output.look().record
    assert last is not None
    step = parts.decider.next(last.position, live=last.live, budget=2)
    newest = parts.ledger.newest(last.target, last.incarnation)
    planned = parts.ledger.plan(last.target, last.incarnation, last.epoch + 1)
    assert isinstance(planned, Plan)
    assert step is not None
    assert newest == last.epoch + 1
    assert parts.ledger.append(planned.model_copy(update={"reads": step.reads, "after": step.after, "live": step.live}))
    m.rival()


def set_property(m: Meddler) -> None:
    m.sql(f"ALTER TABLE {{}} SET TBLPROPERTIES ('a.b' = '{m.version}')")


def set_property_quickly(m: Meddler) -> None:
    table = m.table.output.location.load()
    assert table is not None
    table.alter.set_table_properties({"a.b": str(table.version())}, raise_if_not_exists=False)


def compact(m: Meddler) -> None:
    before = m.version
    m.table.output.compact(2)
    assert m.version == before + 1


def vacuum_staged_files(m: Meddler) -> None:
    m.sql(FEW_TASKS, "SET spark.databricks.delta.retentionDurationCheck.enabled = false", "VACUUM {} RETAIN 0 HOURS")


def restore(m: Meddler) -> None:
    m.sql(f"RESTORE {{}} TO VERSION AS OF {m.version - 1}")


@dataclass(frozen=True)
class Case:
    what: str
    between: Callable[[Meddler], None]
    times: int = 1
    stopped: Stop = Stop.CAUGHT_UP
    error: type[BackfillError] | None = None
    landed: bool = True


CASES = [
    Case("a rival commits the same plan", Meddler.rival, stopped=Stop.FENCED),
    Case("a rival commits another plan", rival_of_another_plan, stopped=Stop.FENCED),
    Case("OPTIMIZE by Spark", lambda m: m.sql("OPTIMIZE {}")),
    Case("VACUUM by Spark", lambda m: m.sql(FEW_TASKS, "VACUUM {}")),
    Case("SET TBLPROPERTIES by Spark", set_property),
    Case("compaction by delta-rs", compact),
    Case("maintenance up to the bound", set_property_quickly, times=COMMIT_TRIES - 1),
    Case("maintenance beyond it", set_property_quickly, COMMIT_TRIES, error=UnsettledCommitError, landed=False),
    Case("VACUUM without retention", vacuum_staged_files, error=StagingError, landed=False),
    Case(
        "append by Spark",
        lambda m: m.sql("INSERT INTO {} SELECT 99L, 0, 99L"),
        error=ExternalWriteError,
        landed=False,
    ),
    Case("DELETE by Spark", lambda m: m.sql("DELETE FROM {} WHERE id < 4"), error=ExternalWriteError, landed=False),
    Case("RESTORE by Spark", restore, error=ExternalWriteError, landed=False),
]


@pytest.fixture(scope="module")
def shared(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One source; each case declares a view of its own over it."""
    project = Project(root=tmp_path_factory.mktemp("outcomes"), servers=broker)
    topic = project.topic(partitions=2)
    project.produce(topic, EVENTS)
    project.declare(kafka_source("events", topic=topic, schema="id LONG"))
    return project


def as_parameter(case: Case) -> Any:
    """delta-rs does to a table's log what Spark does, too; of Spark's own cases, the gate has one. Others are cases of the
    protocol in memory, too."""
    is_full = case.what in IN_FULL or (case.what.endswith("by Spark") and case.what not in IN_GATE)
    full = [pytest.mark.full] if is_full else []
    return pytest.param(case, id=case.what.replace(" ", "_"), marks=full)


@pytest.mark.parametrize("case", [as_parameter(case) for case in CASES])
def test_every_commit_ends_as_its_case_says(shared: Project, case: Case) -> None:
    m = two_epochs(shared, f"view_{CASES.index(case)}")
    left, external = case.times, 0

    def meddle(step: str) -> None:
        nonlocal left, external
        if step == "verified" and left:
            left -= 1
            external = m.version + 1
            case.between(m)

    if case.error is None:
        done = shared.refresh(m.name, Limits(chunk_rows=4), on_step=meddle)
        assert done.report.stopped is case.stopped
    else:
        with pytest.raises(case.error) as caught:
            shared.refresh(m.name, Limits(chunk_rows=4), on_step=meddle)
        assert caught.value.hint
        if case.error is ExternalWriteError:
            assert f"version {external} " in str(caught.value)
    assert left == 0
    assert shared.record(m.name).epoch >= (3 if case.landed else 2)
    end_exact(shared, m, case)


def test_a_commit_that_succeeded_but_was_reported_as_failed_counts_once(
    shared: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = DeltaOutput.commit

    def lose_the_reply(self: DeltaOutput, record: CommitRecord, staged: Staged) -> Any:
        commit(self, record, staged)
        raise OSError("the connection was closed")

    monkeypatch.setattr(DeltaOutput, "commit", lose_the_reply)
    m = two_epochs(shared, "lost_replies")
    assert shared.refresh(m.name, Limits(chunk_rows=4)).report.stopped is Stop.CAUGHT_UP
    end_exact(shared, m)


def two_epochs(project: Project, name: str) -> Meddler:
    """A view with two epochs committed and one to come."""
    project.declare(materialized_view(name, query="SELECT id FROM events", upstreams=[project.declared["events"]]))
    project.refresh(name, Limits(chunk_rows=4, max_rows=8))
    assert (project.record(name).epoch, project.rows(name).total()) == (2, 8)
    return Meddler(project, name)


def end_exact(project: Project, m: Meddler, case: Case | None = None) -> None:
    """The next run corrects the view; after an external write, it refuses to continue until a reset."""
    if case is not None and case.error is ExternalWriteError:
        with pytest.raises(ExternalWriteError):
            project.refresh(m.name)
        reset(project.workspace(), m.name)
    project.refresh(m.name)
    assert project.rows(m.name, "id") == ALL
    records = m.table.output.life(since=0)
    assert [each.epoch for each in records] == list(range(records[-1].epoch + 1))
    for check in ("positions_contiguous", "ledger_matches_table", "rows_conserved"):
        assert project.check(m.name, check).passed
