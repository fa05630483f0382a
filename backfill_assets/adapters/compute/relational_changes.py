"""How a view over several tables changes, derived from the changes of these tables, if its query is linear in each
place that changed.

The old result becomes the new one place by place: the places before are bound to the new rows, the place itself to the
inserted and to the deleted rows, and the places after it to the old rows. A table that is named twice is two places.
The sum of all these is exactly the change of the view (the telescoping rule of incremental view maintenance).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from backfill_assets.adapters.compute.differences import differences
from backfill_assets.adapters.compute.netted_changes import IS_INSERT, netted_changes
from backfill_assets.adapters.compute.no_rows import no_rows
from backfill_assets.adapters.compute.selectable_rows import (
    Finder,
    Held,
    LocalChanges,
    Part,
    SelectableRows,
    gathered,
    united,
)
from backfill_assets.adapters.compute.table_rows import Scratch, table_rows
from backfill_assets.adapters.delta.found_rows import Sought, UnfitError
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.core.epoch.touched_spans import Span
from backfill_assets.core.progress.reads import ChangesRead, FullRead
from backfill_assets.core.strategies.change_log import split_reads
from backfill_assets.errors import VersionsLostError
from backfill_assets.query.ddl import ddl
from backfill_assets.query.key_classes import KeyClass
from backfill_assets.query.relational import RelationalQuery
from backfill_assets.query.rowwise import CARRIED_CHANGE, CHANGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "Changed",
    "TableChanges",
    "changed_part",
    "changed_rows",
    "changes_readable",
    "check_changes_readable",
    "relational_changes",
    "sought_in",
]


@dataclass(frozen=True, kw_only=True)
class Changed:
    """The changes of a table, made anew for each place that reads them: the rows that `come`, those that `go` (None if there
    are none), and the `old` rows (None if no place is to see them). `local`: the changes, if this process holds them;
    otherwise `spans` tells between which values a column of rows that come lies, if that is known, and none go."""

    come: "Callable[[], DataFrame]"
    go: "Callable[[], DataFrame] | None" = None
    old: SelectableRows | None = None
    local: LocalChanges | None = None
    spans: Callable[[str], list[Span] | None] = lambda _column: None

    @property
    def few(self) -> bool:
        """Whether the rows that come are in one partition, and those that go."""
        return self.local is not None and self.local.few


@dataclass(frozen=True, kw_only=True)
class TableChanges:
    """What gives the rows of a table, by name, and is called for those that are read; what became of those that `changed`,
    about so many `rows`; the rows that the view has `held`; and what takes counts for reports, of rows that Spark is to count
    under a name (`measure`), or that are known (`note`); `computed` is told of each job before the last, as it counts what
    it read. `first`: the view has no rows yet."""

    new: Callable[[str], SelectableRows]
    changed: Mapping[str, Changed]
    held: SelectableRows
    spark: "SparkSession"
    rows: int
    measure: "Callable[[DataFrame, str], DataFrame]"
    note: Callable[[str, int], None]
    computed: "Callable[[DataFrame], None]"
    first: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes in all tables, as far as this process holds what changed."""
        local = [each.local for each in self.changed.values()]
        return bool(local) and all(each is not None and each.is_empty for each in local)


def relational_changes(
    query: RelationalQuery, work: TableChanges, places: Sequence[int], *, later: Sequence[int] = ()
) -> Part:
    """The inserted and deleted rows of a view, as in Delta's change data feed; a row may be both.

    The query is linear in the `places` that are taken from old to new here. Those of `later` are old, all others new.
    """
    from pyspark.sql import functions as F  # noqa: N812

    from backfill_assets.adapters.sql.apply_relational import computed_rows

    parts = []
    every = range(len(query.occurrences))
    for number in places:
        one = work.changed[query.occurrences[number]]
        old = [*(at for at in places if at > number), *later]
        beside = _beside(query, work, number, old)
        for kind, rows in (("insert", one.come), ("delete", one.go)):
            if rows is not None:
                bound = [Part(rows(), one.few) if at == number else beside.part(at) for at in every]
                result = computed_rows(query, [each.frame for each in bound])
                few = all(each.few for each in bound)
                parts.append(Part(result.withColumn(CARRIED_CHANGE, F.lit(kind)), few))
    return united(parts)


def at_once(query: RelationalQuery, work: TableChanges, old: Sequence[int]) -> list[SelectableRows]:
    """What each place of a query is bound to while some of them are still old: all rows of its table."""
    return [_at_place(query, work, at, old) for at in range(len(query.occurrences))]


def _at_place(query: RelationalQuery, work: TableChanges, at: int, old: Sequence[int]) -> SelectableRows:
    name = query.occurrences[at]
    if at not in old:
        return work.new(name)
    before = work.changed[name].old
    assert before is not None
    return before


@dataclass(frozen=True)
class _Beside:
    """The rows of other places while one is bound to changes: those that were `found`, of others `every` row."""

    found: Mapping[int, Part]
    every: "Mapping[int, Callable[[], DataFrame]]"

    def part(self, at: int) -> Part:
        """The rows of a place."""
        return self.found[at] if at in self.found else Part(self.every[at](), few=False)


def _beside(query: RelationalQuery, work: TableChanges, number: int, old: Sequence[int]) -> _Beside:
    """What other places are bound to while place `number` is bound to changes: no rows, if they are in another part; of those
    whose rows can be found in this process, only the ones that join with what changed."""
    parts = query.linearity.parts
    nothing = {
        at: Part(no_rows(work.spark, ddl(query.read[query.occurrences[at]])), few=True)
        for at in range(len(parts))
        if parts[at] != parts[number]
    }
    held = _partners(query, work, number, old)
    others = [at for at in range(len(parts)) if at != number and at not in nothing]
    return _Beside(
        found=nothing | {at: each.part for at, each in held.items()},
        every={at: _at_place(query, work, at, old).every for at in others} | _near(query, work, number, old),
    )


def _near(
    query: RelationalQuery, work: TableChanges, number: int, old: Sequence[int]
) -> "dict[int, Callable[[], DataFrame]]":
    """What reads rows of other places that may join with what comes to a place, by the bounds of columns that are equal."""
    found: dict[int, Callable[[], DataFrame]] = {}
    for step in query.lookups(number):
        is_next = step.known == number and not step.nulls and step.key.kind in {"INTEGER", "DATE"}
        spans = work.changed[query.occurrences[number]].spans(step.key.columns[number]) if is_next else None
        if spans is not None:
            near = {at: _at_place(query, work, at, old).near(step.key.columns[at], spans) for at in step.others}
            found |= {at: each for at, each in near.items() if each is not None}
    return found


def _partners(query: RelationalQuery, work: TableChanges, number: int, old: Sequence[int]) -> dict[int, Held]:
    """The rows of other places that join with the changes of a place, of those that are found in this process."""
    local = work.changed[query.occurrences[number]].local
    if local is None:
        return {}
    known: dict[int, list[pa.Table]] = {number: [local.come, local.go]}
    found: dict[int, Held] = {}
    for step in query.lookups(number):
        rows = [(step.known, each) for each in known.get(step.known, ())]
        sought = sought_in(step.key, rows) if rows else None
        if sought is not None:
            places = {at: _at_place(query, work, at, old).found(step.key.columns[at], sought) for at in step.others}
            there = {at: held for at, held in places.items() if held is not None}
            found |= there
            known |= {at: [held.rows] for at, held in there.items()}
    return found


def sought_in(key: KeyClass, tables: Sequence[tuple[int, pa.Table]]) -> Sought | None:
    """The values of a key in rows of some places; None where they are not known in this process."""
    named = [(rows, key.columns[place].lower()) for place, rows in tables]
    columns = [rows.column(each) for rows, name in named for each in rows.column_names if each.lower() == name]
    if len(columns) < len(tables):
        return None
    try:
        return Sought.of(key.kind, columns)
    except UnfitError:
        return None


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


def changed_rows(finder: Finder, read: FullRead, place: Scratch, *, netted: bool) -> Changed:
    """The changes of a finder's table between the versions of a read; `netted`, without rows that came and went between
    them. `place` is a folder for this read alone."""
    upstream = finder.upstream

    def rows(part: FullRead | ChangesRead, name: str) -> "DataFrame":
        return table_rows(finder.spark, upstream, part, finder.columns, replace(place, path=f"{place.path}/{name}"))

    def found() -> "DataFrame":
        parts = [rows(part, str(part.first)) for part in _versions(upstream, read)]
        every = reduce(lambda some, more: some.unionByName(more), parts)
        return netted_changes(every) if netted else every

    old = SelectableRows(
        every=lambda: rows(read.model_copy(update={"last": read.first - 1}), "before"),
        found=finder.in_version(read.first - 1),
    )
    local = finder.changes(_versions(upstream, read))
    if local is not None:
        go = (lambda: local.part(local.go).frame) if len(local.go) else None
        return Changed(come=lambda: local.part(local.come).frame, go=go, old=old, local=local)
    deletes = any(commit.deletes for commit in upstream.commits(read.first - 1, read.last))
    return Changed(
        come=lambda: found().where(f"{CHANGE.name} {IS_INSERT}"),
        go=(lambda: found().where(f"NOT {CHANGE.name} {IS_INSERT}")) if deletes else None,
        old=old,
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
        for part in split_reads(commits)
        if any(commit.rows for commit in part)
    ]


def changed_part(new: Part, held: Part) -> Part:
    """The `differences` of two parts."""
    return gathered(differences(new.frame, held.frame), few=new.few and held.few)
