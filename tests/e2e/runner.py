"""Works on tables in a process of its own, which a test may kill: one JSON argument in, one JSON line out per job.

The argument: `root`, `servers`, `topic` (empty: a Delta table instead), and `jobs`: each names a view or source to
refresh, with `chunk_rows` and where the process is to kill itself (`die`: the step and which occurrence of it), and of
a Delta table's view the `strategy`.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from backfill_assets import delta_table, kafka_source, materialized_view
from backfill_assets.backfill.control import Limits
from backfill_assets.model import Strategy
from backfill_assets.testing.crash import CrashPoint
from backfill_assets.workspace import Declared
from tests.e2e.project import Project

HASHED = 25_000_000
"""So many characters are hashed for each row of view `slow`: a tenth of a second."""


def declared(topic: str) -> list[Declared]:
    """The tables that test and runner both know: a source, a quick view and one that takes Spark its time."""
    orders = kafka_source("orders", topic=topic, schema="id LONG, amount DOUBLE")
    large = materialized_view("large", query="SELECT id, amount * 2 AS twice FROM orders", upstreams=[orders])
    slow = materialized_view(
        "slow", query=f"SELECT id, sha2(repeat('x', {HASHED} + id), 256) AS hashed FROM orders", upstreams=[orders]
    )
    return [orders, large, slow]


def over_lake(root: Path, strategy: Strategy = "auto") -> list[Declared]:
    """Views over a Delta table below `root`, one of them read by key."""
    table = delta_table("base", path=str(root / "lake" / "base"), primary_key="id")
    query = "SELECT id, v * 2 AS twice FROM base WHERE v <> 3"
    by_key = materialized_view("by_key", query=query, upstreams=[table], strategy="arrangement")
    return [materialized_view("large", query=query, upstreams=[table], strategy=strategy), by_key]


def start(project: Project, topic: str, remote: str, *jobs: dict[str, Any]) -> subprocess.Popen[str]:
    """Start a process that does these jobs, over the Spark Connect server at `remote`."""
    order = {"root": str(project.root), "servers": project.servers, "topic": topic, "jobs": jobs}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.runner", json.dumps(order)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "SPARK_REMOTE": remote},
        stdout=subprocess.PIPE,
        text=True,
    )


def main(order: dict[str, Any]) -> None:
    """Do all jobs, one after the other."""
    project = Project(root=Path(order["root"]), servers=order["servers"])
    for job in order["jobs"]:
        strategy = job.get("strategy", "auto")
        project.declare(*(declared(order["topic"]) if order["topic"] else over_lake(project.root, strategy)))
        hook = CrashPoint(job["die"][0], at=job["die"][1], action=_die) if "die" in job else lambda _step: None
        done = project.refresh(job["refresh"], Limits(chunk_rows=job.get("chunk_rows", 1000)), on_step=hook)
        epochs = [each.epoch for each in done.report.epochs]
        sys.stdout.write(json.dumps({"stopped": done.report.stopped, "epochs": epochs}) + "\n")
        sys.stdout.flush()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
