"""Whether the key of a version's rows is unique, told in this process where that costs less than a job of Spark."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from backfill_assets.adapters.delta.files_to_search import all_files_of, column_named, schema_of
from backfill_assets.adapters.delta.found_rows import FoundRows, UnfitError, kind_of_arrow, one_form
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.errors import ReadMismatchError
from backfill_assets.query.ddl import Column, columns_of_delta
from backfill_assets.query.kinds import kind_of_type

__all__ = ["MOST_NUMBERS", "MOST_ROWS", "are_surely_distinct", "is_surely_unique"]

MOST_NUMBERS, MOST_ROWS = 10_000_000, 200_000
"""The keys of more rows are compared by Spark: keys of one whole number are sorted here; others are hashed, which takes ten
times as long, and more memory."""


def is_surely_unique(upstream: DeltaUpstream, number: int, key: Sequence[str]) -> bool:
    """Whether no two rows of a version have the same key, null being equal to null.

    False also where that cannot be told here: rows or their types are not plain, texts differ in blanks at their end alone,
    there are many, or a file is missing, damaged or not reached. Spark then says what is wrong.
    """
    try:
        return _is_unique(upstream, number, key)
    except (UnfitError, ReadMismatchError, pa.ArrowException, OSError):
        return False


def are_surely_distinct(keys: pa.Table) -> bool:
    """Whether no two of these rows are equal, null being equal to null; False also where that cannot be told here."""
    try:
        kinds = {each.name: kind_of_arrow(each.type) for each in keys.schema}
        return _distinct(keys, kinds) == len(keys)
    except (UnfitError, pa.ArrowException):
        return False


def _is_unique(upstream: DeltaUpstream, number: int, key: Sequence[str]) -> bool:
    schema = str(upstream.version(number).metadata["schemaString"])
    types = {each.name.lower(): each.type for each in columns_of_delta(schema)}
    kinds = {name: kind_of_type(types.get(name.lower(), "")) for name in key}
    if not all(kinds.values()):
        raise UnfitError("values that are equal may have several forms")
    wanted = schema_of(schema, [Column(name, types[name.lower()]) for name in key])
    files = all_files_of(upstream, number)
    is_number = [*kinds.values()] == ["INTEGER"]
    rows = FoundRows(upstream.location, most_rows=MOST_NUMBERS if is_number else MOST_ROWS).columns(files, wanted)
    if is_number:
        return _are_distinct(rows.column(0))
    return _distinct(rows, {column_named(wanted, name): kind for name, kind in kinds.items()}) == len(rows)


def _are_distinct(numbers: pa.ChunkedArray) -> bool:
    values = np.sort(numbers.drop_null().to_numpy())
    return numbers.null_count <= 1 and not bool((values[1:] == values[:-1]).any())


def _distinct(rows: pa.Table, kinds: Mapping[str, str]) -> int:
    """How many different keys rows have."""
    forms = [
        pa.chunked_array([one_form(part, kind) for part in rows.column(name).chunks]) for name, kind in kinds.items()
    ]
    names = [f"key_{at}" for at in range(len(forms))]
    return len(pa.table(forms, names=names).group_by(names).aggregate([])) if len(rows) else 0
