"""Ranges of the values of a column, by which rows of a view are laid out while they are computed: known before that from the
table that the column is read from.

Otherwise Spark would compute the rows a first time to look for such ranges, or have to keep them.
"""

from collections.abc import Mapping
from math import prod
from typing import NamedTuple

from backfill_assets.adapters.compute.attempt import Attempt
from backfill_assets.adapters.compute.key_ranges import sampled
from backfill_assets.adapters.compute.tasks import fit_one_task, parallelism, tasks_of_machine
from backfill_assets.adapters.delta.key_statistics import WHOLE, spans_of_files
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.sql.keys import part_of_value
from backfill_assets.core.epoch.merge_groups import MOST_OVERLAP, rows_of_file
from backfill_assets.core.epoch.ports import KeyRanges
from backfill_assets.core.progress.reads import FullRead, LookupRead, SnapshotRead
from backfill_assets.core.strategies.key_cuts import by_files, by_sample, thinned
from backfill_assets.core.strategies.table_plans import chunk_places
from backfill_assets.query.ddl import Column, columns_of_delta, quoted
from backfill_assets.query.query import Query
from backfill_assets.query.relational import RelationalQuery

__all__ = ["FEWEST", "ValueParts", "value_parts"]

FEWEST = 4
"""Rows of fewer files than this are counted first: they are little work, and then make no more files than they need."""

_PER_PROCESSOR, _LEAST_PARTS, _MOST_PARTS = 4, 8, 256
"""A part is a task, and for each row its number is sought among the bounds: no more of them than keep all processors busy."""

_LITTLE_BYTES = 2**20
"""The size of the files of small tables: values in them may be arrays, of which a query makes many rows."""


class ValueParts(NamedTuple):
    """So many parts of a view's rows, SQL for the number of the part in which a row is (empty: any), and how many rows a
    file has."""

    number: int
    of_row: str
    rows_of_file: int

    @property
    def by_values(self) -> bool:
        """Whether rows with the same value are in one part."""
        return self.number == 1 or bool(self.of_row)


def value_parts(
    attempt: Attempt, query: Query, upstreams: Mapping[str, DeltaUpstream], column: str, *, rows: int
) -> ValueParts | None:
    """Parts by the values of a column of a view with about so many `rows`; None if its values are not known before they are
    computed, or rows seem to be few. Of tables that are surely little work, one part. Where 0 rows are known, there are about
    as many as in the table of the column if each of them gives its own; for other queries None.

    On a machine that does few tasks at once, rows stay in these: a value is then in as many files at most, and no row moves.
    """
    if not isinstance(query, RelationalQuery):
        return None
    together = _together(attempt, query, upstreams)
    if together is not None:
        return together
    of_file = rows_of_file(_bytes_of_row(attempt, upstreams))
    tasks = tasks_of_machine(attempt.spark)
    are_many = rows >= of_file if rows else _rows_read(attempt) > (FEWEST - 1) * of_file
    if 0 < tasks <= MOST_OVERLAP and are_many:
        return ValueParts(tasks, "", of_file)
    return _by_values(attempt, query, upstreams, column, rows=rows)


def _by_values(
    attempt: Attempt, query: RelationalQuery, upstreams: Mapping[str, DeltaUpstream], column: str, *, rows: int
) -> ValueParts | None:
    place, name = query.origins.get(column.lower(), (-1, ""))
    if place < 0 or not (rows or (query.grouped is None and place in query.linearity.linear)):
        return None
    upstream = upstreams[query.occurrences[place]]
    read = _read_of(attempt, place, upstream.name)
    found = next((each for each in query.columns[upstream.name] if each.name.lower() == name), None)
    if read is None or found is None or not _are_alike(found.type, _type_in_view(attempt.schema, column)):
        return None
    of_file = rows_of_file(_bytes_of_row(attempt, upstreams))
    files = -(-(rows or _rows_of(read)) // of_file)
    if files < FEWEST:
        return None
    wanted = max(_LEAST_PARTS, _PER_PROCESSOR * parallelism(attempt.spark))
    ranges = _ranges(attempt, upstream, read, found, min(files, wanted, _MOST_PARTS))
    if ranges is None or not ranges.bounds:
        return None
    bounds = [str(key[0]) for key in ranges.bounds]
    return ValueParts(len(bounds) + 1, part_of_value(quoted(column), found.type, bounds), of_file)


def _together(attempt: Attempt, query: RelationalQuery, upstreams: Mapping[str, DeltaUpstream]) -> ValueParts | None:
    """One part, if tables are so small that one task has little work, even if each row meets each row of the others, and what
    it writes fits in a file."""
    reads = [each for each in attempt.read.values() if isinstance(each, SnapshotRead | FullRead)]
    rows = {each.source: 1 + _rows_of(each) for each in reads}
    if len(rows) < len(attempt.read) or not rows.keys() >= set(query.occurrences):
        return None
    files = [file for each in reads for file in upstreams[each.source].chosen(each)]
    most = prod(rows[name] for name in query.occurrences)
    if not fit_one_task(most, len(files)) or sum(each.size for each in files) > _LITTLE_BYTES:
        return None
    of_file = rows_of_file(_bytes_of_row(attempt, upstreams))
    return ValueParts(1, "0", of_file) if most <= of_file else None


def _type_in_view(schema: str, column: str) -> str:
    return next(each.type for each in columns_of_delta(schema) if each.name.lower() == column.lower())


def _are_alike(read: str, held: str) -> bool:
    """Whether a column of a view has bounds where what it is read from has them: parts of a union may have given it another
    type, such as text to numbers."""
    return (read in WHOLE and held in WHOLE) or (read == held and read in {"STRING", "DATE"})


def _bytes_of_row(attempt: Attempt, upstreams: Mapping[str, DeltaUpstream]) -> float:
    """About how many bytes a row of joined tables has in files: as many as a row of each of them."""
    read = [each for each in attempt.read.values() if isinstance(each, SnapshotRead | FullRead | LookupRead)]
    sizes = {each.source: sum(file.size for file in upstreams[each.source].chosen(each)) for each in read}
    return sum(sizes[each.source] / max(1, _rows_of(each)) for each in read)


def _rows_read(attempt: Attempt) -> int:
    """The rows of the largest table that is read in full, or of a chunk."""
    return max(
        (_rows_of(read) for read in attempt.read.values() if isinstance(read, SnapshotRead | FullRead)), default=0
    )


def _rows_of(read: SnapshotRead | FullRead | LookupRead) -> int:
    return read.rows if isinstance(read, SnapshotRead) else read.held


def _read_of(attempt: Attempt, place: int, name: str) -> SnapshotRead | FullRead | None:
    """What is read of the table of a place: a chunk of its files, or all of it."""
    for read in attempt.read.values():
        if isinstance(read, SnapshotRead | FullRead) and read.source == name:
            return read if isinstance(read, FullRead) or place in chunk_places(attempt.plan) else None
    return None


def _ranges(
    attempt: Attempt, upstream: DeltaUpstream, read: SnapshotRead | FullRead, column: Column, number: int
) -> KeyRanges | None:
    """By what the log says of the files, or, of a whole table, by a sample of the column alone."""
    version = read.version
    spans = spans_of_files(upstream.version(version), upstream.chosen(read), column)
    by_log = by_files(spans, ranges=number) if spans is not None else None
    if by_log is not None or isinstance(read, SnapshotRead):
        return by_log
    keys = sampled(attempt.spark, upstream, version, (column,), read.held)
    known = [key for key in keys if key[0] is not None]
    return thinned(by_sample(known, read.held, ranges=number)) if known else None
