"""What Spark is told to read of a topic."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from backfill_assets.adapters.compute import source_compute
from backfill_assets.adapters.compute.source_compute import SourceReader, kafka_rows
from backfill_assets.adapters.sql import kafka_records
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.progress.reads import KafkaRead


class Reader:
    """Records the options of a read."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    def format(self, name: str) -> "Reader":
        return self.option("format", name)

    def options(self, **given: str) -> "Reader":
        self.given.update(given)
        return self

    def option(self, name: str, value: str) -> "Reader":
        self.given[name] = value
        return self

    def load(self) -> str:
        return "rows"


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_just_the_offsets_of_a_plan_are_read_with_the_isolation_that_is_declared(
    isolation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_compute, "tasks_for", lambda _spark, rows: rows)
    monkeypatch.setattr(kafka_records, "parse_records", lambda rows, **_: rows)
    ranges = {0: OffsetRange(start=3, end=7), 2: OffsetRange(start=5, end=5), 4: OffsetRange(start=0, end=2)}
    read = KafkaRead(source="orders", topic="t", isolation=isolation, ranges=ranges)
    source = SourceReader(
        name="orders",
        columns=(),
        bronze_columns=(),
        record_format="json",
        kafka_options=lambda: {"kafka.bootstrap.servers": "here:1"},
        bronze=TableLocation(uri="none"),
    )
    spark: Any = SimpleNamespace(read=Reader())
    found: Any = kafka_rows(spark, read, source)
    assert found == "rows"
    given = {name: json.loads(value) if value.startswith("{") else value for name, value in spark.read.given.items()}
    assert given == {
        "format": "kafka",
        "kafka.bootstrap.servers": "here:1",
        "assign": {"t": [0, 4]},
        "startingOffsets": {"t": {"0": 3, "4": 0}},
        "endingOffsets": {"t": {"0": 7, "4": 2}},
        "kafka.isolation.level": isolation,
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        "minPartitions": "6",
    }
