"""Tables whose commits another release wrote, on real Delta logs: refused, reset, dropped."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.delta import commits
from backfill_assets.adapters.delta.commits import Actions, newest_record, read_commit
from backfill_assets.adapters.delta.output import NO_MORE_EPOCHS, DeltaOutput
from backfill_assets.adapters.delta.staged_files import collect
from backfill_assets.adapters.delta.staging import sweep
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.records import CommitKind, Staged, app_id
from backfill_assets.errors import StoredFormatError
from tests.support.old_form import commits_as_stored_by
from tests.support.outputs import SCHEMA, TARGET, commit, output_at, record, reopened, rows, stage

OLD, NEW = "11111111", "22222222"


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    made = output_at(tmp_path)
    commit(made, record(CommitKind.CREATE, OLD, 0))
    commit(made, record(CommitKind.EPOCH, OLD, 1), stage(made, OLD, 1, [1, 2]))
    return made


def begin(output: DeltaOutput, incarnation: str) -> None:
    assert output.look_for_reset().record is None
    output.commit(
        record(CommitKind.CREATE, incarnation, 0),
        stage(output, incarnation, 0, []).model_copy(update={"replaces": True}),
    )


@pytest.mark.parametrize("number", [1, 2, 4, None])
def test_commits_of_another_format_are_refused_by_version_and_format(output: DeltaOutput, number: int | None) -> None:
    version = output.look().version
    commits_as_stored_by(Path(output.location.uri), number)
    found = "no known format" if number is None else f"format {number}"
    with pytest.raises(
        StoredFormatError, match=f"version {version} of the table is a commit of {found}, expected"
    ) as caught:
        reopened(output).look()
    assert "`backfill reset orders`" in caught.value.hint
    with pytest.raises(StoredFormatError):
        newest_record(output.location, version, TARGET)
    assert reopened(output).records(9) == reopened(output).life(since=0) == []


def test_a_new_life_begins_on_such_a_table_and_uses_up_the_numbers_of_the_old_one(output: DeltaOutput) -> None:
    commits_as_stored_by(Path(output.location.uri), 1)
    begun = reopened(output)
    begin(begun, NEW)
    assert (rows(begun), begun.look().life) == ([], (NEW, True))
    assert DeltaTable(output.location.uri).transaction_version(app_id(TARGET, OLD)) == NO_MORE_EPOCHS
    commit(begun, record(CommitKind.EPOCH, NEW, 1), stage(begun, NEW, 1, [7]))
    begun.look()
    assert [each.epoch for each in begun.life(since=0)] == [0, 1]
    assert [each.incarnation for each in begun.records(9)] == [NEW, NEW], "as far back as they can be read"


def test_what_such_commits_took_into_the_table_is_never_swept(output: DeltaOutput) -> None:
    stage(output, OLD, 1, [3], attempt="bbbbbbbb")
    commits_as_stored_by(Path(output.location.uri), 1)
    begun = reopened(output)
    begin(begun, NEW)
    assert sweep(begun.location, begun.look) == [f"{OLD}-1-bbbbbbbb"]
    assert (Path(output.location.uri) / f"{OLD}-1-aaaaaaaa").exists(), "time travel may need what was committed"


def test_the_change_feed_of_such_a_commit_is_never_swept(output: DeltaOutput) -> None:
    folder = f"{OLD}-2-aaaaaaaa"
    place = Path(output.location.child(f"{folder}/rows/__op=delete"))
    place.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}, schema=SCHEMA), place / "part.parquet")
    staged = Staged(files=collect(output.location, folder), rows_deleted=2, key=("id",))
    commit(output, record(CommitKind.EPOCH, OLD, 2).model_copy(update={"engine": "arrow"}), staged)
    version = output.look().version
    commits_as_stored_by(Path(output.location.uri), 1)
    begun = reopened(output)
    begin(begun, NEW)
    assert sweep(begun.location, begun.look) == [], "though the merge added no file to the table"
    feed = DeltaTable(output.location.uri).load_cdf(starting_version=version, ending_version=version)
    assert sorted(pa.table(feed)["id"].to_pylist()) == [1, 2]


def test_no_more_of_a_log_is_read_than_is_needed_to_identify_folders(
    output: DeltaOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    for epoch in range(2, 12):
        commit(output, record(CommitKind.EPOCH, OLD, epoch), stage(output, OLD, epoch, [epoch]))
    read: list[int] = []

    def noted(location: TableLocation, version: int) -> Actions | None:
        read.append(version)
        return read_commit(location, version)

    look = output.look()
    monkeypatch.setattr(commits, "read_commit", noted)
    assert sweep(output.location, lambda: look) == []
    assert read == [look.version], "all files are in the table"
    stage(output, OLD, 9, [9], attempt="bbbbbbbb")
    assert sweep(output.location, lambda: look) == [f"{OLD}-9-bbbbbbbb"]
    assert read[-1] == 0
