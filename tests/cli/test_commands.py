"""What each command asks of the functions behind it, and how it ends, without carrying anything out."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from backfill_assets.adapters.local import servers
from backfill_assets.adapters.local.servers import Endpoints, SparkNeeds
from backfill_assets.adapters.runtime.tcp_ports import free_port
from backfill_assets.app import dry_run, lifecycle, replacing, skipping, warm_up
from backfill_assets.app.dry_run import Planned
from backfill_assets.app.skipping import Named
from backfill_assets.app.status import Status
from backfill_assets.cli import commands
from backfill_assets.cli.printing import status_text
from backfill_assets.cli.summary import RunSummary
from backfill_assets.core.epoch.limits import DEFAULT_CHUNK_ROWS, Limits, Stop
from backfill_assets.core.epoch.ports import Controls
from backfill_assets.core.epoch.skips import LeftOut

ROW = LeftOut(source="orders", place={"partition": 0, "offset": 7}, words="source orders, offset 7", status="waiting")
WORKSPACE = "the workspace"


class Asked:
    """Records the calls of functions, and answers each as it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def of(self, module: object, name: str, answer: object = None) -> None:
        def call(*given: Any, **named: Any) -> object:
            self.calls.append((name, given, named))
            return answer

        self.monkeypatch.setattr(module, name, call)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Asked:
    found = Asked(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BACKFILL_WAREHOUSE", raising=False)
    monkeypatch.setattr(commands, "LocalProject", lambda _module: SimpleNamespace(workspace=lambda: WORKSPACE))
    return found


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(commands.app, [*arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


@pytest.mark.parametrize(("option", "function"), [("--undo", "undo_replacement"), ("--forget", "forget_replaced")])
def test_a_view_is_put_back_or_what_lies_beside_it_is_forgotten(asked: Asked, option: str, function: str) -> None:
    for name in ("undo_replacement", "forget_replaced", "replace_view"):
        asked.of(replacing, name)
    said = json.loads(run("replace", "v", option, "--json"))
    assert asked.calls == [(function, (WORKSPACE, "v"), {})]
    assert said == {"name": "v", "undone": option == "--undo"}


@pytest.mark.parametrize("switched", [True, False])
def test_a_replacement_that_has_not_caught_up_ends_with_three(asked: Asked, switched: bool) -> None:
    record = SimpleNamespace(rows_total=5)
    report = SimpleNamespace(stopped=Stop.CAUGHT_UP if switched else Stop.MAX_SECONDS, detail="", record=record)
    asked.of(replacing, "replace_view", SimpleNamespace(switched=switched, kept=True, report=report))
    said = run("replace", "v", code=0 if switched else 3)
    assert ("is replaced" in said, "has not caught up" in said) == (switched, not switched)
    run("replace", "v", "--max-seconds", "7", "--chunk-rows", "9", code=0 if switched else 3)
    limits = [given[2] for _, given, _ in asked.calls]
    assert limits == [Limits(chunk_rows=DEFAULT_CHUNK_ROWS), Limits(max_seconds=7, chunk_rows=9)]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("--source", "orders", "--partition", "0", "--offset", "7", "--offset", "9"),
         Named(source="orders", partition=0, offsets=(7, 9))),
        (("--key", "id=3", "--key", "part"), Named(key=("id=3", "part"))),
    ],
)  # fmt: skip
@pytest.mark.parametrize("undo", [True, False])
def test_rows_to_leave_out_are_passed_on_as_they_are_named(
    asked: Asked, given: tuple[str, ...], named: Named, undo: bool
) -> None:
    asked.of(skipping, "set_skips", [ROW])
    said = json.loads(run("skip", "v", *given, *(["--undo"] if undo else []), "--json"))
    assert asked.calls == [("set_skips", (WORKSPACE, "v", named), {"undo": undo, "by": "cli"})]
    assert said["left_out"][0]["words"] == ROW.words


def test_rows_that_are_left_out_are_listed(asked: Asked) -> None:
    asked.of(skipping, "left_out", [ROW])
    assert ROW.words in run("skip", "v")
    assert asked.calls == [("left_out", (WORKSPACE, "v"), {})]
    asked.of(skipping, "left_out", [])
    assert run("skip", "v").strip() == "v leaves out no rows"


def test_the_status_of_a_view_names_the_rows_that_it_leaves_out() -> None:
    found = Status(name="v", target="views/v", state="idle", controls=Controls(), left_out=[ROW])
    with (console := Console(width=200)).capture() as shown:
        console.print(status_text([found], partitions=True))
    assert ROW.words in shown.get()


def test_limits_of_a_refresh_are_passed_on_and_a_run_that_stopped_early_ends_with_three(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[list[str], Mapping[str, Any]]] = []

    def refresh(names: list[str], config: Mapping[str, Any]) -> Any:
        seen.append((names, config))
        stopped = {"stopped_reason": "max_rows" if config else "caught_up"}
        return RunSummary(run_id="r", success=True, tables={"a": stopped})

    monkeypatch.setattr(commands, "LocalProject", lambda _module: SimpleNamespace(refresh=refresh))
    run("refresh", "a", "b", "--json")
    given = {"max_seconds": 7.0, "max_rows": 5, "chunk_rows": 3, "rows_per_second": 2.0, "yield_to_views": True}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value is not True]
    run("refresh", "a", *words, "--yield-to-views", "--json", code=3)
    assert seen == [(["a", "b"], {}), (["a"], given)]


def test_other_commands_call_the_function_of_their_name(asked: Asked) -> None:
    asked.of(lifecycle, "reset", SimpleNamespace(incarnation="life"))
    asked.of(lifecycle, "drop")
    asked.of(lifecycle, "maintain", ["left"])
    asked.of(lifecycle, "rebuild", ["views/v"])
    assert json.loads(run("reset", "v", "--json")) == {"name": "v", "incarnation": "life"}
    run("drop", "v")
    assert json.loads(run("maintain", "v", "--vacuum-hours", "3", "--json"))["swept"] == ["left"]
    assert json.loads(run("rebuild", "--json")) == {"rebuilt": ["views/v"]}
    assert asked.calls == [
        ("reset", (WORKSPACE, "v"), {}),
        ("drop", (WORKSPACE, "v"), {}),
        ("maintain", (WORKSPACE, "v"), {"vacuum_hours": 3}),
        ("rebuild", (WORKSPACE,), {}),
    ]


@pytest.mark.parametrize(("ended", "words"), [(("kafka", "spark"), "kafka, spark"), ((), "nothing was running")])
def test_servers_that_were_stopped_are_named(asked: Asked, ended: tuple[str, ...], words: str) -> None:
    asked.of(servers, "down", ended)
    assert run("down").strip() == f"stopped: {words}"
    assert json.loads(run("down", "--json")) == {"stopped": list(ended)}
    assert [given for _, given, _ in asked.calls] == [(Path.cwd(),)] * 2


def test_a_plan_is_told_in_words_and_as_json(asked: Asked) -> None:
    asked.of(dry_run, "plan", Planned(record=None, step=None, choice=None, expected_seconds=0.0))
    assert run("plan", "v").startswith("v is not created yet")
    assert json.loads(run("plan", "v", "--json"))["exists"] is False
    assert asked.calls == [("plan", (WORKSPACE, "v", Limits()), {})] * 2


def test_the_archive_of_classes_is_named(asked: Asked) -> None:
    asked.of(warm_up, "archive_classes", Path("/a.jsa"))
    assert run("archive-classes").strip() == "Spark takes its classes from /a.jsa"
    assert json.loads(run("archive-classes", "--json")) == {"archive": "/a.jsa"}


@pytest.mark.parametrize(
    ("options", "exists", "chosen"),
    [
        ((), True, ["-w", "workspace.yaml"]),
        ((), False, ["-m", "definitions", "-d", "."]),
        (("--module", "others"), True, ["-m", "others", "-d", "."]),
    ],
)
def test_the_ui_serves_the_workspace_or_the_module_that_is_named(
    asked: Asked, options: tuple[str, ...], exists: bool, chosen: list[str]
) -> None:
    (Path.cwd() / "pyproject.toml").touch()
    if exists:
        (Path.cwd() / "workspace.yaml").touch()
    asked.monkeypatch.setenv("DAGSTER_HOME", str(Path.cwd()))
    asked.monkeypatch.setenv("BACKFILL_UI_PORT", str(port := free_port()))
    asked.of(os, "execv")
    assert f"http://0.0.0.0:{port} " in run("ui", "--host", "0.0.0.0", *options)
    ((_, (program, command), _),) = asked.calls
    there = {".": str(Path.cwd()), "workspace.yaml": str(Path.cwd() / "workspace.yaml")}
    assert program == command[0] == sys.executable
    assert command[command.index("dagster") :] == [
        *("dagster", "dev", "-h", "0.0.0.0", "-p", str(port)),
        *(there.get(each, each) for each in chosen),
    ]


LOCAL = frozenset({"local"})


@pytest.mark.parametrize(
    ("options", "starts", "needs"),
    [
        ((), (True, True, False), SparkNeeds(stores=LOCAL)),
        (("--s3", "--cluster"), (True, True, True), SparkNeeds(stores=LOCAL | {"s3"}, cluster=True)),
        (("--s3-tables", "--no-kafka"), (False, True, False), SparkNeeds(stores=LOCAL | {"s3"})),
        (("--azure-tables", "--google-tables", "--no-spark"), (True, False, False),
         SparkNeeds(stores=LOCAL | {"azure", "gcs"})),
    ],
)  # fmt: skip
def test_servers_are_started_with_what_is_asked_for(
    asked: Asked, options: tuple[str, ...], starts: tuple[bool, bool, bool], needs: SparkNeeds
) -> None:
    asked.of(servers, "up", Endpoints(bootstrap_servers=None, spark_remote=None))
    run("up", *options)
    ((_, _, named),) = asked.calls
    assert named == {**dict(zip(("kafka", "spark", "s3"), starts, strict=True)), "needs": needs}
