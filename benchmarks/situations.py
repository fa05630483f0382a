"""Whether the strategy that is chosen is the fastest: constructed situations, each measured with every strategy.

A table is made as the situation says; then, for each strategy that nothing speaks against, a view over it is refreshed
epoch by epoch until it is live and level, with a step of changes to the table after each of the first epochs, which is not
part of the measure. The "peer" is the fastest strategy, so a ratio of 1 means that the choice was the best one.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from deltalake import DeltaTable

from backfill_assets import delta_table, materialized_view
from backfill_assets.backfill.choose import Choice
from backfill_assets.backfill.choose_costs import Strategy
from backfill_assets.backfill.control import Limits
from backfill_assets.choosing import choice_of
from backfill_assets.model import MaterializedView
from benchmarks.measure import Comparison
from benchmarks.world import World

__all__ = ["SITUATIONS", "Situation", "run"]

QUERY = "SELECT id, customer, amount FROM orders"
STEPS = 6
"""How often the table changes while a view is read; then it rests, so that every strategy has the same to do."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """A table and a budget. `churn`: rows updated in each step; `grown`: rows appended in each; `chunk`: rows of an epoch.

    `clustered`: the files follow each other in the order of the key. `kept_hours`: how long removed files are kept.
    """

    name: str
    rows: int
    chunk: int
    files: int = 8
    clustered: bool = True
    keyed: bool = True
    append_only: bool = False
    churn: int = 0
    grown: int = 0
    kept_hours: int = 168


BASE = Situation(name="", rows=400_000, chunk=100_000)
SITUATIONS = tuple(
    replace(BASE, name=f"{size}, {kind}, {layout}", **sized, **kinds, **laid)
    for size, sized in {
        "one chunk": {"rows": 50_000},
        "four chunks": {"rows": 400_000},
        "sixteen chunks": {"rows": 1_600_000},
    }.items()
    for kind, kinds in {
        "at rest": {},
        "appended to": {"append_only": True, "keyed": False, "grown": 1_000},
        "updated a little": {"churn": 100},
        "updated a lot": {"churn": 20_000},
        "appended and updated": {"churn": 1_000, "grown": 1_000},
    }.items()
    for layout, laid in {"clustered": {}, "not clustered": {"clustered": False}}.items()
)
"""Thirty of them."""


def run(world: World, *, repetitions: int = 1, situations: int = len(SITUATIONS)) -> Iterator[Comparison]:
    """The first so many situations; of several repetitions the fastest counts for each strategy."""
    for situation in SITUATIONS[:situations]:
        with world.folder() as folder:
            _table(world, folder / "orders", situation)
            choice = _choice(world, folder, situation)
            ruled_out = {each.strategy for each in choice.ruled_out}
            possible = [each.strategy for each in choice.estimates if each.strategy not in ruled_out]
        taken = {
            strategy: min(_measured(world, situation, strategy) for _ in range(repetitions)) for strategy in possible
        }
        assert choice.chosen is not None, choice.words
        fastest = min(taken, key=lambda each: taken[each])
        yield Comparison(
            benchmark="situations",
            case=f"{situation.name}: {choice.chosen}",
            peer=f"the fastest, {fastest}",
            rows=situation.rows,
            ours=(taken[choice.chosen],),
            theirs=(taken[fastest],),
            details=dict(taken),
        )


def _choice(world: World, folder: Path, situation: Situation) -> Choice:
    declared = {"copy": _view(folder / "orders", situation, "auto")}
    workspace = world.workspace(folder, declared)
    try:
        return choice_of(workspace, declared["copy"], chunk_rows=situation.chunk)
    finally:
        workspace.runner.close()


def _measured(world: World, situation: Situation, strategy: Strategy) -> float:
    """Seconds that the view takes to be live; the table is made anew and changes in the same way for each strategy."""
    with world.folder() as folder:
        place = folder / "orders"
        _table(world, place, situation)
        declared = {"copy": _view(place, situation, strategy)}
        limits = Limits(chunk_rows=situation.chunk, max_rows=situation.chunk)
        seconds = 0.0
        for step in count():
            started = time.perf_counter()
            report = world.refresh(folder, declared, "copy", limits).report
            seconds += time.perf_counter() - started
            if step < STEPS:
                _change(world, place, situation, step)
            elif report.record.live and not report.epochs:
                break
        held = world.content(folder / "warehouse" / "views" / "copy", "id", "customer", "amount")
        assert held == world.content(place, "id", "customer", "amount"), "the view must hold what the table holds"
    return seconds


def _table(world: World, place: Path, situation: Situation) -> None:
    rows = world.spark.range(0, situation.rows, numPartitions=situation.files).selectExpr(
        "id", "concat('customer-', id % 50000) AS customer", "CAST(id % 100000 AS DOUBLE) / 8 AS amount"
    )
    if not situation.clustered:
        rows = rows.repartition(situation.files, rows["customer"])
    options = {
        "delta.enableChangeDataFeed": "true",
        "delta.deletedFileRetentionDuration": f"interval {situation.kept_hours} hours",
        **({"delta.appendOnly": "true"} if situation.append_only else {}),
    }
    rows.write.format("delta").options(**options).save(str(place))


def _change(world: World, place: Path, situation: Situation, step: int) -> None:
    if situation.churn:
        every = max(1, situation.rows // situation.churn)
        DeltaTable(str(place)).update({"amount": "amount + 1.0"}, predicate=f"id % {every} = {step}")
    if situation.grown:
        first = situation.rows + step * situation.grown
        new = world.spark.range(first, first + situation.grown, numPartitions=1).selectExpr(
            "id", "'new' AS customer", "CAST(0 AS DOUBLE) AS amount"
        )
        new.write.format("delta").mode("append").save(str(place))


def _view(place: Path, situation: Situation, strategy: Strategy | str) -> MaterializedView:
    table = delta_table("orders", path=str(place), primary_key="id" if situation.keyed else None)
    return materialized_view("copy", query=QUERY, upstreams=[table], strategy=strategy)  # type: ignore[arg-type]
