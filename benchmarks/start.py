"""The first refresh of a process with a Spark of its own, with the archive of Spark's classes and without."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from backfill_assets.adapters.runtime import spark_conf
from backfill_assets.app.warm_up import archive_classes, create_views
from benchmarks.measure import Comparison, in_turns, timed
from benchmarks.world import World

__all__ = ["run"]

WITHOUT = "without"


def run(_world: World, *, repetitions: int = 5) -> Iterator[Comparison]:
    """Each side is a process that creates three views over a table of ten rows, and lets them follow it."""
    archive_classes()
    taken = in_turns(
        lambda: timed(_process),
        lambda: timed(lambda: _process(WITHOUT)),
        repetitions=repetitions,
        warmups=1,
    )
    yield Comparison(
        benchmark="start",
        case="three small views created, whole process",
        peer="without the archive",
        rows=0,
        ours=taken[0],
        theirs=taken[1],
    )


def _process(*arguments: str) -> None:
    here = Path(__file__).parent.parent
    subprocess.run([sys.executable, "-m", "benchmarks.start", *arguments], cwd=here, capture_output=True, check=True)


if __name__ == "__main__":
    if WITHOUT in sys.argv:
        vars(spark_conf)["archive_options"] = lambda: ""
    with tempfile.TemporaryDirectory(prefix="backfill-") as place:
        create_views(Path(place))
