"""Spark's own writer beside the epochs of a table on S3: with Delta's log store for one driver it may replace a commit."""

import json
import os
import threading

import pytest
from deltalake import Schema
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from backfill_assets.adapters.delta.created_table import create_table
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.core.epoch.records import CommitKind
from tests.e2e.stores.test_s3_faults import opened, rows, stage
from tests.support.outputs import SCHEMA, TARGET, commit, record
from tests.support.over_connect import over_connect
from tests.support.project import Project

pytestmark = [pytest.mark.e2e, pytest.mark.full]

ROUNDS, MOST = 5, 15
"""After so many epochs there are no more: Spark gives way to a writer that never rests."""


def committed(output: DeltaOutput, life: str, epoch: int) -> bool:
    """Commit an epoch with a row of its number, unless another writer has come first."""
    attempt = os.urandom(4).hex()
    try:
        commit(output, record(CommitKind.EPOCH, life, epoch, attempt), stage(output, epoch, [epoch], attempt))
    except CommitFailedError:
        return False
    return True


def rounds_noticed(uri: str, storage: str) -> int:
    """In how many rounds it was noticed that Spark had written among epochs."""
    warehouse = Warehouse(uri=uri, storage_options=json.loads(storage))
    create_table(warehouse.table(TARGET), Schema.from_arrow(SCHEMA).to_json())
    runner = SparkResource().runner(warehouse)
    try:
        spark: SparkSession = runner.run(lambda made: made)
        return sum(is_noticed(warehouse, spark, turn) for turn in range(ROUNDS))
    finally:
        runner.close()


def is_noticed(warehouse: Warehouse, spark: SparkSession, turn: int) -> bool:
    """Whether a row that Spark writes, while epochs are committed, is in the table and known as a stranger's."""
    output = opened(warehouse.table(TARGET))
    life, epochs = f"{turn:08x}", 0
    commit(output, record(CommitKind.CREATE, life, 0))
    assert output.look().external is None
    append = spark.range(-1, 0).write.format("delta").mode("append").save
    rival = threading.Thread(target=append, args=(output.location.uri,))
    rival.start()
    while rival.is_alive() and output.look().external is None:
        epochs += epochs < MOST and committed(output, life, epochs + 1)
    rival.join()
    found = output.look().external
    assert -1 in rows(output)
    return found is not None and opened(warehouse.table(TARGET)).look().external == found


def test_what_spark_writes_among_epochs_is_noticed_even_where_it_replaces_one(on_s3: Project, remote: str) -> None:
    place = on_s3.workspace().store.place
    assert over_connect(remote, rounds_noticed, place.uri, json.dumps(dict(place.storage_options))) == ROUNDS
