"""Keys that must be unique, checked before anything is committed: the key by which changes are merged, and a view's own
key.

Two rows with the same merge key mean that an upstream's key is not unique, and one of them would be lost. The view's
own key is a constraint: rows are merged by where they came from, so a row may have the same primary key as one that
will be deleted by a change of another upstream.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from backfill_assets.adapters.compute.attempt import Attempt
from backfill_assets.adapters.compute.broadcast_memory import fit_in
from backfill_assets.adapters.compute.changes import ROWS, DuplicateKey, batch, duplicate_keys
from backfill_assets.adapters.compute.poison import Work, computed
from backfill_assets.adapters.compute.poison_search import Suspects, poison_rows
from backfill_assets.adapters.compute.selectable_rows import SelectableRows
from backfill_assets.adapters.compute.table_rows import whole_version
from backfill_assets.adapters.delta.distinct_keys import MOST_ROWS, are_surely_distinct, is_surely_unique
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.sql.broadcasts import Keys
from backfill_assets.adapters.sql.keys import among_keys
from backfill_assets.adapters.sql.named_rows import named_rows
from backfill_assets.core.epoch.ports import KeysLeftOut
from backfill_assets.core.epoch.records import Plan
from backfill_assets.errors import DuplicateKeyError
from backfill_assets.query.ddl import quoted
from backfill_assets.query.query import Query, input_columns, unique_keys
from backfill_assets.query.relational import RelationalQuery
from backfill_assets.query.rowwise import RowwiseQuery
from backfill_assets.query.working_columns import MOVED, OPERATION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "KEY_BYTES",
    "MOST_ROWS",
    "NAMED_KEYS",
    "KeysAndLeftOut",
    "check_changes",
    "check_rows",
    "check_unique",
    "duplicate",
]

Constrained = RowwiseQuery | RelationalQuery
"""A query whose rows may have duplicate keys."""

KEY_BYTES = "__key_bytes"
"""A count of staged changes: the bytes that the strings and nested values in their keys take."""

NAMED_KEYS = 5

INSERTED = f"{ROWS}/{OPERATION}=insert"
"""The folder of staged rows that are inserted."""


@dataclass(frozen=True, kw_only=True)
class KeysAndLeftOut:
    """The keys of a query that must be unique, and the keys of its tables' rows that are left out."""

    unique: Sequence[tuple[str, ...]]
    left_out: KeysLeftOut


def check_unique(
    runner: SparkRunner,
    target: str,
    query: Constrained,
    versions: Mapping[str, tuple[DeltaUpstream, int]],
    keys: KeysAndLeftOut,
) -> None:
    """Check that each of these keys of a query is unique in versions of its upstreams.

    A key that is copied from the upstreams is compared in this process first. Unless it is surely unique there, Spark runs
    the query and reads the needed columns, once per key.

    Errors: `DuplicateKeyError`; `PoisonRowError` if Spark cannot compute the query's conditions for some rows.
    """

    def inputs(spark: "SparkSession") -> "dict[str, DataFrame]":
        columns = input_columns(query)
        rows = {
            name: whole_version(spark, upstream, version, columns[name])
            for name, (upstream, version) in versions.items()
        }
        return {
            name: each.where(f"NOT {among_keys(columns[name], keys.left_out[name])}") for name, each in rows.items()
        }

    def search(spark: "SparkSession") -> Suspects:
        upstreams = {name: upstream for name, (upstream, _) in versions.items()}
        rows = sum(sum(upstream.rows(version)) for upstream, version in versions.values())
        return poison_rows(query, inputs(spark), upstreams, ["*"], rows=rows)

    def find(spark: "SparkSession", *, key: tuple[str, ...]) -> list[DuplicateKey]:
        return duplicate_keys(batch(query, inputs(spark)), key, branch=query.branch_column, most=NAMED_KEYS)

    for key in keys.unique:
        if isinstance(query, RowwiseQuery) and key == query.key_columns and _is_copied(query, versions):
            continue
        work = Work(target=target, words="the check of its key", epoch=0)
        found = computed(runner, work, partial(find, key=key), search)
        if found:
            raise DuplicateKeyError(
                f"({', '.join(key)}) is not unique in {', '.join(versions)}; more than one row has {_named(query, found)}",
                hint=f"nothing was written. {_remedy(query, key)}, or declare the columns that identify a row",
                keys=_texts(found),
            )


def _is_copied(query: RowwiseQuery, versions: Mapping[str, tuple[DeltaUpstream, int]]) -> bool:
    """Whether rows of a query are told apart by the key of an upstream's row, in whose version it is unique, and by the part
    of UNION ALL."""
    key = query.copied_key
    return bool(key) and all(is_surely_unique(upstream, version, key) for upstream, version in versions.values())


def check_rows(attempt: Attempt, query: Constrained, count: int) -> None:
    """Check that no two of so many staged rows, all rows of a view, have the same key. Errors: `DuplicateKeyError`."""
    for key in unique_keys(query):
        come = _inserted(attempt, key, count)
        if come is not None and are_surely_distinct(come):
            continue
        rows = attempt.staging.read(attempt.spark, INSERTED)
        found = duplicate_keys(rows, key, branch=query.branch_column, most=NAMED_KEYS)
        if found:
            raise duplicate(attempt.plan, query, key, found)


def check_changes(
    attempt: Attempt,
    query: Constrained,
    changes: "Callable[[], DataFrame]",
    held: SelectableRows,
    counts: Mapping[str, int],
) -> None:
    """Check that changes, one per merge key, do not leave two rows with the same key in a view.

    `counts` are those of the changes by `__op`, of `KEY_BYTES`, and of `MOVED`: only rows that are new, or have another
    primary key than before, can have the key of another row. `changes` gives them to Spark, `held` the view's rows: often
    this process can tell without them that all keys are new. Errors: `DuplicateKeyError`.
    """
    plan, scans = attempt.plan, attempt.scans
    first, *declared = unique_keys(query)
    few = partial(fit_in, attempt.spark, _size(query, counts))
    if counts["insert"] and not _are_surely_new(attempt, first, held, counts["insert"]):
        new = changes().where(f"{OPERATION} = 'insert'")
        found = _having(held.every(), new, first, few=few()).select(*map(quoted, first)).limit(NAMED_KEYS)
        twice = named_rows(found)
        scans.computed(found)
        if twice:
            raise duplicate(plan, query, first, [DuplicateKey(key=tuple(row), rows=2) for row in twice])
    for key in declared if counts["insert"] or counts[MOVED] else ():
        after = _meeting(query, key, changes(), held.every(), few=few())
        same = duplicate_keys(after, key, branch=query.branch_column, most=NAMED_KEYS, scans=scans)
        if same:
            raise duplicate(plan, query, key, same)


def _are_surely_new(attempt: Attempt, key: Sequence[str], held: SelectableRows, count: int) -> bool:
    """Whether no row of a view has the key of a row that is inserted, as a column of the key shows."""
    come = _inserted(attempt, key, count)
    return come is not None and any(held.lacks(name, come.column(name)) for name in key)


def _inserted(attempt: Attempt, key: Sequence[str], count: int) -> pa.Table | None:
    """The keys of the staged rows to be inserted; None if they are too many for this process, or cannot be read."""
    try:
        return attempt.staging.columns(INSERTED, key) if count <= MOST_ROWS else None
    except (pa.ArrowException, OSError):
        return None  # Spark says what is wrong with the files


def duplicate(plan: Plan, query: Query, key: Sequence[str], found: Sequence[DuplicateKey]) -> DuplicateKeyError:
    """The error for an epoch that would leave more than one row with these keys."""
    work = Work.of(plan)
    again = "" if work.pinned else ": the epoch is then planned again"
    return DuplicateKeyError(
        f"{plan.target}: epoch {plan.epoch} would leave more than one row with the same key ({', '.join(key)}), first: "
        f"{_named(query, found)}",
        hint=f"nothing was written. {_remedy(query, key)} and {work.retry}{again}. Or declare the columns that identify a "
        f"row, then `backfill reset {work.name}`",
        keys=_texts(found),
    )


def _meeting(
    query: Constrained, key: Sequence[str], changes: "DataFrame", held: "DataFrame", *, few: bool
) -> "DataFrame":
    """The rows that changes insert or update, and unchanged rows that have one of their keys."""
    columns = list(map(quoted, dict.fromkeys((*key, *query.key_columns))))
    come, gone = changes.where(f"{OPERATION} <> 'delete'"), changes.where(f"{OPERATION} <> 'insert'")
    same = _having(held, come, key, few=few)
    stay = _having(same, gone, query.key_columns, few=few, how="left_anti")
    return come.select(*columns).unionByName(stay.select(*columns))


def _having(
    left: "DataFrame", right: "DataFrame", key: Sequence[str], *, few: bool, how: str = "left_semi"
) -> "DataFrame":
    """The rows of `left` whose key is in `right`, or is not in it."""
    from backfill_assets.adapters.sql.semi_join import semi_join

    return semi_join(left, right, {name: name for name in key}, few=few, how=how)


def _size(query: Constrained, counts: Mapping[str, int]) -> Keys:
    """The keys of changes of all kinds."""
    columns = {name for key in unique_keys(query) for name in key}
    rows = sum(counts[each] for each in ("insert", "update", "delete"))
    return Keys(rows=rows, columns=len(columns), bytes=counts[KEY_BYTES])


def _named(query: Query, found: Sequence[DuplicateKey]) -> str:
    """Keys, each with the parts of UNION ALL that have it."""
    return ", ".join(f"{each.key}{_places(query, each.parts)}" for each in found)


def _places(query: Query, parts: Sequence[int]) -> str:
    if not isinstance(query, RowwiseQuery) or not parts:
        return ""
    return " in " + " and ".join(f"part {part + 1} ({query.branches[part].upstream})" for part in parts)


def _remedy(query: Query, key: Sequence[str]) -> str:
    if isinstance(query, RowwiseQuery) and query.branch_column and tuple(key) == query.primary_key:
        return "If a row is being moved from one table to another, wait until the first has deleted it; else correct the rows"
    return "Correct the upstream's rows"


def _texts(found: Sequence[DuplicateKey]) -> list[list[str]]:
    return [list(map(str, each.key)) for each in found]
