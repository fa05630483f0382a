"""Rows that Spark does not read, without an error, stop an epoch before anything is committed; whatever reads them."""

import json
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from backfill_assets import kafka_source, materialized_view
from backfill_assets.app.skipping import Named, set_skips
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.errors import VersionsLostError
from tests.support.careless import damaged, short_listing
from tests.support.conserved import FILES, ROWS, VIEWS, made, newest, refused, some
from tests.support.lake import Lake
from tests.support.over_connect import over_connect
from tests.support.project import Project
from tests.support.settings import one_in_gate
from tests.support.statements import updated

pytestmark = pytest.mark.e2e

SOURCE_VIEWS = {
    "good": "SELECT id FROM clicks WHERE id > 3",
    "parts": "SELECT part, count(*) AS n FROM clicks GROUP BY part",
}
READ_AS = {"rows": "its files in version 3", "groups": "its files in version 3", "joined": "version 3"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return made(tmp_path)


@pytest.mark.parametrize("view", one_in_gate(*VIEWS))
def test_a_damaged_file_of_history_is_missed_and_read_once_it_is_restored(lake: Lake, view: str) -> None:
    with damaged(newest(lake.path("base"))):
        said = refused(lake.project, view)
    assert f"epoch 1: Spark read 30 rows of {READ_AS[view]} of 'base', expected 40" in said
    lake.project.refresh(view)
    assert lake.project.check(view).passed


def test_a_damaged_file_that_may_have_keys_of_a_range_is_missed(lake: Lake) -> None:
    lake.view("ranges", VIEWS["rows"], lake.table("base"), strategy="arrangement")
    with damaged(newest(lake.path("base"))):
        said = refused(lake.project, "ranges")
    assert (
        "epoch 1: Spark read 30 rows of the files that may have its keys, in version 3, of 'base', expected 40" in said
    )
    lake.project.refresh("ranges")
    assert lake.project.check("ranges").passed


@pytest.mark.parametrize("view", one_in_gate("rows", "groups"))
def test_changes_in_a_damaged_file_are_missed_though_nothing_else_is_left_to_do(lake: Lake, view: str) -> None:
    lake.project.refresh(view)
    lake.append("base", some(100))
    with damaged(newest(lake.path("base"))):
        said = refused(lake.project, view)
    assert "epoch 2: Spark read 0 rows of the changes of versions 4 to 4 of 'base', expected 10" in said


@pytest.mark.full
def test_a_damaged_file_of_few_changes_is_named(lake: Lake) -> None:
    """This process reads it, and not Spark."""
    lake.project.refresh("joined")
    lake.append("base", some(100))
    file = newest(lake.path("base"))
    with damaged(file):
        assert f"its file {file.name} cannot be read" in refused(lake.project, "joined")
    lake.project.refresh("joined")
    assert lake.project.check("joined").passed


@pytest.mark.parametrize("view", one_in_gate("rows", "groups"))
def test_files_of_a_change_data_feed_are_missed_by_what_they_say_themselves(lake: Lake, view: str) -> None:
    lake.project.refresh(view)
    updated(DeltaTable(lake.path("base")), {"amount": "amount + 100"}, "id < 5")
    with damaged(newest(Path(lake.path("base"), "_change_data"))):
        said = refused(lake.project, view)
    assert "epoch 2: Spark read 0 rows of the changes of versions 4 to 4 of 'base', expected 10" in said


@pytest.mark.full
@pytest.mark.parametrize("view", ["rows", "groups"])
def test_a_file_of_the_feed_that_another_one_has_replaced_is_told_by_its_size(lake: Lake, view: str) -> None:
    lake.project.refresh(view)
    updated(DeltaTable(lake.path("base")), {"amount": "amount + 100"}, "id < 5")
    file = newest(Path(lake.path("base"), "_change_data"))
    sound = file.read_bytes()
    rows = pq.read_table(file)
    pq.write_table(rows.slice(0, len(rows) - 2), file)
    assert "written in its place" in refused(lake.project, view)
    file.write_bytes(sound)
    lake.project.refresh(view)
    assert lake.project.check(view).passed


@pytest.mark.full
@pytest.mark.parametrize("view", VIEWS)
def test_a_listing_that_lacks_a_file_is_missed(lake: Lake, view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        short_listing(patch)
        said = refused(lake.project, view)
    assert f"epoch 1: Spark read 30 rows of {READ_AS[view]} of 'base', expected 40" in said
    lake.project.refresh(view)
    assert lake.project.check(view).passed


@pytest.mark.full
@pytest.mark.parametrize("view", VIEWS)
def test_a_file_that_is_gone_is_named(lake: Lake, view: str) -> None:
    lake.project.refresh(view)
    lake.append("base", some(100))
    file = newest(lake.path("base"))
    away = file.rename(file.with_suffix(".away"))
    assert f"its file {file.name} is missing" in refused(lake.project, view, VersionsLostError)
    away.rename(file)
    lake.project.refresh(view)
    assert lake.project.check(view).passed


@pytest.mark.full
def test_rows_that_a_deletion_vector_hides_are_not_expected(lake: Lake) -> None:
    lake.sql(
        "base",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "DELETE FROM {t} WHERE id = 35",
    )
    version = DeltaTable(lake.path("base")).version()
    with damaged(newest(lake.path("base"))):
        said = refused(lake.project, "rows")
    assert f"Spark read 30 rows of its files in version {version} of 'base', expected 39" in said
    lake.project.refresh("rows")
    assert lake.project.check("rows").passed


@pytest.mark.full
def test_each_place_that_reads_a_table_is_counted(lake: Lake) -> None:
    query = "SELECT x.id, x.amount, y.id AS other FROM base x JOIN base y ON x.id = y.id + 1"
    lake.view("pairs", query, lake.table("base"))
    with damaged(newest(lake.path("base")), "amount"):
        said = refused(lake.project, "pairs")
    assert "epoch 1: Spark read 30 rows of version 3 of 'base', expected 40" in said
    lake.project.refresh("pairs")
    assert lake.project.check("pairs").passed


def test_each_part_that_reads_a_table_is_counted_by_the_columns_that_it_reads(lake: Lake) -> None:
    for columns in (("id", "amount"), ("amount", "id")):
        name = "_and_".join(columns)
        query = " UNION ALL ".join(f"SELECT {each} AS value FROM base" for each in columns)
        lake.view(name, query, lake.table("base", None))
        with damaged(newest(lake.path("base")), "amount"):
            said = refused(lake.project, name)
        assert f"epoch 1: Spark read 30 rows of {READ_AS['rows']} of 'base', expected 40" in said


@pytest.mark.parametrize(
    "query", one_in_gate("SELECT 1 AS one FROM base ORDER BY one LIMIT 1", VIEWS["rows"] + " ORDER BY id LIMIT 2")
)
def test_a_limit_may_end_a_scan_early(lake: Lake, query: str) -> None:
    lake.view("few", query, lake.table("base"))
    with damaged(newest(lake.path("base"))):
        assert "of version 3 of 'base', expected 40" in refused(lake.project, "few")
    lake.project.refresh("few")
    assert lake.project.check("few").passed


def test_groups_are_computed_again_of_all_keys_that_were_read(lake: Lake) -> None:
    query = "SELECT id % 3 AS part, min(amount) AS least FROM base GROUP BY id % 3"
    lake.view("parts", query, lake.table("base"), strategy="arrangement")
    chunk = Limits(chunk_rows=ROWS, max_rows=ROWS)
    lake.project.refresh("parts", chunk)
    DeltaTable(lake.path("base")).delete("id = 0")
    rewritten = max(Path(lake.path("base")).glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    with damaged(rewritten):
        said = refused(lake.project, "parts", limits=chunk)
    assert "rows of the files that may have its keys, in version 4, of 'base', expected " in said
    lake.project.refresh("parts")
    assert lake.project.check("parts").passed


@pytest.mark.full
def test_files_are_read_by_their_names_whatever_these_look_like(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    names = ("p1.parquet", "p[1].parquet", "p*.parquet", "_p.parquet")
    for number in range(len(names)):
        lake.append("base", some(number * ROWS))
    for number, name in enumerate(names):
        (entry,) = Path(lake.path("base"), "_delta_log").glob(f"*{number}.json")
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        (add,) = (each["add"] for each in actions if "add" in each)
        Path(lake.path("base"), add["path"]).rename(Path(lake.path("base"), name))
        add["path"] = quote(name)
        entry.write_text("".join(json.dumps(each) + "\n" for each in actions))
    for view, query in VIEWS.items():
        if view != "joined":
            lake.view(view, query, lake.table("base"))
            lake.project.refresh(view)
            assert lake.project.check(view).passed
    assert lake.found("rows", ["id"]) == {(at,): 1 for at in range(4, len(names) * ROWS)}


@pytest.mark.parametrize("vectors", one_in_gate("true", "false"))
def test_groups_that_are_computed_again_need_all_rows_of_the_table(lake: Lake, vectors: str) -> None:
    lake.sql("base", f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')")
    lake.project.refresh("groups")
    lake.sql("base", "DELETE FROM {t} WHERE id = 39")
    with damaged(min(Path(lake.path("base")).glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)):
        said = refused(lake.project, "groups")
    assert "Spark read 29 rows of version 5 of 'base', expected 39" in said


@pytest.mark.full
def test_all_rows_are_needed_to_find_those_that_are_left_out(lake: Lake) -> None:
    lake.project.refresh("rows")
    set_skips(lake.project.workspace(), "rows", Named(key=("id=39",)), undo=False, by="test")
    with damaged(newest(lake.path("base"))):
        said = refused(lake.project, "rows")
    assert "Spark read 30 rows of version 3 of 'base', expected 40" in said
    lake.project.refresh("rows")
    assert lake.project.check("rows").passed


@pytest.mark.full
@pytest.mark.parametrize("view", VIEWS)
def test_files_whose_rows_the_log_does_not_say_are_counted_by_their_footers(lake: Lake, view: str) -> None:
    for entry in Path(lake.path("base"), "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for action in actions:
            action.get("add", {}).pop("stats", None)
        entry.write_text("".join(json.dumps(each) + "\n" for each in actions))
    with damaged(newest(lake.path("base"))):
        said = refused(lake.project, view)
    assert f"epoch 1: Spark read 30 rows of {READ_AS[view]} of 'base', expected 40" in said


def test_captured_changes_are_missed_when_they_are_read_again(lake: Lake) -> None:
    lake.view("kept", VIEWS["rows"], lake.table("base"), strategy="rearranged")
    lake.project.refresh("kept", Limits(chunk_rows=ROWS, max_rows=ROWS))
    lake.append("base", some(100))
    for _ in range(FILES - 1):
        lake.project.refresh("kept", Limits(chunk_rows=ROWS, max_rows=ROWS))
    segment = newest(Path(lake.location("kept"), "_spool"))
    with damaged(segment):
        said = refused(lake.project, "kept")
    assert "Spark read 0 rows of the captured changes of versions 4 to 4 of 'base', expected 10" in said


@pytest.fixture
def clicks(project: Project) -> Project:
    """A source, and views over it that have read its table."""
    topic = project.topic(partitions=1)
    source = kafka_source("clicks", topic=topic, schema="id LONG, part LONG")
    project.declare(source)
    for name, query in SOURCE_VIEWS.items():
        project.declare(materialized_view(name, query=query, upstreams=[source]))
    for start in (0, 10):
        project.produce(topic, ({"id": at, "part": at % 3} for at in range(start, start + 10)))
        for name in project.declared if not start else ("clicks",):
            project.refresh(name)
    return project


@pytest.mark.parametrize("view", one_in_gate(*SOURCE_VIEWS))
def test_a_damaged_file_of_a_source_is_missed_by_its_views(clicks: Project, view: str) -> None:
    table = clicks.workspace().table(clicks.declared["clicks"]).output.location
    with damaged(newest(table.uri)):
        said = refused(clicks, view)
    assert "Spark read 0 rows of the files with its offsets, at version 4 or later, of 'clicks', expected 10" in said
    clicks.refresh(view)
    assert clicks.check(view).passed


def over_a_server(folder: str) -> list[str]:
    """What runs say whose Spark is a server, with a file that is damaged: of each kind of view, history and changes."""
    lake = made(Path(folder))
    found = []
    for view in VIEWS:
        with damaged(newest(lake.path("base"))):
            found.append(refused(lake.project, view))
        lake.project.refresh(view)
    lake.append("base", some(100))
    with damaged(newest(lake.path("base"))):
        found += [refused(lake.project, view) for view in VIEWS]
    return found


@pytest.mark.full
def test_a_server_tells_how_much_it_has_read(remote: str, tmp_path: Path) -> None:
    found = over_connect(remote, over_a_server, tmp_path)
    history = [f"Spark read 30 rows of {READ_AS[view]} of 'base', expected 40" for view in VIEWS]
    counted = "Spark read 0 rows of the changes of versions 4 to 4 of 'base', expected 10"
    changes = ["cannot be read" if view == "joined" else counted for view in VIEWS]
    assert [expected in said for expected, said in zip((*history, *changes), found, strict=True)] == [True] * 6
