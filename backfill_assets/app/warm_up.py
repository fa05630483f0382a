"""A small pipeline whose only use is that Spark loads the classes that every refresh needs, so that they can be archived.

`make_class_archive` runs it in a process of its own: `python -m backfill_assets.app.warm_up`.
"""

import sys
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from backfill_assets.adapters.kafka.connector import KafkaConnector
from backfill_assets.adapters.runtime.class_archive import make_class_archive
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.state.state_store import StateStore
from backfill_assets.app.refresh import refresh
from backfill_assets.app.table_checks import run_check
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.declare.declarations import delta_table, materialized_view

__all__ = ["archive_classes", "create_views"]

_WIDEST = {
    "joined": "SELECT x.id, sum(y.amount) AS total FROM base x JOIN base y ON x.id = y.id + 1 WHERE x.id > 3 GROUP BY x.id"
}
"""Other queries hardly load other classes."""


def archive_classes() -> Path:
    """Make the archive of Spark's classes for this Java runtime and this Spark, unless it is there.

    Returns:
        The archive's place, in the Python environment.

    Raises:
        EnvironmentSetupError: Spark does not start here.
    """
    return make_class_archive(("-m", "backfill_assets.app.warm_up"))


def create_views(folder: Path, queries: Mapping[str, str] = _WIDEST) -> None:
    """Create small views over a table in a folder, by their names and queries over `base` (id, amount); let them follow it
    once, and check the last one."""
    base = delta_table("base", path=str(folder / "base"), primary_key=["id"])
    views = [materialized_view(name, query=query, upstreams=[base]) for name, query in queries.items()]
    workspace = Workspace(
        declared={each.name: each for each in views},
        store=StateStore(root=str(folder), warehouse="warehouse", storage={"provider": "local"}),
        kafka=KafkaConnector(bootstrap_servers="127.0.0.1:1", root=str(folder)),
        spark=SparkResource(root=str(folder)),
    )
    for start in (0, 10):
        rows = pa.table({"id": range(start, start + 10), "amount": range(start, start + 10)})
        write_deltalake(str(folder / "base"), rows, mode="append", configuration={"delta.appendOnly": "true"})
        for view in views:
            refresh(workspace, view.name, Limits(), run_id=uuid.uuid4().hex)
    run_check(workspace, views[-1].name, "exactly_once", full=True, seed=None)


def _end_java() -> int:
    """Let the Java process of this one end, which then writes the archive; returns its exit code."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    assert gateway is not None
    process = gateway.proc
    gateway.shutdown()
    process.stdin.close()
    return int(process.wait())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="backfill-") as place:
        create_views(Path(place))
        sys.exit(_end_java())
