"""Which files of a version have to be searched for values of a column in this process, by the bounds in the log, and whether
that costs less than to let Spark read them."""

import json
import re
from collections.abc import Iterable
from datetime import date

import pyarrow as pa
from deltalake import DeltaTable, Schema

from backfill_assets.adapters.delta.arrow_types import widest
from backfill_assets.adapters.delta.found_rows import Sought, UnfitError
from backfill_assets.adapters.delta.key_statistics import files_with
from backfill_assets.adapters.delta.log_replay import DataFile, Version, is_elsewhere
from backfill_assets.adapters.delta.plain_tables import holds_rows_as_they_are
from backfill_assets.adapters.delta.touched_files import LoggedFile, touched_files
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.query.ddl import Column

__all__ = ["all_files_of", "column_named", "files_of_upstream", "files_of_view", "logged", "schema_of"]

_FIXED = re.compile(r"\bchar\(", re.IGNORECASE)
_MOST_LOCAL, _MOST_REMOTE, _MOST_OBJECTS = 4 * 2**30, 512 * 2**20, 128
"""The bytes of the files that are searched on a local disk, and in an object store, where there are not more than so many."""


def schema_of(schema: str, columns: Iterable[Column]) -> pa.Schema:
    """Those of these columns that a table with this schema (JSON) has, as Arrow holds them. Errors: `UnfitError` for texts of
    a fixed length, to which Spark adds blanks when it reads them."""
    wanted = {each.name.lower() for each in columns}
    for field in json.loads(schema)["fields"]:
        if field["name"].lower() in wanted and _FIXED.search(json.dumps(field)):
            raise UnfitError(f"column {field['name']} has texts of a fixed length")
    every = widest(pa.schema(Schema.from_json(schema).to_arrow()))
    return pa.schema([each for each in every if each.name.lower() in wanted])


def column_named(schema: pa.Schema, name: str) -> str:
    """A column as a schema spells its name. Errors: `UnfitError` if it does not have just one of this name."""
    found = [each for each in schema.names if each.lower() == name.lower()]
    if len(found) != 1:
        raise UnfitError(f"there is no column {name}")
    return str(found[0])


def files_of_upstream(upstream: DeltaUpstream, number: int, column: Column, sought: Sought) -> list[LoggedFile]:
    """The files of a version of an upstream that may have a value. Errors: `UnfitError` where others than Spark do not read
    them as they are, or they are too large."""
    version = _plain(upstream, number)
    return _few(logged(files_with(version, column, sought.spans)), is_local=upstream.location.is_local)


def all_files_of(upstream: DeltaUpstream, number: int) -> list[LoggedFile]:
    """All files of a version of an upstream. Errors: as above."""
    return _few(logged(_plain(upstream, number).files), is_local=upstream.location.is_local)


def _plain(upstream: DeltaUpstream, number: int) -> Version:
    version = upstream.version(number)
    if not version.is_plain:
        raise UnfitError(f"table {upstream.name} has partitions, mapped names or other features")
    return version


def files_of_view(table: DeltaTable, column: str, sought: Sought) -> list[LoggedFile]:
    """The same of a loaded version of a view."""
    if not holds_rows_as_they_are(table):
        raise UnfitError("the view's table has partitions, mapped names, hidden rows or other features")
    spans = sought.spans
    if spans is not None and sought.kind == "DATE":
        spans = [(date.fromisoformat(low), date.fromisoformat(high)) for low, high in spans]
    touched = touched_files(table, {} if spans is None else {column: spans})
    return _few(touched, is_local=table.table_uri.startswith(("file:", "/")))


def logged(files: Iterable[DataFile]) -> list[LoggedFile]:
    """Files of a log's entries. Errors: `UnfitError` if rows of one are hidden, or it is not in the table's folder."""
    found = []
    for each in files:
        if each.deleted or is_elsewhere(each.path):
            raise UnfitError(f"rows of the file {each.path} are hidden, or it lies elsewhere")
        found.append(LoggedFile(path=each.path, size=each.size, rows=each.stated_rows))
    return found


def _few(files: list[LoggedFile], *, is_local: bool) -> list[LoggedFile]:
    size = sum(each.size for each in files)
    if size > (_MOST_LOCAL if is_local else _MOST_REMOTE) or not (is_local or len(files) <= _MOST_OBJECTS):
        raise UnfitError(f"{len(files)} files of {size} bytes")
    return files
