"""Rows of views without a key: what changes do to them, and the numbers by which copies are told apart."""

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from backfill_assets.adapters.compute.changes import OPERATION
from backfill_assets.adapters.compute.copies import by_copies
from backfill_assets.adapters.compute.selectable_rows import Part, SelectableRows
from backfill_assets.query.relational import COPY, ROW_HASH
from backfill_assets.query.rowwise import CARRIED_CHANGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.e2e

Row = tuple[int | None, int | None]

# Spark's hashes leave out nulls: the first two have the same hash, and so have the next two.
ROWS: tuple[Row, ...] = ((1, None), (None, 1), (2, None), (None, 2), (3, 4), (None, None))


def changes_of(view: "DataFrame", net: Counter[Row], *, few: bool) -> "DataFrame":
    """What `by_copies` makes of these changes of a view."""
    feed = [(*row, kind) for row, more in net.items() for kind in ["insert" if more > 0 else "delete"] * abs(more)]
    given = view.sparkSession.createDataFrame(feed, f"a INT, b INT, {CARRIED_CHANGE} STRING")
    rows = given.coalesce(1 if few else 2)
    found = by_copies(Part(rows, few), SelectableRows(every=lambda: view), key=(ROW_HASH, COPY), rows=len(feed))
    with found as made:
        return made.frame.localCheckpoint()


def view_of(spark: "SparkSession", held: Counter[Row]) -> "DataFrame":
    """The rows of a view: those with the same hash have different numbers."""
    given = spark.createDataFrame(list(held.elements()), "a INT, b INT")
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


def test_a_row_that_is_to_go_and_is_not_there_is_an_error(spark: "SparkSession") -> None:
    with pytest.raises(PySparkException, match="would be deleted from the view that is not in it"):
        changes_of(view_of(spark, Counter({(3, 4): 1})), Counter({(3, 4): -2}), few=True)
