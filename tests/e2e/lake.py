"""Delta tables that somebody else writes, and the oracle of views over them; no broker is needed."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from backfill_assets.backfill.positions import SnapshotPosition
from tests.e2e.project import Project

FEED = {"delta.enableChangeDataFeed": "true"}


class Lake:
    """A project whose views read Delta tables below `lake/`."""

    def __init__(self, root: Path) -> None:
        self.project = Project(root=root, servers="127.0.0.1:1")
        self.root = root / "lake"

    @property
    def spark(self) -> SparkSession:
        """The session that the product works with."""
        session: SparkSession = self.project.workspace().runner.run(lambda spark: spark)
        return session

    def path(self, name: str) -> str:
        """Where a table lies."""
        return str(self.root / name)

    def write(
        self, name: str, rows: DataFrame, *, mode: str = "append", by: Sequence[str] = (), **options: str
    ) -> None:
        """Write rows into a table, with the change data feed on unless told otherwise."""
        writer = rows.write.format("delta").mode(mode).options(**{**FEED, **options})
        (writer.partitionBy(*by) if by else writer).save(self.path(name))

    def sql(self, name: str, statement: str) -> None:
        """Run a statement in which `{t}` stands for a table."""
        self.spark.sql(statement.format(t=f"delta.`{self.path(name)}`"))

    def expected(self, view: str, query: str, name: str) -> Counter[tuple[Any, ...]]:
        """The query over one table at the version that the view has recorded: the oracle."""
        position = self.project.record(view).position
        assert isinstance(position, SnapshotPosition)
        version = position.tables[name].version
        rows = self.spark.read.format("delta").option("versionAsOf", version).load(self.path(name))
        rows.createOrReplaceTempView(name)
        return Counter(tuple(row) for row in self.spark.sql(query).collect())

    def found(self, view: str, columns: Sequence[str]) -> Counter[tuple[Any, ...]]:
        """The view's rows, read by Spark."""
        location = self.project.workspace().table(self.project.declared[view]).output.location
        rows = self.spark.read.format("delta").load(location.uri).select(*columns)
        return Counter(tuple(row) for row in rows.collect())
