"""A Spark cluster of a master and two workers of one core each, over a warehouse on S3 of which each request takes 30 ms: a
view's first build with both workers, against the same with one of them; and as the measure of what the machine allows, a
plain Spark copy of the same table. The workers share the machine with the store, the proxy and the driver.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backfill_assets.adapters.local.servers import SparkNeeds, down, up
from backfill_assets.core.epoch.limits import Limits
from benchmarks.lake import Lake, lake
from benchmarks.measure import Comparison, timed
from benchmarks.tables import Copies, make_table
from benchmarks.world import World
from tests.support.servers import remote_of
from tests.support.spark_workers import WORKERS, Cluster, wait_until

__all__ = ["run"]

SECONDS = 0.03
SIDES = {"ours": "first build of a view", "theirs": "plain Spark copy"}
_MAKE = "make"


def run(
    world: World, *, rows: int = 10_000_000, repetitions: int = 3, seconds: float = SECONDS
) -> Iterator[Comparison]:
    """Each measure is made by a process of its own, on the cluster's Spark Connect server."""
    with lake(world.root) as place, world.folder() as root:
        measures = _Measures(root, place, rows)
        try:
            measures.ask(_MAKE)
            place.proxy.slow_down(seconds)
            rounds = [measures.round() for _ in range(1 + repetitions)][1:]
        finally:
            down(root)
    for side, case in SIDES.items():
        yield Comparison(
            benchmark="cluster",
            case=f"{case}, two workers",
            peer="one worker",
            rows=rows,
            ours=tuple(each[side, 2] for each in rounds),
            theirs=tuple(each[side, 1] for each in rounds),
        )


@dataclass(frozen=True)
class _Measures:
    """A cluster that runs for the project in `root`, and a table of so many rows in a store."""

    root: Path
    lake: Lake
    rows: int
    contents: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._start()

    def round(self) -> dict[tuple[str, int], float]:
        """The seconds of each side with each number of workers."""
        taken = {}
        for count in (2, 1):
            self._start()
            for worker in WORKERS[count:]:
                Cluster(self.root).lose(worker)
            if count == len(WORKERS):  # one of them has just been started
                self.ask("theirs")
            taken.update({(side, count): self.ask(side) for side in SIDES})
        return taken

    def ask(self, action: str) -> float:
        """The seconds that a process says an action took."""
        asked = {"root": str(self.root), "action": action, "rows": self.rows}
        there = {"place": self.lake.place, "storage": dict(self.lake.storage)}
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.cluster"],
            cwd=Path(__file__).parent.parent,
            env={**os.environ, "SPARK_REMOTE": remote_of(self.root)},
            check=True,
            input=json.dumps({**asked, **there}),
            stdout=subprocess.PIPE,
            text=True,
        )
        seconds, held = json.loads(done.stdout)
        self.contents.update(held)
        assert len(self.contents) <= 1, f"all must hold the same rows: {self.contents}"
        return float(seconds)

    def _start(self) -> None:
        """Start what of the cluster is not running."""
        up(self.root, kafka=False, needs=SparkNeeds(stores=frozenset({"s3"}), cluster=True))
        wait_until("both workers to have an executor", lambda: len(Cluster(self.root).executors()) == len(WORKERS))


def _act(asked: dict[str, Any]) -> tuple[float, list[str]]:
    """Do what a process is asked for; the seconds that it took, and what it wrote."""
    world = World(root=Path(asked["root"]), servers="").elsewhere(asked["place"], asked["storage"])
    source = f"{asked['place']}/orders"
    if asked["action"] == _MAKE:
        return timed(lambda: make_table(world, source, asked["rows"])), []
    copies = Copies(world, source, Limits(), "auto")
    seconds = copies.ours() if asked["action"] == "ours" else copies.theirs()
    return seconds, [str(each) for each in copies.contents]


if __name__ == "__main__":
    json.dump(_act(json.load(sys.stdin)), sys.stdout)
