"""Rows of a view without a key of its own: known by their hash, and by a number among those that are alike.

Which number a row has does not matter, as long as it is the only one. So rows of history get numbers of their epoch, without
a look at other rows; rows that come with changes get those after the rows with their hash; and rows are compared without
their numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow.compute as pc

from backfill_assets.adapters.compute.attempt import Attempt
from backfill_assets.adapters.compute.broadcast_memory import touched_fit
from backfill_assets.adapters.compute.changes import kept
from backfill_assets.adapters.compute.laid_out import laid_out
from backfill_assets.adapters.compute.numbered_copies import numbered_copies
from backfill_assets.adapters.compute.selectable_rows import MOST_LOCAL, Held, Part, SelectableRows, united
from backfill_assets.adapters.compute.staged_rows import bytes_of, write_new
from backfill_assets.adapters.compute.value_parts import ValueParts
from backfill_assets.query.ddl import quoted
from backfill_assets.query.relational import COPY, ROW_HASH
from backfill_assets.query.rowwise import CARRIED_CHANGE
from backfill_assets.query.spelling import backquoted
from backfill_assets.query.working_columns import OPERATION

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["by_copies", "unnumbered", "write_numbered"]

_NUMBERS_OF_EPOCH = 32
"""The bits of a number that count within an epoch."""
_BITS_OF_PLACES: Final = 33
_PLACES: Final = 2**_BITS_OF_PLACES - 1
"""The bits of Spark's `monotonically_increasing_id` that count within a task; those before them count tasks."""
MOST_BYTES = 128 * 2**20
"""The bytes of changes that are numbered in this process, as they are in memory. They are merged there, too."""

_BYTES_BESIDE = 32
_NET, _BYTES = "__net", "__bytes"


def unnumbered(key: Sequence[str]) -> list[str]:
    """The columns of a view's key in which rows are alike that their numbers tell apart."""
    return [name for name in key if name != COPY]


def write_numbered(attempt: Attempt, rows: "DataFrame", key: Sequence[str], parts: ValueParts | None) -> dict[str, int]:
    """Stage rows that are all new to a view, by files in which they are laid out (`laid_out`), with numbers of their epoch:
    those of their places in a task, which are unique among rows that are alike if these are in one task. Otherwise tasks take
    turns: of three, the second one has the numbers 1, 4, 7 and so on."""
    from pyspark.sql import functions as F  # noqa: N812

    from backfill_assets.adapters.sql.apply_relational import hashed

    known = hashed(rows, [name for name in rows.columns if name != ROW_HASH])
    with laid_out(known, unnumbered(key), attempt.scans, parts) as found:
        at = F.monotonically_increasing_id()
        place = at.bitwiseAND(F.lit(_PLACES))
        if parts is not None and not parts.by_values:
            place = place * F.lit(parts.number) + F.shiftrightunsigned(at, _BITS_OF_PLACES)
        numbered = found.rows.withColumn(COPY, place + F.lit((attempt.plan.epoch << _NUMBERS_OF_EPOCH) + 1))
        chosen = numbered.selectExpr(*attempt.columns)
        return write_new(chosen, attempt.staging, tasks=found.tasks, scans=attempt.scans)


@contextmanager
def by_copies(
    changes: Part,
    held: SelectableRows,
    *,
    key: Sequence[str],
    rows: int,
    computed: "Callable[[DataFrame], None]" = lambda _job: None,
) -> "Iterator[Part | pa.Table]":
    """What changes of a view's visible rows (about `rows`) do to a view whose rows are identified by hash and copy (`key`):
    rows that are to be inserted and deleted, as `__op` says; as this process holds them, where they are few. Of the rows that
    the view has `held`, those are read, once, that have the hash of a row of which some come or go. `computed` is told of a
    job before the last.
    """
    visible = [name for name in changes.frame.columns if name != CARRIED_CHANGE]
    with kept(_net(changes, visible)) as once:
        net = Part(once, changes.few)
        found = _found(held, net, key)
        if found is not None and found.bytes <= MOST_BYTES:
            every = once.select(*map(quoted, visible), ROW_HASH, _NET)
            told = numbered_copies(every.toArrow(), found.held.rows, _NET)
            if told is not None:
                computed(every)
                yield told
                return
        part = found.held.part if found is not None else _with_hashes(held, net, key, rows)
        yield _numbered_changes(net, part, visible)


def _net(changes: Part, visible: Sequence[str]) -> "DataFrame":
    """Each row of which the view is to have more or fewer, with its hash, and how many more in `__net`."""
    from pyspark.sql import functions as F  # noqa: N812

    from backfill_assets.adapters.sql.apply_relational import hashed
    from backfill_assets.adapters.sql.map_columns import grouped

    more = F.expr(f"sum(IF({CARRIED_CHANGE} = 'insert', 1, -1))").alias(_NET)
    return hashed(grouped(changes.frame, visible, more).where(f"{_NET} <> 0"), visible)


def _numbered_changes(net: Part, held: Part, visible: Sequence[str]) -> Part:
    """The copies that come and go. Those that go have the last numbers of rows equal to them; those that come have numbers
    after all that rows with their hash have, as rows with the same hash need not be equal."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    columns = [ROW_HASH, *visible]
    of_net = net.frame.withColumn(COPY, F.lit(None).cast("bigint"))
    of_view = held.frame.select(*map(quoted, columns), F.lit(0).cast("bigint").alias(_NET), COPY)
    both = united([Part(of_net, net.few), Part(of_view, held.few)])
    together = both.frame if both.few else both.frame.repartition(quoted(ROW_HASH))

    # Both windows have the same order, so Spark sorts rows once.
    last_first = F.col(COPY).desc_nulls_last()
    equal = Window.partitionBy(*map(quoted, columns)).orderBy(last_first)
    with_hash = Window.partitionBy(ROW_HASH).orderBy(*map(quoted, visible), last_first)
    every = (Window.unboundedPreceding, Window.unboundedFollowing)
    earlier = F.sum(F.greatest(F.col(_NET), F.lit(0))).over(with_hash.rowsBetween(Window.unboundedPreceding, -1))
    counted = together.select(
        "*",
        F.row_number().over(equal).alias("__place"),
        F.sum(_NET).over(equal.rowsBetween(*every)).alias("__more"),
        F.count(COPY).over(equal.rowsBetween(*every)).alias("__copies"),
        F.coalesce(earlier, F.lit(0)).alias("__earlier"),
        F.coalesce(F.max(COPY).over(with_hash.rowsBetween(*every)), F.lit(0)).alias("__last"),
    )
    gone = "raise_error('a row would be deleted from the view that is not in it')"
    new = f"sequence(__last + __earlier + 1, __last + __earlier + {_NET})"
    numbers = F.expr(
        f"CASE WHEN {COPY} IS NOT NULL THEN IF(__place <= -__more, array({COPY}), array()) "
        f"WHEN {_NET} > 0 THEN {new} WHEN __copies < -{_NET} THEN CAST({gone} AS ARRAY<BIGINT>) ELSE array() END"
    )
    operation = F.when(F.col(COPY).isNull(), "insert").otherwise("delete").alias(OPERATION)
    rows = counted.select(*map(quoted, columns), operation, F.explode(numbers).alias(COPY))
    return Part(rows, both.few)


class _Found(NamedTuple):
    """The rows of a view that this process has found, and how many bytes the changes have that they were found for."""

    held: Held
    bytes: float


def _found(held: SelectableRows, net: Part, key: Sequence[str]) -> _Found | None:
    """The rows of a view that are alike in its key, copies aside, with one of few net changes; None where Spark is to find
    them."""
    if not net.few:
        return None
    alike = unnumbered(key)
    # Each new copy is a row of its own here, with its hash, its number and what becomes of it.
    size = f"CAST({bytes_of(net.frame.dtypes)} + {_BYTES_BESIDE} AS DOUBLE) * greatest({_NET}, 1)"
    values = net.frame.selectExpr(*map(backquoted, alike), f"{size} AS {_BYTES}").limit(MOST_LOCAL + 1).toArrow()
    found = held.alike(values.select(alike)) if len(values) <= MOST_LOCAL else None
    return None if found is None else _Found(found, pc.sum(values.column(_BYTES)).as_py() or 0)


def _with_hashes(held: SelectableRows, net: Part, key: Sequence[str], rows: int) -> Part:
    """The same by Spark, of about so many `rows`."""
    from backfill_assets.adapters.sql.semi_join import semi_join

    alike = unnumbered(key)
    touched = net.frame.select(*map(quoted, alike)).distinct()
    few = touched_fit(touched, most=rows)
    return Part(semi_join(held.every(), touched, {name: name for name in alike}, few=few), few=False)
