"""Lives of views without Spark: what ends one, maintains it, waits for it or proves it, while others come between."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import pytest

from backfill_assets import materialized_view
from backfill_assets.adapters.state.state_store import CheckPass
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.app import lifecycle, proof_rows, refresh, table_checks
from backfill_assets.app.dependents import awaited_view
from backfill_assets.app.heartbeat import Heartbeat, Listener
from backfill_assets.app.lifecycle import drop, maintain, reset
from backfill_assets.app.proof_case import Outcome
from backfill_assets.app.skipping import Named, set_skips
from backfill_assets.app.table_checks import Checking
from backfill_assets.core.epoch.limits import Stop
from backfill_assets.core.epoch.records import CommitKind, TableState
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.proof_scope import Everything, Since
from backfill_assets.defs import assets
from backfill_assets.errors import ComputeError, DeclarationError, VersionsLostError
from tests.app.test_other_releases import begin, documents_of_another_release
from tests.app.test_wiring import CLICKS, workspace_of
from tests.support.lake import Lake
from tests.support.outputs import record


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A view at the beginning of its first life, and one over it that does not exist."""
    made = Lake(tmp_path)
    made.append("base", [{"id": each} for each in range(3)])
    old = made.view("old", "SELECT id FROM base", made.table("base"))
    begin(made, "old")
    made.view("child", "SELECT id FROM old", old)
    return made


def test_what_a_reset_cannot_read_is_named(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    state = lake.project.workspace().state
    state.put_lease("views/old", "a-run")
    documents_of_another_release(lake, "lease")
    reset(lake.project.workspace(), "old")
    assert "forgotten, as this release cannot read it: _state/tables/views/old/lease.json" in caplog.text
    assert lake.project.workspace().state.lease("views/old") is None


def test_a_drop_forgets_nothing_of_a_life_that_begins_meanwhile(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten = list[object]()
    workspace = lake.project.workspace()
    monkeypatch.setattr(lifecycle, "delete_data", lambda *_: False)
    monkeypatch.setattr(type(workspace.state), "forget", lambda *given: forgotten.append(given))
    drop(workspace, "old")
    assert forgotten == []
    monkeypatch.setattr(lifecycle, "delete_data", lambda *_: True)
    drop(lake.project.workspace(), "old")
    assert len(forgotten) == 1


def test_what_does_not_exist_needs_no_maintenance(lake: Lake) -> None:
    assert maintain(lake.project.workspace(), "child", vacuum_hours=0) == []
    assert not Path(lake.location("child")).exists()


def test_a_layout_that_gives_way_leaves_no_files(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    deleted, table = list[str](), lake.project.workspace().table(lake.declared("old"))
    workspace: Any = SimpleNamespace(bound=lambda _view: SimpleNamespace(key_columns=("id",)), runner=None)
    answers = {"clustering_columns": ("id",), "is_laid_out": False, "laid_out_again": (), "commit_layout": False}
    for name, answer in answers.items():
        monkeypatch.setattr(lifecycle, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(lifecycle, "delete_folder", lambda _location, folder: deleted.append(folder))
    lifecycle._lay_out(workspace, table, lake.declared("old"))
    assert [each.rpartition("-")[0] for each in deleted] == ["11111111-1"]
    drop(lake.project.workspace(), "old")
    gone = lake.project.workspace().table(lake.declared("old"))
    lifecycle._lay_out(workspace, gone, lake.declared("old"))
    assert len(deleted) == 1


def test_a_reader_that_cannot_be_read_holds_nobody_up(lake: Lake) -> None:
    workspace = lake.project.workspace()
    workspace.state.put_lease("views/child", "another-run")
    log = Path(lake.location("child"), "_delta_log")
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("{")
    assert awaited_view(lake.project.workspace(), "old", run_id="mine") == ""


class Output:
    """An output whose table has this life, and which takes note of its status."""

    def __init__(self, life: str) -> None:
        self.statuses, self.life = list[str](), life
        self.location = TableLocation(uri="/nowhere")

    def look(self) -> TableState:
        return TableState(version=1, record=record(CommitKind.CREATE, self.life, 0))

    def has_status(self, status: str) -> bool:
        return self.statuses[-1:] == [status]

    def set_status(self, status: str) -> bool:
        changed = not self.has_status(status)
        self.statuses.append(status)
        return changed

    def compact(self, _files: int) -> None:
        pass


@pytest.mark.parametrize(
    ("life", "stopped", "live", "made"),
    [
        ("11111111", Stop.CAUGHT_UP, True, True),
        ("22222222", Stop.CAUGHT_UP, True, False),
        ("11111111", Stop.FENCED, True, False),
        ("11111111", Stop.MAX_SECONDS, False, False),
    ],
    ids=["its own", "another life", "fenced", "not live"],
)
def test_only_the_life_that_a_run_has_made_live_is_called_live(
    life: str, stopped: Stop, live: bool, made: bool
) -> None:
    output: Any = Output(life)
    table: Any = SimpleNamespace(output=output)
    done: Any = SimpleNamespace(
        stopped=stopped, record=record(CommitKind.EPOCH, "11111111", 3).model_copy(update={"live": live})
    )
    assert refresh._made_live(table, done) is made
    assert output.statuses == (["live"] if made else [])


def test_a_run_for_ever_reports_once_that_its_table_is_live() -> None:
    output: Any = Output("11111111")
    ledger = SimpleNamespace(left_behind=False)
    table: Any = SimpleNamespace(output=output, parts=SimpleNamespace(ledger=ledger), target="views/old")
    told = list[int]()
    listener = Listener(on_live=lambda each: told.append(each.epoch))
    workspace: Any = None
    beats = [
        Heartbeat(workspace, table, "run", listener, endless=endless, yields_to_views=False)
        for endless in (True, False)
    ]
    for epoch, live in ((1, False), (2, True), (3, True)):
        made = record(CommitKind.EPOCH, "11111111", epoch).model_copy(update={"live": live})
        for beat in beats:
            beat.after_epoch(made)
    assert (told, output.statuses) == ([2], ["live"])


def test_the_checks_of_a_table_are_made_anew_where_the_last_pass_is_of_another_release(lake: Lake) -> None:
    workspace = lake.project.workspace()
    passed = CheckPass(incarnation="11111111", epoch=0, version=1)
    workspace.state.set_passed("views/old", "exactly_once", passed)
    table = workspace.table(lake.declared("old"))
    found = table_checks._since(workspace, table, table.output.look(), "exactly_once")
    assert not isinstance(found, Everything)
    documents_of_another_release(lake, "exactly_once")
    later = lake.project.workspace()
    found = table_checks._since(later, later.table(lake.declared("old")), table.output.look(), "exactly_once")
    assert isinstance(found, Everything)
    assert found.reason.startswith("its last pass cannot be read")


def test_an_error_of_a_check_itself_is_not_told_as_one_of_spark(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(error: Exception) -> Outcome:
        def fail(_case: object) -> Outcome:
            raise error

        monkeypatch.setitem(table_checks.CHECKS, "exactly_once", fail)
        return Checking(lake.project.workspace(), "old").run("exactly_once", full=True)

    with pytest.raises(ZeroDivisionError):
        made(ZeroDivisionError())
    with pytest.raises(
        ComputeError, match="a reader without Spark could not make the check exactly_once: OSError: gone"
    ):
        made(OSError("gone"))


LOST = VersionsLostError("table 'base': version 3 can no longer be read", hint="reset")


class Base:
    """A table of which something is gone."""

    def __init__(self, lost: str) -> None:
        self.lost = lost

    def commits(self, *_span: int) -> list[Any]:
        if self.lost == "log":
            raise LOST
        return []

    def size(self) -> Any:
        return SimpleNamespace(bytes=100)

    def check_readable(self, _read: object) -> None:
        raise LOST

    def check_whole(self, _number: int) -> None:
        raise LOST


@pytest.mark.parametrize(
    ("lost", "scope", "why"),
    [
        ("log", SimpleNamespace(reads=[]), LOST.message),
        ("file", None, LOST.message),
        ("", Everything(reason="more changed than there is"), "more changed than there is"),
    ],
)
def test_where_changes_since_a_pass_cannot_be_read_everything_is_proved(
    monkeypatch: pytest.MonkeyPatch, lost: str, scope: Any, why: str
) -> None:
    position = SnapshotPosition(tables={})
    case: Any = SimpleNamespace(
        written=lambda: SimpleNamespace(bytes=1),
        last=SimpleNamespace(record=SimpleNamespace(position=position)),
        table=SimpleNamespace(output=SimpleNamespace(location=None)),
    )
    reads: Any = SimpleNamespace(query=SimpleNamespace(present=None), tables={"base": Base(lost)}, view=None)
    monkeypatch.setattr(proof_rows, "followed", lambda *_: {"base": (1, 3)})
    monkeypatch.setattr(proof_rows, "table_bytes", lambda _location: 100)
    if scope is None:
        scope = Since(reads=(cast(Any, SimpleNamespace(source="base")),))
    monkeypatch.setattr(proof_rows, "scope", lambda *_, **__: scope)
    found = proof_rows._read_since(case, position, reads)
    assert isinstance(found, Everything)
    assert found.reason == why


def test_keys_that_cannot_be_checked_as_files_are_gone_are_told_as_lost(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_given: object) -> None:
        raise ComputeError("Spark failed", hint="run it again")

    monkeypatch.setattr("backfill_assets.app.wiring.table_upstreams.check_unique", fail)
    upstreams = lake.project.workspace().inputs(lake.declared("old")).upstreams
    with pytest.raises(ComputeError, match="Spark failed"):
        upstreams.check_keys({"base": 0}, {})
    next(Path(lake.path("base")).glob("*.parquet")).unlink()
    with pytest.raises(VersionsLostError, match="version 0 can no longer be read"):
        upstreams.check_keys({"base": 0}, {})


def test_nothing_is_kept_of_a_table_for_a_view_that_does_not_exist(lake: Lake) -> None:
    workspace = lake.project.workspace()
    assert workspace.inputs(lake.declared("child"))._kept("old", 0) is None
    assert workspace.inputs(lake.declared("old"))._kept("base", 9) is None
    assert workspace.inputs(lake.declared("old"))._kept("another", 0) is None


def test_a_record_is_not_named_by_a_key_nor_a_row_by_an_offset(tmp_path: Path, lake: Lake) -> None:
    ids = materialized_view("ids", query="SELECT id FROM clicks", upstreams=[CLICKS])
    records = workspace_of(tmp_path, CLICKS, ids)
    for named in (Named(source="clicks", key=("id=3",)), Named(source="clicks", partition=0), Named(offsets=(3,))):
        with pytest.raises(DeclarationError, match="a record of source 'clicks' is named by --partition and --offset"):
            set_skips(records, "ids", named, undo=False, by="me")
    rows = lake.project.workspace()
    for named in (Named(source="base", partition=0, offsets=(3,)), Named(source="base")):
        with pytest.raises(DeclarationError, match="a row of table 'base' is named by its key"):
            set_skips(rows, "old", named, undo=False, by="me")


def test_definitions_without_tables_have_no_workspace() -> None:
    with pytest.raises(DeclarationError, match="these definitions have no sources or views"):
        assets.workspace_in(dg.Definitions())


@pytest.mark.parametrize(
    ("stopped", "live", "first", "epochs", "changed"),
    [
        (Stop.CAUGHT_UP, True, True, 0, True),
        (Stop.CAUGHT_UP, True, False, 2, True),
        (Stop.CAUGHT_UP, True, False, 0, False),
        (Stop.MAX_SECONDS, False, False, 2, False),
        (Stop.FENCED, True, True, 2, False),
    ],
)
def test_readers_have_something_new_where_a_live_table_came_further(
    stopped: Stop, live: bool, first: bool, epochs: int, changed: bool
) -> None:
    report = SimpleNamespace(stopped=stopped, record=SimpleNamespace(live=live), epochs=[None] * epochs)
    done: Any = SimpleNamespace(report=report, first_live=first)
    assert assets._changed(done) is changed
