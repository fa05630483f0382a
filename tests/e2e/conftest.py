"""What tests share: Spark in this process, a server for the runs that are killed, and a project in an object store."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.azurite import Account, azurite
from tests.support.fake_gcs import fake_gcs
from tests.support.processes import Processes
from tests.support.project import Project, storage_on_s3, warehouse_on_s3
from tests.support.servers import s3_store, spark_remote
from tests.support.settings import ON_A_CLUSTER, PLACE, SPARK
from tests.support.spark_workers import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> "SparkSession":
    """A session in this process. It is not stopped, because tests of whole projects in the same process continue to use
    it."""
    from backfill_assets.adapters.spark.resource import SparkResource
    from backfill_assets.adapters.storage.warehouse import Warehouse

    runner = SparkResource(config=SPARK).runner(Warehouse(uri="/"))
    session: SparkSession = runner.run(lambda session: session)
    runner.close()
    return session


@pytest.fixture(scope="session")
def remote() -> str:
    """A Spark Connect server, with its token, for runs in processes of their own, especially those that are killed."""
    return Cluster.whole().remote if ON_A_CLUSTER else spark_remote()


@pytest.fixture(scope="session", autouse=PLACE != "disk")
def elsewhere(request: pytest.FixtureRequest) -> None:
    """Projects of this process lie in a store, and Spark is a server for it, too."""
    if PLACE == "azure":
        account: Account = request.getfixturevalue("account")
        os.environ |= {"AZURE_TEST_ACCOUNT": account.name, "AZURE_TEST_KEY": account.key}
        os.environ |= {"AZURE_STORAGE_ENDPOINT": account.endpoint}
    elif PLACE == "gcs":
        os.environ |= {"STORAGE_EMULATOR_HOST": request.getfixturevalue("google")}
    else:
        s3: dict[str, str] = request.getfixturevalue("s3")
        os.environ |= {"S3_TEST_KEY": s3["AWS_ACCESS_KEY_ID"], "S3_TEST_SECRET": s3["AWS_SECRET_ACCESS_KEY"]}
    os.environ |= {"SPARK_REMOTE": request.getfixturevalue("remote")}


@pytest.fixture(scope="session")
def account() -> Iterator[Account]:
    """An account of an emulator of Azure's store."""
    with azurite() as made:
        yield made


@pytest.fixture(scope="session")
def google() -> Iterator[str]:
    """The address of an emulator of Google's store."""
    with fake_gcs() as made:
        yield made


@pytest.fixture(scope="session")
def processes(remote: str) -> Processes:
    """Runs of their own, which may be killed."""
    return Processes(remote)


@pytest.fixture(scope="session")
def s3() -> dict[str, str]:
    """The variables of a real S3 server."""
    return s3_store()


@pytest.fixture
def on_s3(s3: dict[str, str], broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project on the broker with its warehouse on S3; the names of its keys are declared, not the keys."""
    monkeypatch.setenv("S3_TEST_KEY", s3["AWS_ACCESS_KEY_ID"])
    monkeypatch.setenv("S3_TEST_SECRET", s3["AWS_SECRET_ACCESS_KEY"])
    return Project(root=tmp_path, servers=broker, warehouse=warehouse_on_s3(), storage=storage_on_s3())
