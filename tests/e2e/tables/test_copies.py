"""Rows of views without a key: what changes do to them, and the numbers by which copies are told apart."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException

from backfill_assets.adapters.compute import copies
from backfill_assets.adapters.compute.copies import by_copies
from backfill_assets.adapters.compute.selectable_rows import Held, Part, SelectableRows, part_of
from backfill_assets.query.relational import COPY, ROW_HASH
from backfill_assets.query.rowwise import CARRIED_CHANGE
from backfill_assets.query.working_columns import OPERATION
from tests.support.local_rows import local_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.e2e

Row = tuple[int | None, int | None]

# Spark's hashes leave out nulls: the first two have the same hash, and so have the next two.
ROWS: tuple[Row, ...] = ((1, None), (None, 1), (2, None), (None, 2), (3, 4), (None, None))


def changes_of(view: "DataFrame", net: Counter[Row], *, few: bool) -> "DataFrame":
    """What `by_copies` makes of these changes of a view."""
    feed = [(*row, kind) for row, more in net.items() for kind in ["insert" if more > 0 else "delete"] * abs(more)]
    given = local_rows(view.sparkSession, feed, f"a INT, b INT, {CARRIED_CHANGE} STRING")
    rows = given.coalesce(1 if few else 2)
    found = by_copies(Part(rows, few), SelectableRows(every=lambda: view), key=(ROW_HASH, COPY), rows=len(feed))
    with found as made:
        assert isinstance(made, Part)
        return made.frame.localCheckpoint()


def view_of(spark: "SparkSession", held: Counter[Row]) -> "DataFrame":
    """The rows of a view: those with the same hash have different numbers."""
    given = local_rows(spark, list(held.elements()), "a INT, b INT")
    place = "CAST(row_number() OVER (PARTITION BY xxhash64(a, b) ORDER BY a, b) AS LONG)"
    return given.selectExpr("a", "b", f"xxhash64(a, b) AS {ROW_HASH}", f"{place} AS {COPY}")


@pytest.mark.parametrize("seed", range(3))
def test_copies_come_and_go_and_their_numbers_are_never_shared(spark: "SparkSession", seed: int) -> None:
    draw = random.Random(seed)
    held = Counter({row: draw.randrange(4) for row in ROWS})
    net = Counter({row: draw.randint(-held[row], 3) for row in ROWS} | {(9, 9): 2})
    view = view_of(spark, held)
    before = {(row[ROW_HASH], row[COPY]): (row["a"], row["b"]) for row in view.collect()}
    assert len(before) == held.total()

    found = changes_of(view, net, few=bool(seed % 2)).collect()
    came = [row for row in found if row[OPERATION] == "insert"]
    after = dict(before)
    for row in found:
        if row not in came:
            assert after.pop((row[ROW_HASH], row[COPY])) == (row["a"], row["b"])
    for row in came:
        assert (row[ROW_HASH], row[COPY]) not in after
        after[row[ROW_HASH], row[COPY]] = (row["a"], row["b"])

    assert Counter(after.values()) == held + net
    assert len(came) == sum(max(0, more) for more in net.values())


def both_ways(
    spark: "SparkSession", net: Counter[Row], held: Counter[Row], limits: Sequence[int] = (copies.MOST_BYTES, 0)
) -> "Iterator[Part | pa.Table]":
    """What becomes of copies as this process tells it, and as Spark does where there are more bytes of them than a limit."""
    view = view_of(spark, held)
    rows = view.toArrow()

    def alike(values: pa.Table) -> Held:
        found = rows.filter(pc.is_in(rows.column(ROW_HASH), value_set=values.column(ROW_HASH)))
        return Held(found, part_of(spark, found))

    feed = [(*row, kind) for row, more in net.items() for kind in ["insert" if more > 0 else "delete"] * abs(more)]
    given = local_rows(spark, feed, f"a INT, b INT, {CARRIED_CHANGE} STRING").coalesce(1)
    selectable = SelectableRows(every=lambda: view, alike=alike)
    for most in limits:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(copies, "MOST_BYTES", most)
            with by_copies(Part(given, few=True), selectable, key=(ROW_HASH, COPY), rows=len(feed)) as told:
                yield told


@pytest.mark.parametrize("seed", range(2))
def test_large_changes_are_numbered_by_spark(spark: "SparkSession", seed: int) -> None:
    """And small ones in the same way here, unless different rows have one hash."""
    draw = random.Random(seed)
    some = ROWS if seed else ((1, 2), (3, 4), (5, None), (None, None))
    held = Counter({row: draw.randrange(1, 4) for row in some})
    net = Counter({row: draw.choice([-1, 2]) for row in some} | {(9, 9): 2})
    here, by_spark = ((told, rows_of(told)) for told in both_ways(spark, net, held))
    assert (isinstance(here[0], pa.Table), isinstance(by_spark[0], Part)) == (not seed, True)
    assert here[1] == by_spark[1]
    assert here[1].total() == sum(map(abs, net.values()))


def test_many_copies_of_a_row_are_numbered_by_spark(spark: "SparkSession") -> None:
    few, many = Counter[Row]({(1, 2): 1}), Counter[Row]({(1, 2): 100})
    told = [type(each) for net in (few, many) for each in both_ways(spark, net, Counter({(3, 4): 1}), (1_000,))]
    assert told == [pa.Table, Part]


def rows_of(told: "Part | pa.Table") -> Counter[tuple[object, ...]]:
    names = ["a", "b", ROW_HASH, COPY, OPERATION]
    rows = told.select(names) if isinstance(told, pa.Table) else told.frame.select(*names).toArrow()
    return Counter(tuple(each.values()) for each in rows.to_pylist())


def test_a_row_that_is_to_go_and_is_not_there_is_an_error(spark: "SparkSession") -> None:
    with pytest.raises(PySparkException, match="would be deleted from the view that is not in it"):
        changes_of(view_of(spark, Counter({(3, 4): 1})), Counter({(3, 4): -2}), few=True)
