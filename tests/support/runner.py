"""Works on tables in a process of its own, which a test may kill: one JSON argument in, one JSON line out per job.

The argument: `root`, `servers`, `warehouse` and its `storage`, `topic` (empty: a Delta table instead), `base` (how that table
is declared, unless it is below the root), and `jobs`: each names a view or source to refresh, with `chunk_rows` and where the
process is to kill itself (`die`: the step and which occurrence of it), and of a Delta table's view the `strategy` and, unless
it is that of `large`, the `query`, its `upstreams` (or `tables`: their paths) unless they are those of `large`, and the
refresh `mode`; or one to `verify`, by all checks, or to `replace`, or to `undo` that; or several to refresh `together`, as
one run does. With the argument `serve`, one such order a line comes in, each done by a fork in the `environment` that it
names. With `call`, a module and a function, that is called with the `arguments`.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
import uuid
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from backfill_assets import delta_table, kafka_source, materialized_view
from backfill_assets.app.refresh import refresh
from backfill_assets.app.replacing import replace_view, undo_replacement
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.declare.model import Declared, DeclaredStrategy, MaterializedView
from backfill_assets.testing.crash_points import CrashPoint
from tests.support.project import Project

LAKE_QUERY = "SELECT id, v * 2 AS twice FROM base WHERE v <> 3"
answers = sys.stdout
"""Where answers go. In a process of its own, what else is printed there goes to the other output."""
HASHED = 25_000_000
"""This many characters are hashed for each row of view `slow`: a tenth of a second."""


def declared(topic: str) -> list[Declared]:
    """The tables that test and runner both declare: a source, a quick view and one that takes Spark some time."""
    orders = kafka_source("orders", topic=topic, schema="id LONG, amount DOUBLE")
    large = materialized_view("large", query="SELECT id, amount * 2 AS twice FROM orders", upstreams=[orders])
    slow = materialized_view(
        "slow", query=f"SELECT id, sha2(repeat('x', {HASHED} + id), 256) AS hashed FROM orders", upstreams=[orders]
    )
    sums = materialized_view(
        "sums",
        query="SELECT id % 3 AS third, count(*) AS n, sum(amount) AS total FROM orders GROUP BY id % 3",
        upstreams=[orders],
    )
    return [orders, large, slow, sums]


def over_lake(
    root: Path, strategy: DeclaredStrategy = "auto", base: Mapping[str, Any] = MappingProxyType({})
) -> list[Declared]:
    """Views over a Delta table below `root`, or where `base` says, one of them read by key."""
    table = delta_table("base", **{"path": str(root / "lake" / "base"), "primary_key": "id", **base})
    by_key = materialized_view("by_key", query=LAKE_QUERY, upstreams=[table], strategy="arrangement")
    return [materialized_view("large", query=LAKE_QUERY, upstreams=[table], strategy=strategy), by_key]


def order_of(project: Project, topic: str = "") -> dict[str, object]:
    """The arguments, without jobs."""
    place = {"warehouse": project.warehouse, "storage": project.storage}
    return {"root": str(project.root), "servers": project.servers, **place, "topic": topic}


def start(project: Project, topic: str, remote: str, *jobs: dict[str, Any]) -> subprocess.Popen[str]:
    """Start a process that does these jobs, over the Spark Connect server at `remote`."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.runner", json.dumps({**order_of(project, topic), "jobs": jobs})],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "SPARK_REMOTE": remote},
        stdout=subprocess.PIPE,
        text=True,
    )


def main(order: dict[str, Any]) -> None:
    """Run all jobs, one after the other; or call a function."""
    if "call" in order:
        module, name = order["call"]
        _say({"returned": getattr(importlib.import_module(module), name)(*order["arguments"])})
        return
    place = {"warehouse": order["warehouse"], "storage": order["storage"]}
    project = Project(root=Path(order["root"]), servers=order["servers"], **place)
    for job in order["jobs"]:
        strategy = job.get("strategy", "auto")
        lake = partial(over_lake, project.root, strategy, order.get("base", {}))
        project.declare(*(declared(order["topic"]) if order["topic"] else lake()))
        if "query" in job:
            large = project.declared["large"]
            assert isinstance(large, MaterializedView)
            others = [delta_table(name, path=path, primary_key="id") for name, path in job.get("tables", {}).items()]
            named = [project.declared[name] for name in job.get("upstreams", ())]
            read = others or named or large.upstreams
            given = {"query": job["query"], "upstreams": read, "strategy": strategy}
            mode = job.get("mode", "auto")
            project.declare(materialized_view(job.get("refresh", "large"), **given, refresh_mode=mode))
        if "verify" in job:
            _say({check: project.check(job["verify"], check).passed for check in CHECKS})
            continue
        if "together" in job:
            run, workspace = uuid.uuid4().hex, project.workspace()
            for name in job["together"]:
                refresh(workspace, name, Limits(chunk_rows=job["chunk_rows"]), run_id=run)
            continue
        hook = CrashPoint(job["die"][0], at=job["die"][1], action=_die) if "die" in job else lambda _step: None
        chunks = Limits(chunk_rows=job.get("chunk_rows", 1000))
        if "replace" in job:
            replace_view(project.workspace(on_step=hook), job["replace"], chunks, run_id=uuid.uuid4().hex)
            continue
        if "undo" in job:
            undo_replacement(project.workspace(on_step=hook), job["undo"])
            continue
        done = project.refresh(job["refresh"], chunks, on_step=hook)
        epochs = [each.epoch for each in done.report.epochs]
        _say({"stopped": done.report.stopped, "epochs": epochs})


def _say(found: Mapping[str, object]) -> None:
    answers.write(json.dumps(found) + "\n")
    answers.flush()


def serve() -> None:
    """Run each request in a process of its own, and report how it ended.

    A fork must not inherit threads or connections, so this process only imports modules.
    """
    importlib.import_module("pyspark.sql.connect.session")
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _do_and_exit(line)
        _, status = os.waitpid(child, 0)
        _say({"code": os.waitstatus_to_exitcode(status)})


def _do_and_exit(line: str) -> NoReturn:
    order = json.loads(line)
    os.environ.clear()
    os.environ.update(order["environment"])
    try:
        main(order)
    except BaseException:
        _say({"error": traceback.format_exc()})
        os._exit(1)
    os._exit(0)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve() if sys.argv[1] == "serve" else main(json.loads(sys.argv[1]))
