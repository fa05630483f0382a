"""Staged changes that were merged into other files: no version has them, so maintenance deletes them."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.delta.staging import sweep_merged
from backfill_assets.core.epoch.staged_folders import StagedFolder, changes_in
from tests.adapters.delta.test_merged_rows import LIFE, ROWS, content, fed, merged, output_with, table_of

COMING = f"{LIFE}-9-aaaaaaaa/rows/__op=insert/part.parquet"


def test_changes_of_past_epochs_go_and_what_the_log_names_stays(tmp_path: Path) -> None:
    output = output_with(tmp_path, "text", [ROWS])
    there = Path(output.location.uri)
    merged(output, 2, "text", [("insert", ("x", 1, 1))])  # the log names the staged file itself
    merged(output, 3, "text", [("update", ("a", 1, 9)), ("delete", ("b", 1, None)), ("insert", ("e", 1, 8))])
    merged(output, 4, "text", [("delete", ("x", 1, None)), ("update", ("e", 1, 7))])  # and that it is there no more
    merged(output, 5, "text", [("update", ("c", 1, 5))])
    (there / COMING).parent.mkdir(parents=True)
    pq.write_table(table_of([("f", 1, 1)], "text"), there / COMING)
    before, feed = content(output), fed(output)
    found = {str(each.relative_to(there)) for each in there.rglob("*.parquet")}
    gone = {
        f"{LIFE}-{epoch}-aaaaaaaa/rows/__op={operation}/part.parquet"
        for epoch, operation in [
            (3, "update"),
            (3, "delete"),
            (3, "insert"),
            (4, "delete"),
            (4, "update"),
            (5, "update"),
        ]
    }
    assert gone < found
    assert set(sweep_merged(output.location, output.look)) == gone
    assert {str(each.relative_to(there)) for each in there.rglob("*.parquet")} == found - gone
    assert (content(output), fed(output)) == (before, feed)
    assert output.location.at(output.look().version - 1) is not None
    assert sweep_merged(output.location, output.look) == []


def test_files_of_the_newest_version_stay_though_the_log_forgot_when_they_came(tmp_path: Path) -> None:
    output = output_with(tmp_path, "text", [ROWS])
    merged(output, 2, "text", [("insert", ("x", 1, 1))])
    merged(output, 3, "text", [("update", ("a", 1, 9))])
    table = DeltaTable(output.location.uri)
    table.create_checkpoint()
    for version in range(table.version()):
        Path(output.location.uri, "_delta_log", f"{version:020d}.json").unlink()
    before = content(output)
    assert sweep_merged(output.location, output.look) == [f"{LIFE}-3-aaaaaaaa/rows/__op=update/part.parquet"]
    assert content(output) == before


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"{LIFE}-3-aaaaaaaa/rows/__op=insert/a.parquet", True),
        (f"{LIFE}-3-aaaaaaaa/__op=delete/b/a.parquet", True),
        (f"{LIFE}-4-aaaaaaaa/rows/__op=insert/a.parquet", False),
        (f"{LIFE}-3-aaaaaaaa/rows/a__op=insert/a.parquet", False),
        (f"{LIFE}-3-aaaaaaaa/merged/a.parquet", False),
        (f"_spool/{LIFE}-3-aaaaaaaa/__op=insert/a.parquet", False),
        ("__op=insert/a.parquet", False),
        ("_delta_log/00000000000000000003.json", False),
    ],
)
def test_changes_are_in_the_folder_of_an_operation_of_a_past_epoch(path: str, expected: bool) -> None:
    def is_over(folder: StagedFolder) -> bool:
        return folder.epoch < 4

    assert list(changes_in([path], is_over)) == [path] * expected
