"""Runs on a Spark whose tasks are done by the workers of a cluster, over a warehouse in an object store."""

from collections.abc import Iterator

import pytest

from backfill_assets.adapters.local.servers import down
from tests.support.processes import Processes
from tests.support.project import Project
from tests.support.servers import cluster_folder
from tests.support.settings import FULL
from tests.support.spark_workers import Cluster


@pytest.fixture(scope="module", autouse=not FULL)
def stopped() -> Iterator[None]:
    """In the gate, other tests need the memory when those of a module have ended."""
    yield
    down(cluster_folder())


@pytest.fixture
def cluster() -> Cluster:
    """A master and two workers, each with an executor."""
    return Cluster.whole()


@pytest.fixture
def runs(on_s3: Project, cluster: Cluster) -> Processes:
    """Runs of their own on the cluster, which find the store's keys in their environment."""
    assert on_s3.storage
    return Processes(cluster.remote)
