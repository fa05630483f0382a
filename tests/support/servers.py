"""The servers (broker, Spark, S3) that all processes of a test run share, and that end with it in all cases.

The first process of the run starts a guard, `python -m tests.support.servers FOLDER`, and holds the other end of its
standard input. This is closed when the process ends, even by a kill, and then the guard stops the servers of the
folder.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.settings import PLACE

if TYPE_CHECKING:
    from backfill_assets.adapters.local.servers import Endpoints

__all__ = ["FOLDER", "Guard", "cluster_folder", "cluster_root", "remote_of", "s3_store", "servers", "spark_remote"]

FOLDER = "BACKFILL_TEST_SERVERS"
"""The environment variable with the folder in which the servers' addresses are stored, for all processes of a run."""
_CLUSTER = "cluster"
_STORES = frozenset({PLACE if PLACE in {"azure", "gcs"} else "s3"})
"""The providers of the stores that the run's Spark server reaches."""


class Guard:
    """Stops the servers of a test run when the process that created it ends."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="backfill-servers-")
        os.environ[FOLDER] = self.folder  # processes of the same run inherit it
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, self.folder],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            start_new_session=True,  # it outlives a run whose process group is killed
        )

    def close(self) -> None:
        """Stop the servers and wait until they are gone."""
        self._process.communicate()
        del os.environ[FOLDER]


def servers(*, kafka: bool = False, spark: bool = False, s3: bool = False) -> "Endpoints":
    """The run's servers; requested servers that are not running are started."""
    from backfill_assets.adapters.local.servers import SparkNeeds, up

    return up(Path(os.environ[FOLDER]), kafka=kafka, spark=spark, s3=s3, needs=SparkNeeds(stores=_STORES))


def s3_store() -> dict[str, str]:
    """The variables of the run's S3 server."""
    from backfill_assets.adapters.local.servers import s3_variables

    servers(s3=True)
    return dict(s3_variables(Path(os.environ[FOLDER])))


def spark_remote() -> str:
    """The address of the run's Spark server, with its token, in the form of SPARK_REMOTE."""
    servers(spark=True)
    return remote_of(Path(os.environ[FOLDER]))


def remote_of(root: Path) -> str:
    """The same of the Spark server that runs for a project."""
    from backfill_assets.adapters.local.servers import endpoints, spark_token
    from backfill_assets.adapters.spark.session import Remote

    running = endpoints(root)
    assert running is not None
    assert running.spark_remote is not None
    return Remote(url=running.spark_remote, token=spark_token(root)).full


def cluster_folder() -> Path:
    """Where the run's Spark cluster is, or would be."""
    return Path(os.environ[FOLDER]) / _CLUSTER


def cluster_root() -> Path:
    """Where the run's Spark cluster is; what of it is not running is started."""
    from backfill_assets.adapters.local.servers import SparkNeeds, up

    root = cluster_folder()
    up(root, kafka=False, needs=SparkNeeds(stores=frozenset({"s3"}), cluster=True))
    return root


def _guard(folder: Path) -> None:
    sys.stdin.read()
    if any(folder.iterdir()):
        from backfill_assets.adapters.local.servers import down

        for root in (folder / _CLUSTER, folder):
            down(root)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _guard(Path(sys.argv[1]))
