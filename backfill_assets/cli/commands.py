"""The command line. Refresh and verify are runs of the same Dagster instance that the UI shows.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 stopped early for a reason that is printed.
"""

import atexit
import gc
import json
import os
import sys
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from backfill_assets.adapters.storage.store_errors import masking
from backfill_assets.cli.local_project import LocalProject, dagster_home
from backfill_assets.cli.printing import left_out_text, plan_text, replaced_text, run_text, servers_text, status_text
from backfill_assets.environment import project_root, warehouse_place
from backfill_assets.errors import BackfillError, DeclarationError

__all__ = ["app", "main"]


MIN_WIDTH = 120


class Exit(IntEnum):
    """The exit codes."""

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
    """Run the command line; an error of this package becomes one message and exit code 1 (2 for wrong usage)."""
    atexit.register(gc.freeze)  # collecting garbage at exit is useless, and takes a tenth of a second
    try:
        with masking({}):
            app()
    except DeclarationError as error:
        _fail(error, Exit.USAGE)
    except BackfillError as error:
        _fail(error, Exit.FAILED)


@app.command()
def up(  # noqa: PLR0913, PLR0917  (options of a command)
    as_json: AsJson = False,
    kafka: Annotated[bool, typer.Option(help="Start the broker.")] = True,
    spark: Annotated[bool, typer.Option(help="Start the Spark server.")] = True,
    s3: Annotated[bool, typer.Option("--s3", help="Start an S3 server, too.")] = False,
    s3_tables: Annotated[
        bool, typer.Option("--s3-tables", help="Let Spark read tables on S3, wherever the warehouse is.")
    ] = False,
    azure_tables: Annotated[bool, typer.Option("--azure-tables", help="The same of tables on Azure.")] = False,
    google_tables: Annotated[bool, typer.Option("--google-tables", help="The same of tables on Google.")] = False,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Run Spark's tasks on a cluster: a master and two workers.")
    ] = False,
) -> None:
    """Start the embedded broker and Spark server, if they are not running."""
    from backfill_assets.adapters.local.servers import SparkNeeds
    from backfill_assets.adapters.local.servers import up as start
    from backfill_assets.declare.stores import provider_of

    asked = {"s3": s3 or s3_tables, "azure": azure_tables, "gcs": google_tables}
    stores = {provider_of(warehouse_place()), *(name for name, is_asked in asked.items() if is_asked)}
    needs = SparkNeeds(stores=frozenset(stores), cluster=cluster)
    found = start(project_root(Path.cwd()), kafka=kafka, spark=spark, s3=s3, needs=needs)
    _say(asdict(found), as_json=as_json, text=lambda: servers_text(found))


@app.command()
def down(as_json: AsJson = False) -> None:
    """Stop the embedded servers; the data of broker and S3 server is kept."""
    from backfill_assets.adapters.local.servers import down as stop

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
    """Show the state of sources and views: phase, rows, percent, rate, ETA, lag per partition."""
    from backfill_assets.app.status import status as status_of

    project = LocalProject(module)
    workspace = project.workspace()
    names = [workspace.registry.find(name).name] if name else list(workspace.declared)
    with ThreadPoolExecutor(max_workers=8) as pool:  # so that a broker that does not answer is waited for only once
        found = list(pool.map(lambda each: status_of(workspace, each), names))
    submitted = project.submitted(workspace)
    found = [each.queued() if workspace.registry.find(each.name).key in submitted else each for each in found]
    _say(
        [asdict(each) for each in found], as_json=as_json, text=lambda: status_text(found, partitions=name is not None)
    )


@app.command()
def plan(name: Name, module: Module = "definitions", as_json: AsJson = False) -> None:
    """Show what the next epoch would read, and which strategy a new view would use and why; writes nothing."""
    from backfill_assets.app.dry_run import plan as plan_of
    from backfill_assets.core.epoch.limits import Limits

    found = plan_of(LocalProject(module).workspace(), name, Limits())
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
    yield_to_views: Annotated[
        bool, typer.Option(help="End early while a view that reads it is behind its lag bound.")
    ] = False,
) -> None:
    """Bring sources and views up to date in one Dagster run, and check what is new."""
    given = {
        "max_seconds": max_seconds,
        "max_rows": max_rows,
        "chunk_rows": chunk_rows,
        "rows_per_second": rows_per_second,
        "yield_to_views": yield_to_views or None,
    }
    config = {key: value for key, value in given.items() if value is not None}
    result = LocalProject(module).refresh(names, config)
    _say(asdict(result), as_json=as_json, text=lambda: run_text(result))
    if not result.success or not all(check.passed or check.unproved for check in result.checks):
        raise typer.Exit(Exit.FAILED)
    if any(found.get("stopped_reason") != "caught_up" for found in result.tables.values()):
        raise typer.Exit(Exit.STOPPED)


@app.command()
def verify(name: Name, module: Module = "definitions", as_json: AsJson = False) -> None:
    """Prove every row of a source or view with all checks, in one Dagster run."""
    result = LocalProject(module).verify(name)
    _say(asdict(result), as_json=as_json, text=lambda: run_text(result))
    if not result.success or not all(check.passed or check.unproved for check in result.checks):
        raise typer.Exit(Exit.FAILED)


@app.command()
def pause(name: Name, module: Module = "definitions", as_json: AsJson = False) -> None:
    """Stop working on a source or view after the current epoch, until it is resumed."""
    _control(module, name, as_json=as_json, paused=True)


@app.command()
def resume(name: Name, module: Module = "definitions", as_json: AsJson = False) -> None:
    """Let a paused source or view continue with its next refresh."""
    _control(module, name, as_json=as_json, paused=False)


@app.command()
def throttle(
    name: Name,
    rows_per_second: Annotated[str, typer.Argument(help="Rows per second, or 'off'; 0 pauses.")],
    module: Module = "definitions",
    as_json: AsJson = False,
) -> None:
    """Limit the rows per second of a source or view; applies until it is changed."""
    _control(module, name, as_json=as_json, throttle=rows_per_second)


@app.command()
def skip(  # noqa: PLR0913, PLR0917  (options of a command)
    name: Annotated[str, typer.Argument(help="Name of a view.")],
    module: Module = "definitions",
    as_json: AsJson = False,
    source: Annotated[
        str | None, typer.Option(help="The upstream that has the row; needed where there are several.")
    ] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="The record's partition in its topic.")] = None,
    offset: Annotated[
        list[int] | None, typer.Option(min=0, help="The record's offset; may be given several times.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(help="A column of the key of a table's row, as name=value; as name alone where it is null."),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take the row back, if it has not been read yet.")] = False,
) -> None:
    """Make a view leave out rows that it cannot compute; without a row, list the rows that it leaves out."""
    from backfill_assets.app.skipping import Named, left_out, set_skips

    workspace = LocalProject(module).workspace()
    named = Named(source=source, partition=partition, offsets=tuple(offset or ()), key=tuple(key or ()))
    found = set_skips(workspace, name, named, undo=undo, by="cli") if named.any else left_out(workspace, name)
    _say(
        {"name": name, "left_out": [asdict(row) for row in found]},
        as_json=as_json,
        text=lambda: left_out_text(found) if found else f"{name} leaves out no rows",
    )


@app.command()
def reset(name: Name, module: Module = "definitions", as_json: AsJson = False) -> None:
    """Empty a source or view, and start it again with its present declaration."""
    from backfill_assets.app.lifecycle import reset as reset_table

    record = reset_table(LocalProject(module).workspace(), name)
    _say(
        {"name": name, "incarnation": record.incarnation},
        as_json=as_json,
        text=lambda: f"{name} starts over as {record.incarnation}; `backfill refresh {name}` fills it",
    )


@app.command()
def replace(  # noqa: PLR0913, PLR0917  (options of a command)
    name: Annotated[str, typer.Argument(help="Name of a view.")],
    module: Module = "definitions",
    as_json: AsJson = False,
    max_seconds: Annotated[float | None, typer.Option(min=0.001)] = None,
    chunk_rows: Annotated[int | None, typer.Option(min=1)] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Put back what it was before the last replacement.")] = False,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Delete what lies beside it: what is kept for --undo, and what is not finished."),
    ] = False,
) -> None:
    """Build a view's changed definition beside it, and switch in one commit; readers see the old rows until then."""
    from backfill_assets.app import replacing
    from backfill_assets.core.epoch.limits import DEFAULT_CHUNK_ROWS, Limits

    if undo and forget:
        raise typer.BadParameter("--undo needs what --forget deletes: expected one of them", param_hint="--undo")
    workspace = LocalProject(module).workspace()
    if undo or forget:
        (replacing.undo_replacement if undo else replacing.forget_replaced)(workspace, name)
        said = (
            f"{name} is what it was before; restore its old declaration"
            if undo
            else f"nothing lies beside {name} any more"
        )
        _say({"name": name, "undone": undo}, as_json=as_json, text=lambda: said)
        return
    limits = Limits(max_seconds=max_seconds, chunk_rows=chunk_rows or DEFAULT_CHUNK_ROWS)
    done = replacing.replace_view(workspace, name, limits, run_id=uuid.uuid4().hex)
    found = {"name": name, "switched": done.switched, "kept": done.kept, "stopped_reason": done.report.stopped.value}
    _say(found, as_json=as_json, text=lambda: replaced_text(name, done))
    if not done.switched:
        raise typer.Exit(Exit.STOPPED)


@app.command()
def drop(name: Name, module: Module = "definitions", as_json: AsJson = False) -> None:
    """Delete the data, plans and settings of a source or view; a marker remains in the table's log."""
    from backfill_assets.app.lifecycle import drop as drop_table

    drop_table(LocalProject(module).workspace(), name)
    _say({"name": name, "dropped": True}, as_json=as_json, text=lambda: f"{name} is dropped")


@app.command()
def rebuild(module: Module = "definitions", as_json: AsJson = False) -> None:
    """Restore the ledger from the tables' own commits, after the state store was lost."""
    from backfill_assets.app.lifecycle import rebuild as rebuild_ledger

    rebuilt = rebuild_ledger(LocalProject(module).workspace())
    _say({"rebuilt": rebuilt}, as_json=as_json, text=lambda: f"rebuilt: {', '.join(rebuilt) or 'there are no tables'}")


@app.command()
def maintain(
    name: Name,
    module: Module = "definitions",
    as_json: AsJson = False,
    vacuum_hours: Annotated[int | None, typer.Option(min=0, help="Also delete files unused for so long.")] = None,
) -> None:
    """Compact small files, sort a view over several tables again, and delete what dead runs left behind."""
    from backfill_assets.app.lifecycle import maintain as maintain_table

    swept = maintain_table(LocalProject(module).workspace(), name, vacuum_hours=vacuum_hours)
    _say(
        {"name": name, "swept": swept},
        as_json=as_json,
        text=lambda: f"{name}: compacted; deleted {len(swept)} files and folders that nothing needs",
    )


@app.command()
def archive_classes(as_json: AsJson = False) -> None:
    """Save about 4 seconds of each start of Spark in this Python environment, by an archive of its classes (180 MB)."""
    from backfill_assets.app.warm_up import archive_classes as archive

    place = archive()
    _say({"archive": str(place)}, as_json=as_json, text=lambda: f"Spark takes its classes from {place}")


@app.command()
def ui(
    module: Module = "definitions",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 3000,
    host: str = "127.0.0.1",
) -> None:
    """Serve the Dagster UI and its daemon on the project's instance."""
    root = project_root(Path.cwd())
    home = dagster_home(root)
    from backfill_assets.adapters.runtime.tcp_ports import choose_port

    port = choose_port("the Dagster UI", variable="BACKFILL_UI_PORT", last=port)
    typer.echo(f"Dagster UI: http://{host}:{port}   (Ctrl-C ends it; instance {home})")
    workspace = root / "workspace.yaml"
    chosen = ["-m", module, "-d", str(Path.cwd())]
    if workspace.exists() and module == "definitions":
        chosen = ["-w", str(workspace)]
    # `dagster dev` warns that a command of another package supersedes it; this project does not need that package.
    quiet = ["-W", "ignore:Function `dev_command` is superseded"]
    command = [sys.executable, *quiet, "-m", "dagster", "dev", "-h", host, "-p", str(port), *chosen]
    os.chdir(root)
    os.execv(command[0], command)


def _control(module: str, name: str, *, as_json: bool, **change: Any) -> None:
    from backfill_assets.app.controls import set_controls

    controls = set_controls(LocalProject(module).workspace(), name, by="cli", **change)
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
        # rich crops tables that do not fit; longer lines are better in a terminal and in a file.
        Console(width=max(Console().width, MIN_WIDTH)).print(text())


def _fail(error: BackfillError, code: Exit) -> None:
    typer.echo(str(error), err=True)
    raise SystemExit(int(code))
