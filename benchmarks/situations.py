"""Whether the strategy that is chosen is the fastest: constructed situations, each measured with every strategy.

An upstream is made as the situation says; then, for each strategy that nothing speaks against, a view over it is refreshed
epoch by epoch until it is live and level, with a step of changes to the upstream after each of the first epochs, which is
not part of the measure. The "peer" is the fastest strategy, so a ratio of 1 means that the choice was the best one. Where
every strategy would lose data there is nothing to measure but how long it takes to say so, and of topics there is one way
to read them: those ratios are 1 by construction.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from deltalake import DeltaTable

from backfill_assets import delta_table, kafka_source, materialized_view
from backfill_assets.core.choice.choose import Choice
from backfill_assets.core.choice.expiry import NEVER
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.declare.model import Declared, DeclaredStrategy, MaterializedView
from backfill_assets.errors import VersionsLostError
from benchmarks.measure import Comparison
from benchmarks.tables import change
from benchmarks.world import SCHEMA, World

__all__ = ["SITUATIONS", "Situation", "run"]

COLUMNS = ("id", "customer", "amount")
BEFORE, STEPS = 2, 3
"""How often an upstream changed before the view begins, and how often it changes while it is read; then it rests, so that
every strategy has the same to do."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """An upstream and a budget. `churn`: rows updated in each step; `grown`: rows appended in each; `chunk`: rows of an
    epoch. `clustered`: the files follow each other in the order of the key. `retention_seconds`: how long removed files are
    kept; what is older is vacuumed before each step."""

    name: str
    rows: int
    chunk: int = 100_000
    files: int = 8
    topic: bool = False
    clustered: bool = True
    append_only: bool = False
    churn: int = 0
    grown: int = 0
    retention_seconds: int = 7 * 86_400


KINDS: dict[str, dict[str, Any]] = {
    "at rest": {},
    "appended to": {"append_only": True, "grown": 1_000},
    "updated a little": {"churn": 100},
    "updated a lot": {"churn": 20_000},
    "removed files kept for 5 s": {"churn": 1_000, "retention_seconds": 5},
    "removed files not kept": {"churn": 1_000, "retention_seconds": 0},
}
SITUATIONS = (
    *(
        Situation(name=f"table, {rows:,} rows, {layout}, {kind}", rows=rows, clustered=layout == "clustered", **kinds)
        for rows in (50_000, 800_000)
        for layout in ("clustered", "not clustered")
        for kind, kinds in KINDS.items()
    ),
    *(
        Situation(name=f"topic, {rows:,} records, {kind}", rows=rows, topic=True, grown=grown)
        for rows in (50_000, 400_000, 800_000)
        for kind, grown in (("at rest", 0), ("appended to", 1_000))
    ),
)
"""Thirty of them."""


class Upstream(Protocol):
    """What a situation's view reads."""

    def declared(self, strategy: DeclaredStrategy) -> dict[str, Declared]:
        """The view `copy` and what it reads."""
        ...

    def change(self, step: int) -> None:
        """One step of changes, and what happens to the upstream's past."""
        ...

    def content(self, view: Path) -> tuple[object, object]:
        """What the view holds, and what it must hold."""
        ...

    def remove(self) -> None:
        """Leave nothing of it that does not go with its folder."""
        ...


def run(
    world: World, *, repetitions: int = 1, warmups: int = 1, situations: int = len(SITUATIONS)
) -> Iterator[Comparison]:
    """The first so many situations; of several repetitions the fastest counts for each strategy."""
    for strategy in ("snapshot", "snapshot_once", "arrangement", "rearranged") * warmups:
        _measured(world, SITUATIONS[0], strategy)  # so that who is measured first does not warm up for the others
    for situation in SITUATIONS[:situations]:
        with _upstream(world, situation) as (folder, upstream):
            started = time.perf_counter()
            choice = _choice(world, folder, upstream.declared("auto"), situation)
            decided = time.perf_counter() - started
        ruled_out = {each.strategy for each in choice.ruled_out}
        possible = {each.strategy: each for each in choice.estimates if each.strategy not in ruled_out}
        rounds = [
            {each: _if_it_can(world, situation, each) for each in (possible, reversed(possible))[number % 2]}
            for number in range(repetitions)
        ]
        taken = {each: min(seconds[each] for seconds in rounds) for each in possible}
        lost = choice.chosen is not None and max(seconds[choice.chosen] for seconds in rounds) == NEVER
        assert not lost, f"{situation.name}: {choice.chosen} was chosen, and what it had to read was vacuumed"
        refused = f"refused, {choice.refusal.code}" if choice.refusal else ""
        fastest = min(taken, key=lambda each: taken[each], default=None)
        yield Comparison(
            benchmark="situations",
            case=f"{situation.name}: {choice.chosen or refused}",
            peer=f"the fastest, {fastest}" if fastest else "the same: nothing can be measured",
            rows=situation.rows,
            ours=(taken[choice.chosen] if choice.chosen else decided,),
            theirs=(taken[fastest] if fastest else decided,),
            details={f"measured_{each}": seconds for each, seconds in taken.items()}
            | {f"estimated_{each}": estimate.cost_seconds for each, estimate in possible.items()},
        )


@contextmanager
def _upstream(world: World, situation: Situation) -> Iterator[tuple[Path, Upstream]]:
    """A folder, and the upstream as the situation says, which has changed a few times."""
    with world.folder() as folder:
        upstream = _Topic(world, situation) if situation.topic else _Table(world, situation, folder / "orders")
        try:
            for step in range(BEFORE):
                upstream.change(step)
            yield folder, upstream
        finally:
            upstream.remove()


def _choice(world: World, folder: Path, declared: dict[str, Declared], situation: Situation) -> Choice:
    workspace, view = world.workspace(folder, declared), declared["copy"]
    assert isinstance(view, MaterializedView)
    try:
        return workspace.chooser(view).choice(chunk_rows=situation.chunk)
    finally:
        workspace.runner.close()


def _if_it_can(world: World, situation: Situation, strategy: DeclaredStrategy) -> float:
    """As `_measured`; `NEVER` where what the view had still to read was vacuumed."""
    try:
        return _measured(world, situation, strategy)
    except VersionsLostError:
        return NEVER


def _measured(world: World, situation: Situation, strategy: DeclaredStrategy) -> float:
    """Seconds that the view takes to be live; the upstream is created again and changes in the same way for each strategy."""
    with _upstream(world, situation) as (folder, upstream):
        declared = upstream.declared(strategy)
        limits = Limits(chunk_rows=situation.chunk, max_rows=situation.chunk)
        seconds = 0.0
        for step in count(BEFORE):
            started = time.perf_counter()
            for name in sorted(declared, reverse=True):  # the source, if there is one, before its view
                report = world.refresh(folder, declared, name, limits).report
            seconds += time.perf_counter() - started
            if step < BEFORE + STEPS:
                upstream.change(step)
            elif report.record.live and not report.epochs:
                break
        held, expected = upstream.content(folder / "warehouse" / "views" / "copy")
        assert held == expected, f"{situation.name}, {strategy}: the view must hold what its query gives"
    return seconds


class _Table:
    """A Delta table that is updated and appended to."""

    def __init__(self, world: World, situation: Situation, place: Path) -> None:
        self.world, self.situation, self.place = world, situation, place
        rows = world.spark.range(0, situation.rows, numPartitions=situation.files).selectExpr(
            "id", "concat('customer-', id % 50000) AS customer", "CAST(id % 100000 AS DOUBLE) / 8 AS amount"
        )
        if not situation.clustered:
            rows = rows.repartition(situation.files, rows["customer"])
        options = {
            "delta.enableChangeDataFeed": "true",
            "delta.deletedFileRetentionDuration": f"interval {situation.retention_seconds} seconds",
            **({"delta.appendOnly": "true"} if situation.append_only else {}),
        }
        rows.write.format("delta").options(**options).save(str(place))

    def declared(self, strategy: DeclaredStrategy) -> dict[str, Declared]:
        orders = delta_table("orders", path=str(self.place), primary_key="id")
        query = f"SELECT {', '.join(COLUMNS)} FROM orders"
        return {"copy": materialized_view("copy", query=query, upstreams=[orders], strategy=strategy)}

    def change(self, step: int) -> None:
        situation = self.situation
        DeltaTable(str(self.place)).vacuum(dry_run=False)
        if situation.churn:
            every = max(1, situation.rows // situation.churn)
            change(self.place, "amount", "amount + 1.0", f"id % {every} = {step % every}")
        if situation.grown:
            first = situation.rows + step * situation.grown
            new = self.world.spark.range(first, first + situation.grown, numPartitions=1).selectExpr(
                "id", "'new' AS customer", "CAST(0 AS DOUBLE) AS amount"
            )
            new.write.format("delta").mode("append").save(str(self.place))

    def content(self, view: Path) -> tuple[object, object]:
        return self.world.content(view, *COLUMNS), self.world.content(self.place, *COLUMNS)

    def remove(self) -> None:
        pass


class _Topic:
    """A topic that is appended to."""

    def __init__(self, world: World, situation: Situation) -> None:
        self.world, self.situation, self.name = world, situation, world.topic()
        self.end = situation.rows
        world.produce(self.name, self.end)

    def declared(self, strategy: DeclaredStrategy) -> dict[str, Declared]:
        orders = kafka_source("orders", topic=self.name, schema=SCHEMA)
        query = "SELECT order_id AS id, customer, amount FROM orders"
        view = materialized_view("copy", query=query, upstreams=[orders], strategy=strategy)
        return {"orders": orders, "copy": view}

    def change(self, step: int) -> None:  # noqa: ARG002  (all steps are alike)
        if self.situation.grown:
            self.world.produce(self.name, self.situation.grown, first=self.end)
            self.end += self.situation.grown

    def content(self, view: Path) -> tuple[object, object]:
        expected = self.world.spark.range(0, self.end).selectExpr(
            "id", "concat('customer-', id % 50000) AS customer", "CAST(id % 100000 AS DOUBLE) / 8 AS amount"
        )
        return self.world.content(view, *COLUMNS), self.world.digest(expected, *COLUMNS)

    def remove(self) -> None:
        self.world.remove_topic(self.name)
