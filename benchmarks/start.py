"""The first refresh of a process with a Spark of its own, and servers that start, with the archive of Spark's classes and
without."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from backfill_assets.adapters.local import spark_cluster
from backfill_assets.adapters.local.servers import SparkNeeds, down, up
from backfill_assets.adapters.runtime import spark_conf
from backfill_assets.app.warm_up import archive_classes, create_views
from benchmarks.measure import Comparison, in_turns, timed
from benchmarks.world import World

__all__ = ["run"]

WITHOUT = "without"
VIEWS, SERVER, CLUSTER = "views", "server", "cluster"
QUERIES = {
    "plain": "SELECT id, amount FROM base WHERE amount > 3",
    "grouped": "SELECT id % 3 AS part, count(*) AS n, max(amount) AS most FROM base GROUP BY id % 3",
    "joined": "SELECT x.id, sum(y.amount) AS total FROM base x JOIN base y ON x.id = y.id + 1 GROUP BY x.id",
}
CASES = {
    "three small views created, whole process": VIEWS,
    "a Spark server started and stopped": SERVER,
    "a Spark server and its cluster started and stopped": CLUSTER,
}


def run(_world: World, *, repetitions: int = 5) -> Iterator[Comparison]:
    """Each side is a process that creates three views over a table of ten rows and lets them follow it, or starts servers."""
    archive_classes()
    for case, what in CASES.items():
        ours, theirs = in_turns(
            partial(timed, partial(_process, what)),
            partial(timed, partial(_process, what, WITHOUT)),
            repetitions=repetitions,
            warmups=1,
        )
        yield Comparison(benchmark="start", case=case, peer="without the archive", rows=0, ours=ours, theirs=theirs)


def _process(*arguments: str) -> None:
    here = Path(__file__).parent.parent
    subprocess.run([sys.executable, "-m", "benchmarks.start", *arguments], cwd=here, capture_output=True, check=True)


def _servers(place: Path, *, cluster: bool) -> None:
    try:
        up(place, kafka=False, spark=True, needs=SparkNeeds(cluster=cluster))
    finally:
        down(place)


if __name__ == "__main__":
    if WITHOUT in sys.argv:
        for module in (spark_conf, spark_cluster):
            vars(module)["archive_options"] = lambda: ""
    with tempfile.TemporaryDirectory(prefix="backfill-") as place:
        if VIEWS in sys.argv:
            create_views(Path(place), QUERIES)
        else:
            _servers(Path(place), cluster=CLUSTER in sys.argv)
