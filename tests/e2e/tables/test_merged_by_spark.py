"""What Spark makes of keyed changes that do not fit in this process: files, and the feed of a table."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.compute.merge import merge_large
from backfill_assets.adapters.compute.staged_rows import write_by_spark
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.delta.staged_files import collect
from backfill_assets.core.epoch.records import CommitKind, Staged
from backfill_assets.errors import StagingError
from tests.support.lake import Lake
from tests.support.outputs import SCHEMA, commit, output_at, record, stage

pytestmark = pytest.mark.e2e

LIFE = "11111111"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    """A table with 0 to 9, 10 to 19 and 20 to 29 in three files."""
    made = output_at(tmp_path / "a[b]{c}*?")
    commit(made, record(CommitKind.CREATE, LIFE, 0))
    for epoch in range(1, 4):
        ids = list(range(10 * epoch - 10, 10 * epoch))
        commit(
            made,
            record(CommitKind.EPOCH, LIFE, epoch),
            stage(made, LIFE, epoch, ids),
        )
    return made


def staged(output: DeltaOutput, **ids: list[int]) -> Staged:
    folder = Path(output.location.uri, f"{LIFE}-4-aaaaaaaa", "rows")
    for operation, some in ids.items():
        inside = folder / f"__op={operation}"
        inside.mkdir(parents=True)
        pq.write_table(pa.table({"id": some}, schema=SCHEMA), inside / "part.parquet")
    sizes = {name: len(some) for name, some in ids.items()}
    return Staged(
        files=collect(output.location, folder.relative_to(output.location.uri).as_posix()),
        rows_written=sizes.get("insert", 0) + sizes.get("update", 0),
        rows_updated=sizes.get("update", 0),
        rows_deleted=sizes.get("delete", 0),
        key=("id",),
    )


def rows(output: DeltaOutput, files: Any) -> list[dict[str, Any]]:
    return [row for each in files for row in pq.read_table(output.location.child(each.path)).to_pylist()]


def merged(lake: Lake, output: DeltaOutput, changes: Staged) -> Any:
    return merge_large(lake.project.workspace().runner, output.location, DeltaTable(output.location.uri), changes)


def test_only_files_with_a_touched_key_are_written_anew_and_the_feed_says_what_became_of_rows(
    lake: Lake, output: DeltaOutput
) -> None:
    found = merged(lake, output, staged(output, update=[3, 25], delete=[21], insert=[40]))
    assert {each.partition("-")[2][:1] for each in found.removed} == {"1", "3"}
    kept = sorted(row["id"] for row in rows(output, found.files))
    assert kept == [*range(10), 20, *range(22, 30), 40]
    told = Counter((row["_change_type"], row["id"]) for row in rows(output, found.feed))
    both = [(kind, number) for kind in ("update_preimage", "update_postimage") for number in (3, 25)]
    assert told == Counter([*both, ("delete", 21), ("insert", 40)])


def test_where_no_row_has_a_touched_key_no_file_goes(lake: Lake, output: DeltaOutput) -> None:
    found = merged(lake, output, staged(output, delete=[77], insert=[40, 41]))
    assert found.removed == frozenset()
    assert sorted(row["id"] for row in rows(output, found.files)) == [40, 41]
    assert {row["_change_type"] for row in rows(output, found.feed)} == {"insert"}


def test_files_that_do_not_hold_what_spark_counted_are_refused(
    lake: Lake, output: DeltaOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_more(*given: Any, **named: Any) -> Any:
        files, counted = write_by_spark(*given, **named)
        return files, counted + 1

    monkeypatch.setattr("backfill_assets.adapters.compute.merge.write_by_spark", one_more)
    with pytest.raises(StagingError, match=r"Spark reported 11 rows in .*, but its files hold 10"):
        merged(lake, output, staged(output, update=[3]))
