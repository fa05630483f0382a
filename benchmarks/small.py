"""Small work: epochs of few changed or new rows of small views, their first rows, and the check of a declared key, each
against the same by the means that large work needs."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from unittest import mock

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from backfill_assets import delta_table, materialized_view
from backfill_assets.adapters.compute import key_checks, tasks, value_parts
from backfill_assets.declare.model import Declared
from benchmarks.measure import Comparison, in_turns, timed
from benchmarks.tables import copy_of, make_table
from benchmarks.world import World

__all__ = ["run"]

SMALL = 30
"""Rows of a small table."""
WARMUPS = 3
QUERIES = {
    "rows with a key": "SELECT id, amount * 2 AS twice FROM orders",
    "groups": "SELECT id % 5 AS part, count(*) AS n, sum(amount) AS total FROM orders GROUP BY id % 5",
    "a join, computed in full": "SELECT o.id, p.amount FROM orders o JOIN orders p ON o.id = p.id % 7",
}


def run(world: World, *, rows: int = 10_000_000, repetitions: int = 7) -> Iterator[Comparison]:
    """`rows` is the size of the table whose key is checked."""
    for case, query in QUERIES.items():
        with world.folder() as folder:
            make_table(world, folder / "orders", SMALL)
            yield _epochs(world, folder, query, f"an epoch of {case}", repetitions)
    with world.folder() as folder:
        make_table(world, folder / "orders", SMALL)
        yield _new_rows(world, folder, repetitions)
    with world.folder() as folder:
        make_table(world, folder / "orders", SMALL)
        yield _first_rows(world, folder, repetitions)
    with world.folder() as folder:
        make_table(world, folder / "orders", rows)
        yield _key(world, folder / "orders", rows, min(repetitions, 3))


def _epochs(world: World, folder: Path, query: str, case: str, repetitions: int) -> Comparison:
    """Epochs of three changed rows of a view; the peer does as if there were many."""
    table = delta_table("orders", path=str(folder / "orders"), primary_key="id")
    declared: dict[str, Declared] = {"small": materialized_view("small", query=query, upstreams=[table])}
    world.refresh(folder, declared, "small")

    def ours() -> float:
        DeltaTable(str(folder / "orders")).update({"amount": "amount + 1.0"}, predicate="id < 3")
        return timed(lambda: world.refresh(folder, declared, "small"))

    as_many = mock.patch.object(tasks, "FILES_OF_TASK", -1)
    taken, without = _in_turns(ours, as_many, repetitions, WARMUPS)
    return Comparison(
        benchmark="small", case=case, peer="the same with shuffles", rows=SMALL, ours=taken, theirs=without
    )


def _new_rows(world: World, folder: Path, repetitions: int) -> Comparison:
    """Epochs of three new rows of a view with a key; the peer has Spark look for their keys in the view."""
    declared: dict[str, Declared] = {"copy": copy_of(folder / "orders", "incremental")}
    world.refresh(folder, declared, "copy")
    numbers = count(SMALL)

    def ours() -> float:
        rows = DeltaTable(str(folder / "orders")).to_pyarrow_table().slice(0, 3)
        ids = pa.array([next(numbers) for _ in range(3)], pa.int64())
        write_deltalake(str(folder / "orders"), rows.set_column(0, "id", ids), mode="append")
        return timed(lambda: world.refresh(folder, declared, "copy"))

    by_spark = mock.patch.object(key_checks, "MOST_ROWS", -1)
    taken, without = _in_turns(ours, by_spark, repetitions, WARMUPS)
    case = "an epoch of new rows with a key"
    return Comparison(
        benchmark="small", case=case, peer="their keys are looked for by Spark", rows=SMALL, ours=taken, theirs=without
    )


def _first_rows(world: World, folder: Path, repetitions: int) -> Comparison:
    """First rows of a joined view of small tables; the peer counts them before they are written."""
    table = delta_table("orders", path=str(folder / "orders"), primary_key="id")
    query = "SELECT o.id, p.amount FROM orders o JOIN orders p ON o.id = p.id"
    declared: dict[str, Declared] = {"small": materialized_view("small", query=query, upstreams=[table])}

    def ours() -> float:
        with world.folder() as place:
            return timed(lambda: world.refresh(place, declared, "small"))

    counted = mock.patch.object(value_parts, "_LITTLE_BYTES", -1)
    taken, without = _in_turns(ours, counted, repetitions, WARMUPS)
    case = "first rows of a join of small tables"
    return Comparison(benchmark="small", case=case, peer="the same, counted", rows=SMALL, ours=taken, theirs=without)


def _key(world: World, source: Path, rows: int, repetitions: int) -> Comparison:
    """A view is created over a table with a key; the peer lets Spark check that."""
    declared: dict[str, Declared] = {"copy": copy_of(source)}

    def ours() -> float:
        with world.folder() as place:
            return timed(lambda: world.create(place, declared, "copy"))

    by_spark = mock.patch.object(key_checks, "is_surely_unique", return_value=False)
    taken, without = _in_turns(ours, by_spark, repetitions, 1)
    case = "a view is created over a table with a key"
    return Comparison(
        benchmark="small", case=case, peer="the key is compared by Spark", rows=rows, ours=taken, theirs=without
    )


def _in_turns(
    ours: Callable[[], float], otherwise: "AbstractContextManager[object]", repetitions: int, warmups: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The seconds of both sides; the peer does the same in another way."""

    def theirs() -> float:
        with otherwise:
            return ours()

    taken, without = in_turns(ours, theirs, repetitions=repetitions, warmups=warmups)
    return taken, without
