"""Rows that Spark misses are noticed whichever of several reads of one place misses them, and where it fails for their
lack."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.compute import selectable_rows
from backfill_assets.app.table_checks import run_check
from backfill_assets.errors import BackfillError, ComputeError, ReadMismatchError
from tests.support.careless import IGNORE, careless, damaged
from tests.support.conserved import FILES, ROWS, made, newest, refused, some
from tests.support.lake import Lake
from tests.support.settings import one_in_gate

pytestmark = pytest.mark.e2e

AGAIN = {
    "left_out": "SELECT z.id, b.amount FROM base z LEFT JOIN base b ON z.id + 36 = b.amount AND b.amount > 35",
    "with": "WITH w AS (SELECT id, amount FROM base) SELECT x.id, x.amount FROM w x JOIN w y ON x.id = y.id + 1",
    "exists_with": "WITH w AS (SELECT id FROM other) SELECT b.id, b.amount FROM base b WHERE EXISTS "
    "(SELECT 1 FROM w WHERE w.id = b.id % 3)",
    "scalar": "SELECT b.id, b.amount, (SELECT max(o.name) FROM other o WHERE o.id > b.id) AS m FROM base b",
    "lateral": "SELECT b.id, b.amount, l.m FROM base b, LATERAL (SELECT max(o.name) AS m FROM other o WHERE o.id > b.id) l",
}


@pytest.mark.parametrize("shape", one_in_gate(*AGAIN))
def test_a_column_that_only_one_of_several_reads_takes_is_missed(tmp_path: Path, shape: str) -> None:
    lake = made(tmp_path)
    lake.view("again", AGAIN[shape], *(lake.table(each) for each in ("base", "other") if f" {each}" in AGAIN[shape]))
    for column in ("amount", "id"):
        with damaged(newest(lake.path("base")), column):
            said = refused(lake.project, "again")
        assert "epoch 1: Spark read 30 rows of version 3 of 'base', expected 40" in said
    lake.project.refresh("again")
    assert lake.project.check("again").passed


@pytest.mark.parametrize(
    "query",
    one_in_gate(
        "SELECT id, amount FROM base ORDER BY amount",
        "SELECT b.id, o.id AS other FROM base b JOIN other o ON b.id > o.id",
    ),
    ids=["sorted", "product"],
)
def test_half_of_the_rows_read_twice_are_not_all_rows(tmp_path: Path, query: str) -> None:
    lake = Lake(tmp_path)
    for number in range(2):
        lake.append("base", some(number * ROWS))
        lake.append("other", [{"id": number, "name": ""}])
    lake.view("again", query, *(lake.table(each) for each in ("base", "other") if f" {each}" in query))
    small = careless(lake.project.workspace(), {"spark.sql.autoBroadcastJoinThreshold": "-1"})
    with damaged(newest(lake.path("base"))):
        said = refused(lake.project, "again", workspace=small)
    assert "epoch 1: Spark read 10 rows of version 1 of 'base', expected 20" in said
    lake.project.refresh("again")
    assert lake.project.check("again").passed


@pytest.mark.full
def test_hashes_of_a_view_that_only_some_reads_take_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectable_rows, "MOST_LOCAL", 0)
    lake = Lake(tmp_path)
    lake.append("base", ({"id": at, "grp": at % 3, "amount": at} for at in range(12)))
    lake.append("other", ({"id": at, "name": "x"} for at in range(3)))
    query = "SELECT b.grp, b.amount % 2 AS p FROM base b WHERE EXISTS (SELECT 1 FROM other o WHERE o.id = b.grp)"
    lake.view("copies", query, lake.table("base"), lake.table("other"), refresh_mode="incremental")
    lake.project.refresh("copies")
    lake.append("base", [{"id": 100, "grp": 1, "amount": 1}])
    lake.sql("other", "UPDATE {t} SET name = 'y' WHERE id = 1")
    small = careless(lake.project.workspace(), {"spark.sql.autoBroadcastJoinThreshold": "-1"})
    with damaged(newest(lake.location("copies")), "__row_hash"):
        said = refused(lake.project, "copies", workspace=small)
    assert "of 'views/copies', expected 12" in said
    lake.project.refresh("copies")
    assert lake.project.check("copies").passed


FEEDS = {
    "partitions": "PARTITIONED BY (part) TBLPROPERTIES (delta.enableChangeDataFeed = true)",
    "mapped": "TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.columnMapping.mode = 'name')",
    "vectors": "TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true)",
}


def fed(folder: Path, kind: str) -> Lake:
    """A table whose changes only Delta's own reader finds, and a view that has read it."""
    lake = Lake(folder)
    lake.sql("base", f"CREATE TABLE {{t}} (id BIGINT, amount BIGINT, part STRING) USING delta {FEEDS[kind]}")
    lake.sql("base", "INSERT INTO {t} SELECT id, id, 'a' FROM range(20)")
    lake.view("rows", "SELECT id, amount FROM base", lake.table("base"))
    lake.project.refresh("rows")
    return lake


@pytest.mark.parametrize("kind", one_in_gate(*FEEDS))
def test_changes_that_deltas_own_reader_finds_are_counted(tmp_path: Path, kind: str) -> None:
    lake = fed(tmp_path, kind)
    lake.sql("base", "INSERT INTO {t} SELECT id, id, 'b' FROM range(20, 30)")
    with damaged(newest(lake.path("base"))):
        said = refused(lake.project, "rows")
    assert "of the changes of versions 2 to 2 of 'base', expected 10" in said
    lake.project.refresh("rows")
    assert lake.project.check("rows").passed


@pytest.mark.full
@pytest.mark.parametrize("kind", FEEDS)
def test_changes_that_deltas_own_reader_finds_are_as_many_as_the_log_says(tmp_path: Path, kind: str) -> None:
    lake = fed(tmp_path, kind)
    lake.sql("base", "INSERT INTO {t} SELECT id, id, 'b' FROM range(20, 30)")
    lake.project.refresh("rows")
    for change in (
        "DELETE FROM {t} WHERE id = 3",
        "UPDATE {t} SET amount = 0 WHERE id > 25",
        "DELETE FROM {t} WHERE part = 'b'",
    ):
        lake.sql("base", change)
        lake.project.refresh("rows")
        assert lake.project.check("rows").passed
    lake.sql("base", "RESTORE TABLE {t} TO VERSION AS OF 2")
    lake.project.refresh("rows")
    assert lake.found("rows", ["id"]).total() == 30
    assert lake.project.check("rows").passed


def test_where_one_row_is_looked_for_not_all_are_read(tmp_path: Path) -> None:
    lake = made(tmp_path)
    query = "SELECT o.id FROM other o WHERE EXISTS (SELECT 1 FROM base b WHERE b.amount > 35)"
    lake.view("one", query, lake.table("base"), lake.table("other"))
    with damaged(newest(lake.path("base")), "amount"):
        said = refused(lake.project, "one")
    assert "epoch 1: Spark read 30 rows of version 3 of 'base', expected 40" in said
    lake.append("base", some(100))
    lake.project.refresh("one")
    assert lake.project.check("one").passed


def test_a_column_of_groups_that_only_some_reads_take_is_missed(tmp_path: Path) -> None:
    lake = made(tmp_path)
    query = "SELECT id % 3 AS part, sum(amount) AS total, max(amount) AS most FROM base GROUP BY id % 3"
    lake.view("sums", query, lake.table("base"))
    lake.project.refresh("sums")
    lake.append("base", [{"id": at, "amount": -1} for at in range(100, 100 + ROWS)])
    DeltaTable(lake.path("base")).delete("id = 39")  # the most of its group, which alone is computed again
    with damaged(newest(lake.location("sums")), "__sum_0"):
        said = refused(lake.project, "sums")
    assert "epoch 2: Spark read 0 rows of version 3 of 'views/sums', expected 3" in said


@pytest.mark.parametrize("column", one_in_gate("__max_0", "__count", "part"))
def test_groups_of_which_rows_go_are_not_said_to_be_wrong_where_they_were_not_read(tmp_path: Path, column: str) -> None:
    lake = made(tmp_path)
    lake.project.refresh("groups")
    DeltaTable(lake.path("base")).delete("id = 39")
    with damaged(newest(lake.location("groups")), column):
        said = refused(lake.project, "groups")
    assert "epoch 2: Spark read 0 rows of version 3 of 'views/groups', expected 3" in said
    lake.project.refresh("groups")
    assert lake.project.check("groups").passed


def test_a_check_names_rows_that_are_missing_and_files_that_cannot_be_read(tmp_path: Path) -> None:
    lake = made(tmp_path)
    lake.view("again", AGAIN["scalar"], lake.table("base"), lake.table("other"))
    lake.project.refresh("again")
    with damaged(newest(lake.location("again"))):
        found = run_check(careless(lake.project.workspace(), IGNORE), "again", "exactly_once", full=True, seed=None)
        with pytest.raises(ComputeError, match=r"could not make the check exactly_once: .*FAILED_READ_FILE"):
            lake.project.check("again")
    with (
        truncated(newest(lake.location("again"))),
        pytest.raises(ComputeError, match="without Spark could not make the check rows_conserved: ArrowInvalid"),
    ):
        lake.project.check("again", "rows_conserved")
    assert (found.facts["missing"], found.facts["unexpected"]) == (FILES * ROWS, 0)
    assert found.violations[0]["violation"] == "missing"


@contextmanager
def truncated(file: Path) -> Iterator[None]:
    """A file of which only the first half is left."""
    sound = file.read_bytes()
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    file.write_bytes(sound[: len(sound) // 2])
    try:
        yield
    finally:
        file.write_bytes(sound)


def failed(lake: Lake, view: str, expected: type[BackfillError]) -> str:
    with pytest.raises(expected) as found:
        lake.project.refresh(view)
    return str(found.value)


def test_a_file_of_a_view_that_ends_early_is_named(tmp_path: Path) -> None:
    lake = made(tmp_path)
    lake.project.refresh("groups")
    lake.append("base", some(100))
    own_file = newest(lake.location("groups"))
    with truncated(own_file):
        said = failed(lake, "groups", ComputeError)
    assert "[FAILED_READ_FILE" in said
    assert own_file.name in said
    assert "`backfill reset groups` builds the view anew" in said
    lake.project.refresh("groups")
    assert lake.project.check("groups").passed


@pytest.mark.full
def test_a_file_of_a_view_that_cannot_be_merged_is_no_fault_of_other_writers(tmp_path: Path) -> None:
    lake = made(tmp_path)
    lake.project.refresh("rows")
    DeltaTable(lake.path("base")).update(updates={"amount": "amount + 100"}, predicate="id = 8")
    own_file = newest(lake.location("rows"))
    with damaged(own_file):
        said = failed(lake, "rows", ReadMismatchError)
    assert own_file.name in said
    assert "nothing was committed; restore the file" in said
    lake.project.refresh("rows")
    assert lake.project.check("rows").passed
