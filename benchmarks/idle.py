"""`backfill refresh NAME` as a command when there is nothing new, against a Structured Streaming job as a command.

Both start a Python of their own, find the newest offsets, see that they have all of them, and end.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Comparison, in_turns, timed
from benchmarks.stream import stream_of_topic, to_end, view_of
from benchmarks.world import QUERY, SCHEMA, World, declared_over

__all__ = ["run"]

ROWS = 1_000
COMMAND = "from backfill_assets.cli.commands import main; main()"
"""What the script `backfill` does."""


def run(world: World, *, repetitions: int = 5) -> Iterator[Comparison]:
    """Nothing is new in any of the repetitions; the tables are filled before."""
    topic = world.topic()
    world.produce(topic, ROWS)
    with world.folder() as folder:
        ours, theirs = folder / "ours", folder / "theirs"
        _project(ours, topic)
        for name in ("orders", "large"):
            world.refresh(ours, declared_over(topic), name)
        command = [sys.executable, "-c", COMMAND, "refresh", "large", "--json"]
        peer = [sys.executable, "-m", "benchmarks.idle", world.servers, topic, str(theirs)]
        to_end(view_of(stream_of_topic(world, topic)), theirs)
        taken = in_turns(
            lambda: timed(lambda: _call(command, ours, world.servers)),
            lambda: timed(lambda: _call(peer, folder, world.servers)),
            repetitions=repetitions,
            warmups=0,
        )
    yield Comparison(
        benchmark="idle",
        case="nothing new, whole command",
        peer="availableNow job as a command",
        rows=0,
        ours=taken[0],
        theirs=taken[1],
    )


def _project(folder: Path, topic: str) -> None:
    folder.mkdir()
    (folder / "definitions.py").write_text(
        "from backfill_assets import build_definitions, kafka_source, materialized_view\n"
        f"orders = kafka_source('orders', topic={topic!r}, schema={SCHEMA!r})\n"
        f"large = materialized_view('large', query={QUERY!r}, upstreams=[orders])\n"
        "defs = build_definitions(orders, large)\n"
    )


def _call(command: list[str], folder: Path, servers: str) -> None:
    here = str(Path(__file__).parent.parent)
    named = {"KAFKA_BOOTSTRAP_SERVERS": servers, "DAGSTER_HOME": str(folder), "PYTHONPATH": here}
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BACKFILL_", "SPARK_"))}
    done = subprocess.run(command, cwd=folder, env=environment | named, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def _peer(servers: str, topic: str, folder: str) -> None:
    """The job of the other side."""
    to_end(view_of(stream_of_topic(World(root=Path(folder), servers=servers), topic)), Path(folder))


if __name__ == "__main__":
    _peer(*sys.argv[1:])
