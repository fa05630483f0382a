"""Where the result of a recomputed view may differ from its present rows: in parts of which sums of hashes differ.

Rows are divided by a hash. A part that has the same rows on both sides has the same sums, so only rows of other parts are
compared one by one. Comparing sums needs a scan of both sides, but no shuffle of their rows.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.broadcast_memory import touched_fit
from backfill_assets.adapters.compute.changes import kept
from backfill_assets.adapters.compute.differences import rows_if_few_differ
from backfill_assets.query.ddl import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["DifferingParts", "parts_that_differ"]

LEAST_ROWS = 100_000
"""Fewer rows are compared at once."""
ROWS_OF_PART = 32
_MOST_PARTS = 2**18
_UNHASHED = ("array<", "map<", "struct<", "variant", "collate")
"""Types that Spark has no hash for by which equal values are alike, and others are not: it leaves out nulls within them."""

_PART = "__part"
_COUNTED = ("1", "(first & 4294967295)", "shiftrightunsigned(first, 32)", "second")
"""The rows of a part and the halves of their hashes: numbers of 32 bits, whose sums do not overflow."""


@dataclass(frozen=True)
class DifferingParts:
    """The numbers of the parts that differ, of so many `parts` by a hash of some `columns`; None where all rows are to be
    compared. Old and new together, there are at least so many `rows`."""

    columns: Sequence[str] = ()
    parts: int = 1
    differing: "DataFrame | None" = None
    few: bool = False
    rows: int = LEAST_ROWS

    def only(self, rows: "DataFrame") -> "DataFrame":
        """The rows that may differ."""
        from backfill_assets.adapters.sql.semi_join import semi_join

        if self.differing is None:
            return rows
        marked = rows.selectExpr("*", f"pmod(xxhash64({_values(self.columns)}), {self.parts}) AS {_PART}")
        return semi_join(marked, self.differing, {_PART: _PART}, few=self.few).drop(_PART)


@contextmanager
def parts_that_differ(
    new: "DataFrame", held: "DataFrame", key: Sequence[str], *, rows: int, read: int
) -> "Iterator[DifferingParts | None]":
    """The parts of a view in which its rows differ from new ones; None if most rows do, or if it has no `key`.

    The view has so many `rows`; of about so many that are `read`, rows of a share of the keys tell whether most differ. That
    two parts differ and have equal sums is as likely as that hashes of 96 bits are equal.
    """
    hashed = not any(each in kind.lower() for _, kind in new.dtypes for each in _UNHASHED)
    if key and hashed and rows >= LEAST_ROWS:
        with _differing(new, held, max(1, min(rows // ROWS_OF_PART, _MOST_PARTS))) as found:
            if found is not None:
                yield found
                return
    every = rows_if_few_differ(new, held, key, rows=read) if key else None
    yield None if every is None else DifferingParts(rows=every)


@contextmanager
def _differing(new: "DataFrame", held: "DataFrame", parts: int) -> "Iterator[DifferingParts | None]":
    """The parts that differ, of so many; None if most do."""
    from pyspark.sql import functions as F  # noqa: N812

    sides = (_hashes(new, parts, 1), _hashes(held.select(*map(quoted, new.columns)), parts, -1))
    sums = [F.expr(f"sum(sign * {each})").alias(f"sum_{at}") for at, each in enumerate(_COUNTED)]
    summed = sides[0].unionAll(sides[1]).groupBy(_PART).agg(*sums)
    unequal = " OR ".join(f"sum_{at} <> 0" for at in range(len(sums)))
    with kept(summed.where(unequal).select(_PART)) as found:
        count = found.count()
        few = 2 * count <= parts
        yield DifferingParts(new.columns, parts, found, touched_fit(found, most=count)) if few else None


def _hashes(rows: "DataFrame", parts: int, sign: int) -> "DataFrame":
    values = _values(rows.columns)
    hashed = rows.selectExpr(f"xxhash64({values}) AS first", f"CAST(hash({values}) AS BIGINT) AS second")
    return hashed.selectExpr(f"pmod(first, {parts}) AS {_PART}", "*", f"CAST({sign} AS BIGINT) AS sign")


def _values(columns: Sequence[str]) -> str:
    """SQL for all values, and which of them are null: Spark's hashes leave out nulls, as if (5, NULL) were (NULL, 5)."""
    nulls = ", ".join(f"IF({quoted(name)} IS NULL, '1', '0')" for name in columns)
    return f"concat({nulls}), {', '.join(map(quoted, columns))}"
