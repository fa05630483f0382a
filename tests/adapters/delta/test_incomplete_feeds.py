"""A change data feed that lacks changes, as delta-rs writes it for an UPDATE, is not read: files that it wrote anew are."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.compute.selectable_rows import Finder
from backfill_assets.adapters.compute.table_rows import _held
from backfill_assets.adapters.delta.footers import fed_rows
from backfill_assets.adapters.delta.found_rows import FoundRows
from backfill_assets.adapters.delta.logged_changes import changed, changed_rows
from backfill_assets.adapters.delta.upstream import FEED, DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.progress.reads import ChangesRead
from backfill_assets.query.ddl import Column
from tests.support.settings import seeds
from tests.support.statements import updated

ROWS = pa.schema({"id": pa.int64(), "x": pa.int64()})


def made(folder: Path, *rows: tuple[int, int | None], **given: Any) -> DeltaTable:
    """A table with a change data feed; rows may be alike."""
    ids, numbers = zip(*rows, strict=True)
    table = pa.table([pa.array(ids, pa.int64()), pa.array(numbers, pa.int64())], schema=ROWS)
    write_deltalake(str(folder), table, mode="append", configuration={FEED: "true"}, **given)
    return DeltaTable(str(folder))


def held(table: DeltaTable) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(each.values()) for each in table.to_pyarrow_table().to_pylist())


def test_a_row_that_becomes_equal_to_another_one_is_not_in_the_feed(tmp_path: Path) -> None:
    """Once it is, feeds of new releases of delta-rs can be read."""
    table = made(tmp_path, (1, 5), (1, 6), (2, 7))
    table.update(updates={"x": "6"}, predicate="id = 1")
    changes = pa.table(table.load_cdf(starting_version=1, ending_version=1)).to_pylist()
    told = Counter((each["_change_type"], each["id"], each["x"]) for each in changes)
    assert held(table) == {(1, 6): 2, (2, 7): 1}
    assert told["update_preimage", 1, 5] == 1
    assert told["update_postimage", 1, 6] == 0


def test_files_are_read_instead_of_it(tmp_path: Path) -> None:
    table = made(tmp_path, (1, 5), (1, 6), (2, 7))
    (before,) = table.file_uris()
    table.update(updates={"x": "6"}, predicate="id = 1")
    upstream = DeltaUpstream(name="base", location=TableLocation(uri=str(tmp_path)))
    read = ChangesRead(source="base", table_id="t", first=1, last=1, rows=1)
    (version,), files = upstream.changes(read), upstream.change_files(read)
    assert files is not None
    replaced = [each.path for each in (*files.added, *files.removed)]
    assert replaced == [Path(each).name for each in (*table.file_uris(), before)]
    assert (version.incomplete, version.is_plain, version.needed) == (True, True, tuple(replaced))
    assert not files.feed
    assert _held(upstream, files) == fed_rows(upstream.location, [version]) == 6


CDC = {"cdc": {"path": "_change_data/a.parquet", "size": 500}}
ADD = {"add": {"path": "a.parquet", "size": 5000, "dataChange": True}}
BY_DELTA_RS = {"engineInfo": "delta-rs:py-1.6.6", "operation": "UPDATE"}


@pytest.mark.parametrize(
    ("info", "actions", "incomplete"),
    [
        (BY_DELTA_RS, [CDC, ADD], True),
        (BY_DELTA_RS, [ADD], True),
        (BY_DELTA_RS | {"operation": "MERGE"}, [CDC, ADD], False),
        (BY_DELTA_RS | {"operation": "DELETE"}, [CDC, ADD], False),
        (BY_DELTA_RS | {"engineInfo": "Apache-Spark/4.1.0 Delta-Lake/4.1.0"}, [CDC, ADD], False),
        ({"operation": "UPDATE"}, [CDC, ADD], False),
        (None, [CDC, ADD], False),
    ],
    ids=["update", "no feed", "merge", "delete", "spark", "unknown", "no info"],
)
def test_feeds_of_others_are_read(info: dict[str, str] | None, actions: list[dict[str, Any]], incomplete: bool) -> None:
    actions = [*actions, *([] if info is None else [{"commitInfo": info}])]
    assert changed(actions).incomplete is incomplete
    assert bool(changed(actions).feed) is (not incomplete)
    assert changed_rows(actions) == (100 if incomplete else 10)


@pytest.mark.parametrize("seed", seeds(12, 400))
def test_what_this_process_finds_in_these_files_is_what_changed(tmp_path: Path, seed: int) -> None:
    """Rows of few values, so that many are alike, in several files."""
    random = Random(seed)
    for rows in (8, 4):
        made(tmp_path, *((random.randrange(3), random.choice((None, 0, 1, 2))) for _ in range(rows)))
    for _ in range(4):
        table = DeltaTable(str(tmp_path))
        before, version = held(table), table.version()
        for _ in range(random.randint(1, 3)):
            change, which = {"x": random.choice(("x + 1", "1", "2 - x", "NULL"))}, f"id = {random.randrange(3)}"
            if random.random() < 0.7:
                table.update(updates=change, predicate=which)
            else:
                updated(table, change, which)
        if table.version() > version:
            after = held(table)
            assert found(tmp_path, version + 1, table.version()) == (after - before, before - after)


def found(folder: Path, first: int, last: int) -> tuple[Counter[tuple[Any, ...]], ...]:
    """The rows that came and went between two versions."""
    location, spark = TableLocation(uri=str(folder)), cast(Any, None)  # nothing is computed
    columns = [Column("id", "BIGINT"), Column("x", "BIGINT")]
    upstream = DeltaUpstream(name="base", location=location)
    finder = Finder(spark=spark, upstream=upstream, columns=columns, uses=None, files=FoundRows(location))
    changes = finder.changes([ChangesRead(source="base", table_id="t", first=first, last=last, rows=1)])
    assert changes is not None
    return tuple(Counter(tuple(each.values()) for each in rows.to_pylist()) for rows in (changes.come, changes.go))
