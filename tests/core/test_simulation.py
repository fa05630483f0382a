"""Random worlds from a seed: producers, rivals, crashes, failing commits and operators, against one oracle.

After every commit and at the end a table must hold exactly the records ever committed to its topics between where it
began and where its commit says it is, but for those that the commit says it leaves out. A failure prints the seed and
what was done; `run(seed)` repeats it.
"""

from collections import Counter
from random import Random
from typing import Any

import pytest

from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.lives import restate
from backfill_assets.core.epoch.parts import Parts
from backfill_assets.core.epoch.protocol import STEPS
from backfill_assets.core.epoch.records import CommitKind, CommitRecord
from backfill_assets.core.epoch.skips import OffsetSkip, left_out_of
from backfill_assets.core.progress.positions import IngestPosition
from backfill_assets.core.progress.reads import KafkaRead
from backfill_assets.errors import (
    BackfillError,
    ComputeError,
    DroppedError,
    FencedError,
    OffsetsLostError,
    UnsettledCommitError,
    UpstreamChangedError,
)
from backfill_assets.testing.crash_points import Crash
from backfill_assets.testing.simulated_table import SimulatedOutput, SimulatedTable, UnreliableOutput, outcomes_from
from backfill_assets.testing.simulated_topic import Row, SimulatedTopic
from backfill_assets.testing.simulation import POISON, Operator, SourceSettings, World
from tests.support.settings import seeds

BLOCKS = 4
SEEDS = seeds(gate=240, full=20_000)
ACTIONS = 40
SOURCES = ("sources/a", "sources/b")
VIEWS = ("views/a_view", "views/b_view", "views/both")
EXPECTED = (FencedError, DroppedError, UnsettledCommitError, OffsetsLostError)
"""The errors with which a run may end here; the next one continues (retention between plan and read loses offsets
once)."""


class Simulation:
    """One random world. Everything that happens is recorded, so that a failure can be understood."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.done: list[str] = []
        self.keep_history = self.random.random() < 0.7
        topics = [
            SimulatedTopic(name, partitions=self.random.randint(1, 3), compacted=self._often(0.4)) for name in "ab"
        ]
        self.world = World(*topics, settings=SourceSettings(keep_history=self.keep_history))
        self.world.add_view("both", ("a", "b"))
        for target in (*SOURCES, *VIEWS):
            self.world.table(target).on_commit.append(self.check)
        self.commits = 0
        self.outputs: list[UnreliableOutput] = []

    def act(self) -> None:
        actions = [self.produce] * 4 + [self.refresh] * 8 + [self.lose_history] * 2 + [self.operate, self.leave_out]
        self.random.choice(actions)()

    def produce(self) -> None:
        topic = self._topic()
        partition = self.random.choice(topic.partitions)
        rows = [self._value() for _ in range(self.random.randint(0, 8))]
        if self._often(0.2):
            topic.elect(partition)
        match self.random.randrange(8):
            case 0:
                topic.abort(partition, len(rows))
            case 1 | 2:
                topic.commit(partition, rows)
            case 3 if len(topic.partitions) < 4:
                topic.append(topic.add_partition(), rows)
            case _:
                topic.append(partition, rows)
        self.note(f"produce {len(rows)} to {topic.source}/{partition}: end {topic.end(partition)}")

    def _value(self) -> str:
        return POISON if self._often(0.03) else f"{self.random.randrange(9)}"

    def leave_out(self) -> None:
        """An operator leaves a record out, read or not, poison or not; or takes it back."""
        target, topic = self.random.choice(VIEWS), self._topic()
        partition = self.random.choice(topic.partitions)
        skip = OffsetSkip(
            source=topic.source, partition=partition, offset=self.random.randrange(topic.end(partition) + 2)
        )
        wanted = self.world.skips.setdefault(target, set())
        (set.discard if self._often(0.3) else set.add)(wanted, self.random.choice([skip, *sorted(wanted, key=str)]))
        self.note(f"{target} is to leave out {sorted(map(str, wanted))}")

    def leave_out_poison(self, target: str) -> None:
        """What an operator does about a view that is stopped."""
        records = [row for topic in self.world.topics.values() for row in _all_of(topic)]
        poison = {
            OffsetSkip(source=row.source, partition=row.partition, offset=row.offset)
            for row in records
            if row.value == POISON
        }
        self.world.skips.setdefault(target, set()).update(poison)
        self.note(f"{target} is to leave out all that is poison")

    def lose_history(self) -> None:
        """Compaction and retention of records that bronze has."""
        topic = self._topic()
        look = self.world.table(f"sources/{topic.source}").look()
        if not self.keep_history or not look.exists or look.record is None:
            return
        assert isinstance(look.record.position, IngestPosition)
        partition, end = self.random.choice(sorted(look.record.position.next.items()))
        if topic.compacted:
            taken = [offset for offset in range(end) if self._often(0.3)]
            about_to_read = self._planned_from_kafka(topic.source, partition)
            topic.compact(partition, [offset for offset in taken if offset not in about_to_read])
        else:
            topic.retain(partition, self.random.randint(0, end))
        self.note(f"{'compact' if topic.compacted else 'retain'} {topic.source}/{partition} below {end}")

    def _planned_from_kafka(self, source: str, partition: int) -> set[int]:
        """The offsets that planned, uncommitted epochs read from Kafka.

        Records among these that are compacted away are in no view, as documented: a missing offset looks like one that
        never had a record.
        """
        waiting = [
            plan
            for (target, life), plans in self.world.ledger.plans.items()
            for plan in plans
            if (last := self.world.table(target).commits[-1]).incarnation == life and plan.epoch > last.epoch
        ]
        reads = [read for plan in waiting for read in plan.offset_reads if isinstance(read, KafkaRead)]
        ranges = [read.ranges[partition] for read in reads if read.source == source and partition in read.ranges]
        return {offset for each in ranges for offset in range(each.start, each.end)}

    def refresh(self, target: str | None = None, *, depth: int = 0) -> None:
        target = target or self.random.choice((*SOURCES, *VIEWS))
        limits = Limits(chunk_rows=self.random.choice((1, 3, 10, 1000)), max_rows=self.random.choice((None, 5, 20)))
        rate = self.random.choice((None, None, 0, 5.0))
        operator = Operator(paused=self._often(0.05), rows_per_second=rate)
        self.note(f"{'  ' * depth}refresh {target} chunk={limits.chunk_rows} max={limits.max_rows} rate={rate}")
        before = self.world.table(target).version
        try:
            report = self.world.refresh(target, limits, operator=operator, parts=self._parts(target, depth))
            ended = f"{report.stopped} after {len(report.epochs)} epochs"
            if operator.paused or rate == 0:
                assert report.offsets == 0, "a paused run reads nothing"
        except (BackfillError, Crash) as error:
            ended = f"{type(error).__name__} after {self.world.table(target).version - before} commits"
            self._accept(target, error)
        self.note(f"{'  ' * depth}-> {ended}")

    def _accept(self, target: str, error: BackfillError | Crash) -> None:
        if isinstance(error, (Crash, *EXPECTED)):
            return
        if isinstance(error, UpstreamChangedError) and target in VIEWS:
            self.world.reset(target)
            return
        if isinstance(error, ComputeError) and target in VIEWS:
            if self._often(0.7):
                self.leave_out_poison(target)
            return
        raise error

    def operate(self) -> None:
        target = self.random.choice((*SOURCES, *VIEWS) if self.keep_history else VIEWS)
        if not self.world.table(target).look().exists or self._lost(target):
            return
        match self.random.randrange(4):
            case 0:
                self.note(f"reset {target}")
                self.world.reset(target)
            case 1 if target in VIEWS:
                self.note(f"drop {target}")
                self.world.drop(target)
            case 2:
                self.note(f"restate {target}")
                parts = self.world.parts(target)
                restate(parts, parts.output.look())
            case _:
                self.note(f"maintain {target}")
                self.world.table(target).maintain()

    def _lost(self, target: str) -> bool:
        """A new life of a source begins with what Kafka still has, so a source with a compacted topic is never reset."""
        return target in SOURCES and self.world.topics[target[-1]].compacted

    def _parts(self, target: str, depth: int) -> Parts[Any]:
        output = UnreliableOutput(
            SimulatedOutput(self.world.table(target)), outcomes_from(self.random, failing=self.random.choice((0, 0.4)))
        )
        self.outputs.append(output)
        return self.world.parts(target, on_step=lambda step: self._on_step(target, step, depth), output=output)

    def _on_step(self, target: str, step: str, depth: int) -> None:
        """Between any two steps: a competing run, another table's run, an operator, a producer, a late commit, a crash."""
        assert step in STEPS
        chance = self.random.random()
        if depth < 2 and chance < 0.06:
            self.note(f"{'  ' * depth}at {step!r} of {target}: a rival")
            self.refresh(target, depth=depth + 1)
        elif depth < 2 and chance < 0.10:
            self.note(f"{'  ' * depth}at {step!r} of {target}: another run")
            self.refresh(depth=depth + 1)
        elif chance < 0.16:
            self.note(f"{'  ' * depth}at {step!r} of {target}:")
            self.random.choice((self.operate, self.produce, self.lose_history))()
        elif chance < 0.18:
            self.random.choice(self.outputs).land_late()
        elif chance < 0.22:
            self.note(f"{'  ' * depth}at {step!r} of {target}: crash")
            raise Crash(step)

    def check(self, table: SimulatedTable) -> None:
        """The oracle, after every single commit."""
        self.commits += 1
        if not table.commits:
            return
        newest = table.commits[-1]
        if newest.kind is CommitKind.DROP:
            assert not table.rows
            return
        assert table.rows == self.world.expected(table.target), f"{table.target} is wrong at epoch {newest.epoch}"
        life = [each for each in table.commits if each.incarnation == newest.incarnation]
        assert_orderly(life)
        planned = max(
            (plan.epoch for plan in self.world.ledger.plans.get((table.target, newest.incarnation), [])), default=0
        )
        assert planned - newest.epoch in {0, 1}, "more than one epoch would have to be redone"

    def settle(self) -> None:
        """Let everything run to its end without interference, and prove that no record was forgotten."""
        self.note("settle")
        for output in self.outputs:
            output.land_late()
        for target in (*SOURCES, *VIEWS):
            self._settle(target)
        for topic in self.world.topics.values():
            topic.append(0, ["last"] * 9)
        for target in (*SOURCES, *VIEWS):
            report = self.world.refresh(target)
            assert report.record.live
            assert not any(self.world.decider(target).lag(report.record.position).values())
            assert self.world.table(target).rows == self.world.expected(target)
            assert self.keep_history is False or self.world.table(target).rows, "vacuously right"
        self.check_views_hold_all_of_bronze()

    def _settle(self, target: str) -> None:
        self.leave_out_poison(target)
        try:
            self.world.refresh(target)
        except UpstreamChangedError:
            self.world.reset(target)
            self.world.refresh(target)

    def check_views_hold_all_of_bronze(self) -> None:
        a, b = (self.world.table(source).rows for source in SOURCES)
        for view, bronze in zip(VIEWS, (a, b, a + b), strict=True):
            table = self.world.table(view)
            left_out = left_out_of(table.commits[-1].position)
            wanted = Counter({
                row: number
                for row, number in bronze.items()
                if row.offset not in left_out.get(row.source, {}).get(row.partition, ())
            })
            assert wanted <= table.rows
            assert wanted == table.rows or not self.keep_history

    def note(self, what: str) -> None:
        self.done.append(what)

    def _topic(self) -> SimulatedTopic:
        return self.random.choice(list(self.world.topics.values()))

    def _often(self, chance: float) -> bool:
        return self.random.random() < chance


def _all_of(topic: SimulatedTopic) -> Counter[Row]:
    return topic.ever(
        dict.fromkeys(topic.partitions, 0), {partition: topic.end(partition) for partition in topic.partitions}
    )


def assert_orderly(life: list[CommitRecord]) -> None:
    """Within one life: each epoch once and in order, progress that never goes back, a total that never changes."""
    epochs = [each.epoch for each in life if each.kind in {CommitKind.CREATE, CommitKind.EPOCH}]
    assert epochs == list(range(len(epochs)))
    assert [each.done for each in life] == sorted(each.done for each in life)
    assert len({each.total for each in life}) == 1
    live = [each.live for each in life]
    assert live == sorted(live), "a live table stays live"
    assert life[-1].rows_total == sum(each.rows_written for each in life if each.kind is CommitKind.EPOCH)


def run(seed: int) -> int:
    """One world; returns the number of its commits."""
    simulation = Simulation(seed)
    try:
        for _ in range(ACTIONS):
            simulation.act()
        simulation.settle()
    except BaseException:
        print(f"seed {seed}:", *simulation.done, sep="\n  ")  # noqa: T201  (the one thing needed to repeat it)
        raise
    return simulation.commits


@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_table_holds_exactly_what_its_position_says_whatever_happens(block: int) -> None:
    commits = [run(seed) for seed in SEEDS[block::BLOCKS]]
    assert min(commits) > 0
    assert sum(commits) > 20 * len(commits)
