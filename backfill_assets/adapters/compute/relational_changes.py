"""How a view over several tables changes, derived from the changes of these tables, if its query is linear in each
place that changed.

The old result becomes the new one place by place: the places before are bound to the new rows, the place itself to the
inserted and to the deleted rows, and the places after it to the old rows. A table that is named twice is two places.
The sum of all these is exactly the change of the view (the telescoping rule of incremental view maintenance).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.broadcast_memory import touched_fit
from backfill_assets.adapters.compute.changes import kept
from backfill_assets.adapters.compute.differences import differences
from backfill_assets.adapters.compute.table_rows import Scratch, table_rows
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.core.progress.reads import ChangesRead, FullRead
from backfill_assets.core.strategies.change_log import by_feed
from backfill_assets.errors import VersionsLostError
from backfill_assets.query.ddl import Column, ddl, quoted
from backfill_assets.query.relational import COPY, ROW_HASH, RelationalQuery
from backfill_assets.query.rowwise import CARRIED_CHANGE, CHANGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "IS_INSERT",
    "Changed",
    "TableChanges",
    "by_copies",
    "changed_rows",
    "changes_readable",
    "check_changes_readable",
    "relational_changes",
]

IS_INSERT = "IN ('insert', 'update_postimage')"
"""The change types in Delta's change data feed for a row that exists after the change; after any other, it does not."""


@dataclass(frozen=True, kw_only=True)
class Changed:
    """The changes of a table, made anew for each place that reads them: the rows that `come`, those that `go` (None if there
    are none), and all `old` rows (None if no place is to see them)."""

    come: "Callable[[], DataFrame]"
    go: "Callable[[], DataFrame] | None" = None
    old: "Callable[[], DataFrame] | None" = None


@dataclass(frozen=True, kw_only=True)
class TableChanges:
    """What gives all rows of a table, by name, and is called for those that are read; what became of those that `changed`,
    about so many `rows`; what gives the rows that the view has `held`, anew for each place that reads them; and what has
    rows counted for reports, under a name. `first`: the view has no rows yet."""

    new: "Callable[[str], DataFrame]"
    changed: Mapping[str, Changed]
    held: "Callable[[], DataFrame]"
    spark: "SparkSession"
    rows: int
    measure: "Callable[[DataFrame, str], DataFrame]"
    first: bool = False


def relational_changes(
    query: RelationalQuery, work: TableChanges, places: Sequence[int], *, later: Sequence[int] = ()
) -> "DataFrame":
    """The inserted and deleted rows of a view, as in Delta's change data feed; a row may be both.

    The query is linear in the `places` that are taken from old to new here. Those of `later` are old, all others new.
    """
    from pyspark.sql import functions as F  # noqa: N812

    from backfill_assets.adapters.sql.apply_relational import computed_rows

    parts = []
    for number in places:
        one = work.changed[query.occurrences[number]]
        old = [*(at for at in places if at > number), *later]
        for kind, rows in (("insert", one.come), ("delete", one.go)):
            if rows is not None:
                every = range(len(query.occurrences))
                bound = [rows() if at == number else _beside(query, work, number, at, old) for at in every]
                parts.append(computed_rows(query, bound).withColumn(CARRIED_CHANGE, F.lit(kind)))
    return reduce(lambda some, more: some.unionAll(more), parts)


def at_once(query: RelationalQuery, work: TableChanges, old: Sequence[int]) -> "list[DataFrame]":
    """What each place of a query is bound to while some of them are still old: all rows of its table."""
    return [_at_place(query, work, at, old) for at in range(len(query.occurrences))]


def _at_place(query: RelationalQuery, work: TableChanges, at: int, old: Sequence[int]) -> "DataFrame":
    name = query.occurrences[at]
    if at not in old:
        return work.new(name)
    before = work.changed[name].old
    assert before is not None
    return before()


def _beside(query: RelationalQuery, work: TableChanges, number: int, at: int, old: Sequence[int]) -> "DataFrame":
    """What place `at` is bound to while place `number` is bound to changes: nothing, if it is in another part."""
    if query.linearity.parts[at] == query.linearity.parts[number]:
        return _at_place(query, work, at, old)
    return work.spark.createDataFrame([], ddl(query.read[query.occurrences[at]]))


def changes_readable(upstreams: Mapping[str, DeltaUpstream], reads: Sequence[FullRead], *, before: bool) -> bool:
    """Whether what changed between the versions of these reads can be read, and what there was `before`: a change feed was on
    wherever rows went, and the files are there."""
    commits = (each for read in reads for each in upstreams[read.source].commits(read.first - 1, read.last))
    if any(each.deletes and not each.feed for each in commits):
        return False
    try:
        check_changes_readable(upstreams, reads, before=before)
    except VersionsLostError:
        return False
    return True


def check_changes_readable(upstreams: Mapping[str, DeltaUpstream], reads: Sequence[FullRead], *, before: bool) -> None:
    """See that the files are there that tell what changed between the versions of these reads, and what there was `before`.

    Errors: `VersionsLostError`.
    """
    for read in reads:
        if before:
            upstreams[read.source].check_whole(read.first - 1)
        for part in _versions(upstreams[read.source], read):
            upstreams[read.source].check_readable(part)


def changed_rows(
    spark: "SparkSession", upstream: DeltaUpstream, read: FullRead, columns: Sequence[Column], place: Scratch
) -> Changed:
    """The changes of a table between the versions of a read. `place` is a folder for this read alone."""

    def rows(part: FullRead | ChangesRead, name: str) -> "DataFrame":
        return table_rows(spark, upstream, part, columns, replace(place, path=f"{place.path}/{name}"))

    def found() -> "DataFrame":
        parts = [rows(part, str(part.first)) for part in _versions(upstream, read)]
        return reduce(lambda some, more: some.unionByName(more), parts)

    deletes = any(commit.deletes for commit in upstream.commits(read.first - 1, read.last))
    return Changed(
        come=lambda: found().where(f"{CHANGE.name} {IS_INSERT}"),
        go=(lambda: found().where(f"NOT {CHANGE.name} {IS_INSERT}")) if deletes else None,
        old=lambda: rows(read.model_copy(update={"last": read.first - 1}), "before"),
    )


def _versions(upstream: DeltaUpstream, read: FullRead) -> list[ChangesRead]:
    """The changes between the versions of a read, in parts that are read in the same way."""
    commits = upstream.commits(read.first - 1, read.last)
    return [
        ChangesRead(
            source=read.source,
            table_id=read.table_id,
            first=part[0].version,
            last=part[-1].version,
            rows=sum(commit.rows for commit in part),
        )
        for part in by_feed(commits)
        if any(commit.rows for commit in part)
    ]


@contextmanager
def by_copies(changes: "DataFrame", held: "DataFrame", *, rows: int) -> "Iterator[DataFrame]":
    """Changes of a view whose rows are identified by hash and copy, from the changes of its visible rows (about
    `rows`). The rows that it has `held` are read once.

    For each touched hash, the present rows and the changes give the final rows. These are numbered again, and the
    difference from the present rows is the change.
    """
    from pyspark.sql import functions as F  # noqa: N812

    from backfill_assets.adapters.sql.apply_relational import hashed, numbered
    from backfill_assets.adapters.sql.map_columns import grouped
    from backfill_assets.adapters.sql.semi_join import semi_join

    visible = [name for name in changes.columns if name != CARRIED_CHANGE]
    columns = list(map(quoted, visible))
    came = grouped(changes, visible, F.expr(f"sum(IF({CARRIED_CHANGE} = 'insert', 1, -1))").alias("__n"))
    net = hashed(came.where("__n <> 0"), visible)
    touched = net.select(ROW_HASH).distinct()
    few = touched_fit(touched, most=rows)
    with kept(semi_join(held, touched, {ROW_HASH: ROW_HASH}, few=few).select(*columns, ROW_HASH, COPY)) as old:
        both = old.select(*columns, F.lit(1).cast("bigint").alias("__n")).unionByName(net.select(*columns, "__n"))
        left = grouped(both, visible, F.sum("__n").alias("__n")).where("__n <> 0")
        gone = F.raise_error(F.lit("a row would be deleted from the view that is not in it"))
        times = F.sequence(
            F.lit(1).cast("bigint"), F.when(F.col("__n") > 0, F.col("__n")).otherwise(gone.cast("bigint"))
        )
        copies = left.select(*columns, F.explode(times).alias(COPY)).drop(COPY)
        yield differences(numbered(copies, visible), old)
