"""Spark's own writer beside the epochs of a table on S3: with Delta's log store for one driver it may replace a commit."""

import os
import threading

import pytest
from deltalake import Schema
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from backfill_assets.adapters.delta.created_table import create_table
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.core.epoch.records import CommitKind
from tests.e2e.stores.test_s3_faults import opened, rows, stage
from tests.support.outputs import SCHEMA, TARGET, commit, record
from tests.support.project import Project

pytestmark = [pytest.mark.e2e, pytest.mark.full]

ROUNDS, MOST = 5, 15
"""After so many epochs there are no more: Spark gives way to a writer that never rests."""


@pytest.fixture
def spark(on_s3: Project, remote: str, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """A session of the server that reaches the warehouse."""
    monkeypatch.setenv("SPARK_REMOTE", remote)
    session: SparkSession = on_s3.workspace().runner.run(lambda made: made)
    return session


def committed(output: DeltaOutput, life: str, epoch: int) -> bool:
    """Commit an epoch with a row of its number, unless another writer has come first."""
    attempt = os.urandom(4).hex()
    try:
        commit(output, record(CommitKind.EPOCH, life, epoch, attempt), stage(output, epoch, [epoch], attempt))
    except CommitFailedError:
        return False
    return True


def test_what_spark_writes_among_epochs_is_noticed_even_where_it_replaces_one(
    on_s3: Project, spark: SparkSession
) -> None:
    location = on_s3.workspace().store.place.table(TARGET)
    create_table(location, Schema.from_arrow(SCHEMA).to_json())
    output = opened(location)
    for turn in range(ROUNDS):
        life, epochs = f"{turn:08x}", 0
        commit(output, record(CommitKind.CREATE, life, 0))
        assert output.look().external is None
        append = spark.range(-1, 0).write.format("delta").mode("append").save
        rival = threading.Thread(target=append, args=(location.uri,))
        rival.start()
        while rival.is_alive() and output.look().external is None:
            epochs += epochs < MOST and committed(output, life, epochs + 1)
        rival.join()
        found = output.look()
        assert found.external is not None, "what Spark wrote is in the table, and nobody has noticed"
        assert -1 in rows(output)
        assert opened(on_s3.workspace().store.place.table(TARGET)).look().external == found.external
