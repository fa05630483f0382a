"""The command line. Refresh and verify are runs of the same Dagster instance that the UI shows.

Exit codes: 0 done, 1 failed, 2 usage, 3 stopped early for a stated reason.
"""

import gc
import importlib
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from backfill_assets.errors import BackfillError, DeclarationError
from backfill_assets.printing import plan_text, run_text, status_text
from backfill_assets.project import project_root

if TYPE_CHECKING:
    import dagster as dg

    from backfill_assets.summary import RunSummary
    from backfill_assets.workspace import Workspace

__all__ = ["app", "main"]


LEAST_WIDTH = 120

_log = logging.getLogger(__name__)


class Exit(IntEnum):
    """What the command says with its exit code."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    STOPPED = 3


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Sources and views: start, look, refresh, control, verify.",
)

Module = Annotated[
    str, typer.Option("-m", "--module", help="Module with the definitions; the current folder comes first.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Name = Annotated[str, typer.Argument(help="Name of a source or view.")]
Names = Annotated[list[str], typer.Argument(help="Names of sources and views.")]


def main() -> None:
    """Run the command line; errors of this package become one message and exit code 1 (2 for wrong usage)."""
    try:
        app()
    except DeclarationError as error:
        _fail(error, Exit.USAGE)
    except BackfillError as error:
        _fail(error, Exit.FAILED)


@app.command()
def up(
    as_json: AsJson = False,
    kafka: Annotated[bool, typer.Option(help="Start the broker.")] = True,
    spark: Annotated[bool, typer.Option(help="Start the Spark server.")] = True,
) -> None:
    """Start the embedded broker and Spark server, or find them running."""
    from backfill_assets.resources.embedded import up as start

    found = start(project_root(Path.cwd()), kafka=kafka, spark=spark)
    _say(
        asdict(found),
        as_json=as_json,
        text=lambda: f"Kafka: {found.bootstrap_servers or 'down'}\nSpark: {found.spark_remote or 'down'}",
    )


@app.command()
def down(as_json: AsJson = False) -> None:
    """Stop the embedded broker and Spark server; the broker's data stays."""
    from backfill_assets.resources.embedded import down as stop

    stopped = stop(project_root(Path.cwd()))
    _say(
        {"stopped": list(stopped)},
        as_json=as_json,
        text=lambda: f"stopped: {', '.join(stopped) or 'nothing was running'}",
    )


@app.command()
def status(
    name: Annotated[str | None, typer.Argument(help="One source or view; all without it.")] = None,
    module: Module = "definitions",
    as_json: AsJson = False,
) -> None:
    """How sources and views stand: phase, rows, percent, rate, ETA, lag per split."""
    from backfill_assets.operations import status as status_of

    project = _Project(module)
    workspace = project.workspace()
    names = [workspace.find(name).name] if name else list(workspace.declared)
    with ThreadPoolExecutor(max_workers=8) as pool:  # a broker that does not answer is then waited for only once
        found = list(pool.map(lambda each: status_of(workspace, each), names))
    submitted = project.submitted(workspace)
    found = [each.queued() if workspace.find(each.name).key in submitted else each for each in found]
    _say([asdict(each) for each in found], as_json=as_json, text=lambda: status_text(found, splits=name is not None))


@app.command()
def plan(name: Name, module: Module = "definitions", as_json: AsJson = False) -> None:
    """What the next epoch would read, and which strategy a new view would take and why; writes nothing."""
    from backfill_assets.backfill.control import Limits
    from backfill_assets.operations import plan as plan_of

    found = plan_of(_Project(module).workspace(), name, Limits())
    _say(found.document(), as_json=as_json, text=lambda: plan_text(name, found))


@app.command()
def refresh(  # noqa: PLR0913, PLR0917  (options of a command)
    names: Names,
    module: Module = "definitions",
    as_json: AsJson = False,
    max_seconds: Annotated[float | None, typer.Option(min=0.001)] = None,
    max_rows: Annotated[int | None, typer.Option(min=1)] = None,
    chunk_rows: Annotated[int | None, typer.Option(min=1)] = None,
    rows_per_second: Annotated[float | None, typer.Option(min=0)] = None,
    heed_views: Annotated[
        bool, typer.Option(help="End early while a view that reads it is behind its lag bound.")
    ] = False,
) -> None:
    """Bring sources and views up to date, in one Dagster run, and check what is new."""
    given = {
        "max_seconds": max_seconds,
        "max_rows": max_rows,
        "chunk_rows": chunk_rows,
        "rows_per_second": rows_per_second,
        "heed_views": heed_views or None,
    }
    config = {key: value for key, value in given.items() if value is not None}
    result = _Project(module).refresh(names, config)
    _say(asdict(result), as_json=as_json, text=lambda: run_text(result))
    if not result.success or not all(each.passed for each in result.checks):
        raise typer.Exit(Exit.FAILED)
    if any(found.get("stopped_reason") != "caught_up" for found in result.tables.values()):
        raise typer.Exit(Exit.STOPPED)


@app.command()
def verify(name: Name, module: Module = "definitions", as_json: AsJson = False) -> None:
    """Prove all of a source or view with every check, in one Dagster run."""
    result = _Project(module).verify(name)
    _say(asdict(result), as_json=as_json, text=lambda: run_text(result))
    if not result.success or not all(each.passed for each in result.checks):
        raise typer.Exit(Exit.FAILED)


@app.command()
def pause(name: Name, module: Module = "definitions", as_json: AsJson = False) -> None:
    """Stop working on a source or view after the current epoch, until it is resumed."""
    _control(module, name, as_json=as_json, paused=True)


@app.command()
def resume(name: Name, module: Module = "definitions", as_json: AsJson = False) -> None:
    """Let work on a paused source or view go on with its next refresh."""
    _control(module, name, as_json=as_json, paused=False)


@app.command()
def throttle(
    name: Name,
    rows_per_second: Annotated[str, typer.Argument(help="Rows per second, or 'off'; 0 pauses.")],
    module: Module = "definitions",
    as_json: AsJson = False,
) -> None:
    """Limit how fast a source or view is worked on; holds until it is changed."""
    if rows_per_second != "off":
        try:
            if float(rows_per_second) < 0:
                raise ValueError(rows_per_second)
        except ValueError:
            raise DeclarationError(
                f"throttle: expected rows per second or 'off', found {rows_per_second!r}",
                hint="for example `backfill throttle revenue 5000` or `backfill throttle revenue off`",
                argument="rows_per_second",
            ) from None
    _control(module, name, as_json=as_json, throttle=rows_per_second)


@app.command()
def reset(name: Name, module: Module = "definitions", as_json: AsJson = False) -> None:
    """Empty a source or view and begin a new life with the declaration as it is now."""
    from backfill_assets.operations import reset as reset_table

    record = reset_table(_Project(module).workspace(), name)
    _say(
        {"name": name, "incarnation": record.incarnation},
        as_json=as_json,
        text=lambda: f"{name} begins anew as {record.incarnation}; `backfill refresh {name}` fills it",
    )


@app.command()
def drop(name: Name, module: Module = "definitions", as_json: AsJson = False) -> None:
    """Delete a source's or view's data, plans and settings; a marker stays in the table's log."""
    from backfill_assets.operations import drop as drop_table

    drop_table(_Project(module).workspace(), name)
    _say({"name": name, "dropped": True}, as_json=as_json, text=lambda: f"{name} is dropped")


@app.command()
def rebuild(module: Module = "definitions", as_json: AsJson = False) -> None:
    """Make the ledger anew from the tables' own commits, after the state store was lost."""
    from backfill_assets.operations import rebuild as rebuild_ledger

    rebuilt = rebuild_ledger(_Project(module).workspace())
    _say({"rebuilt": rebuilt}, as_json=as_json, text=lambda: f"rebuilt: {', '.join(rebuilt) or 'there are no tables'}")


@app.command()
def tend(
    name: Name,
    module: Module = "definitions",
    as_json: AsJson = False,
    vacuum_hours: Annotated[int | None, typer.Option(min=0, help="Also delete files unused for so long.")] = None,
) -> None:
    """Compact small files and sweep what dead runs left behind; positions are restated first."""
    from backfill_assets.operations import tend as tend_table

    swept = tend_table(_Project(module).workspace(), name, vacuum_hours=vacuum_hours)
    _say(
        {"name": name, "swept": swept},
        as_json=as_json,
        text=lambda: f"{name}: compacted; swept {len(swept)} staged folders",
    )


@app.command()
def ui(
    module: Module = "definitions",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 3000,
    host: str = "127.0.0.1",
) -> None:
    """Serve the Dagster UI with its daemon over the project's instance."""
    root = project_root(Path.cwd())
    home = dagster_home(root)
    from backfill_assets.resources.ports import choose_port

    port = choose_port("the Dagster UI", variable="BACKFILL_UI_PORT", last=port)
    typer.echo(f"Dagster UI: http://{host}:{port}   (Ctrl-C ends it; instance {home})")
    workspace = root / "workspace.yaml"
    chosen = ["-m", module, "-d", str(Path.cwd())]
    if workspace.exists() and module == "definitions":
        chosen = ["-w", str(workspace)]
    # `dagster dev` says that it is superseded by a command of another package that this project does not need.
    quiet = ["-W", "ignore:Function `dev_command` is superseded"]
    command = [sys.executable, *quiet, "-m", "dagster", "dev", "-h", host, "-p", str(port), *chosen]
    os.chdir(root)
    os.execv(command[0], command)


class _Project:
    """The definitions of one module, and the Dagster instance of the project."""

    def __init__(self, module: str) -> None:
        self.root = project_root(Path.cwd())
        self.definitions = load_definitions(module)

    def workspace(self) -> "Workspace":
        """The declared tables over the definitions' own resources."""
        from backfill_assets.assets import workspace_in

        return workspace_in(self.definitions)

    def refresh(self, names: list[str], config: dict[str, Any]) -> "RunSummary":
        """Refresh some tables in one run of the instance."""
        from backfill_assets.jobs import TABLES_JOB, refresh_run_config

        workspace = self.workspace()
        keys = {workspace.find(name).key: name for name in names}
        return self._execute(
            TABLES_JOB, keys, refreshed=names, run_config=refresh_run_config(config), asset_selection=list(keys)
        )

    def submitted(self, workspace: "Workspace") -> "set[dg.AssetKey]":
        """The tables that runs of the instance are about to refresh; none where the instance cannot be asked."""
        from backfill_assets.jobs import queued

        try:
            with open_instance(dagster_home(self.root)) as instance:
                return queued(instance, workspace.declared.values())
        except Exception as error:  # how the tables stand is known without it
            _log.warning("Dagster cannot be asked for submitted runs: %s", error)
            return set()

    def verify(self, name: str) -> "RunSummary":
        """Run every check of one table in one run of the instance."""
        from backfill_assets.jobs import QUIET

        return self._execute(f"verify_{name}", {self.workspace().find(name).key: name}, run_config=QUIET)

    def _execute(
        self, job: str, keys: "dict[dg.AssetKey, str]", *, refreshed: Sequence[str] = (), **arguments: Any
    ) -> "RunSummary":
        from backfill_assets.summary import summarize

        with open_instance(dagster_home(self.root)) as instance:
            result = self.definitions.resolve_job_def(job).execute_in_process(
                instance=instance, raise_on_error=False, **arguments
            )
            return summarize(result, keys, refreshed=refreshed)


def open_instance(home: Path) -> "dg.DagsterInstance":
    """The Dagster instance of a folder. One process at a time: two that make its SQLite databases at once break them."""
    import dagster as dg
    from filelock import FileLock

    with FileLock(home / ".opening.lock"):
        instance = dg.DagsterInstance.from_config(str(home))
        instance.get_asset_keys(limit=1)  # the event log's database is made with its first use
        return instance


def load_definitions(module: str) -> "dg.Definitions":
    """The one `Definitions` object of a module, imported with the current folder first on the path."""
    import dagster as dg
    from dagster.components.definitions import LazyDefinitions

    sys.path.insert(0, str(Path.cwd()))
    gc.disable()  # imports make many objects and no garbage: a quarter of their time went into looking for it
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise DeclarationError(
            f"there is no module {module!r} in {Path.cwd()} or on the path",
            hint="run from the project's folder, or name the module with -m",
            argument="module",
        ) from None
    finally:
        gc.freeze()
        gc.set_threshold(50_000)  # the run itself imports much, too
        gc.enable()
    found = [value for value in vars(loaded).values() if isinstance(value, dg.Definitions | LazyDefinitions)]
    if len(found) != 1:
        raise DeclarationError(
            f"module {module!r} holds {len(found)} Definitions objects, expected one",
            hint="assign build_definitions(...), merged with your own, to one name such as `defs`",
            argument="module",
        )
    (only,) = found
    return only() if isinstance(only, LazyDefinitions) else only


def dagster_home(root: Path) -> Path:
    """The folder of the Dagster instance: `DAGSTER_HOME`, else `.dagster/` of the project, made if need be."""
    home = Path(os.environ.setdefault("DAGSTER_HOME", str(root / ".dagster")))
    home.mkdir(parents=True, exist_ok=True)
    settings = root / "dagster.yaml"
    if settings.exists() and not (home / "dagster.yaml").exists():
        (home / "dagster.yaml").write_text(settings.read_text(encoding="utf-8"), encoding="utf-8")
    return home


def _control(module: str, name: str, *, as_json: bool, **change: Any) -> None:
    from backfill_assets.operations import set_controls

    controls = set_controls(_Project(module).workspace(), name, by="cli", **change)
    rate = "no limit" if controls.rows_per_second is None else f"{controls.rows_per_second:g} rows/s"
    _say(
        {"name": name, **asdict(controls)},
        as_json=as_json,
        text=lambda: f"{name}: {'paused' if controls.paused else 'not paused'}, {rate}",
    )


def _say(document: Any, *, as_json: bool, text: Callable[[], Any]) -> None:
    if as_json:
        typer.echo(json.dumps(document, default=str))
    else:
        # A table that does not fit is cropped by rich; a terminal or a file takes the longer lines as they are.
        Console(width=max(Console().width, LEAST_WIDTH)).print(text())


def _fail(error: BackfillError, code: Exit) -> None:
    typer.echo(str(error), err=True)
    raise SystemExit(int(code))
