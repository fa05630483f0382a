"""Delta tables that somebody else writes, and the oracle of views over them; no broker is needed."""

import json
import math
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession

from backfill_assets import delta_table, materialized_view
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.declare.model import DeltaTable, MaterializedView
from backfill_assets.query.ddl import columns_of_delta, ddl
from tests.support.project import Project
from tests.support.settings import FULL, IN_A_STORE, PLACE
from tests.support.statements import ran_by_delta_rs

FEED = {"delta.enableChangeDataFeed": "true"}


class Lake:
    """A project whose views read Delta tables below `lake/`."""

    def __init__(self, root: Path, servers: str = "127.0.0.1:1") -> None:
        self.project = Project(root=root, servers=servers)
        self.root = root / "lake"

    @cached_property
    def spark(self) -> SparkSession:
        """A session like those of the product."""
        session: SparkSession = self.project.workspace().runner.run(lambda spark: spark)
        return session

    def path(self, name: str) -> str:
        """The folder of a table."""
        return str(self.root / name)

    def table(self, name: str, key: str | Sequence[str] | None = "id") -> DeltaTable:
        """A table as declared."""
        return delta_table(name, path=f"lake/{name}", primary_key=key)

    def copy(self, root: Path) -> "Lake":
        """The same tables and views in another folder."""
        shutil.copytree(self.project.root, root, dirs_exist_ok=True)
        made = Lake(root, self.project.servers)
        made.project.declare(*self.project.declared.values())
        return made

    def view(self, name: str, query: str, *upstreams: DeltaTable | MaterializedView, **given: Any) -> MaterializedView:
        """Declare a view."""
        view = materialized_view(name, query=query, upstreams=upstreams, **given)
        self.project.declare(view)
        return view

    def declared(self, view: str) -> MaterializedView:
        """A view as declared."""
        found = self.project.declared[view]
        assert isinstance(found, MaterializedView)
        return found

    def write(
        self, name: str, rows: DataFrame, *, mode: str = "append", by: Sequence[str] = (), **options: str
    ) -> None:
        """Write rows into a table, with the change data feed on by default."""
        writer = rows.write.format("delta").mode(mode).options(**{**FEED, **options})
        (writer.partitionBy(*by) if by else writer).save(self.path(name))

    def append(self, name: str, rows: Iterable[dict[str, Any]] | pa.Table, **options: Any) -> None:
        """Write rows with delta-rs, which takes milliseconds; the feed is on unless `configuration` turns it off."""
        made = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows))
        write_deltalake(self.path(name), made, **{"mode": "append", "configuration": FEED, **options})

    def sql(self, name: str, *statements: str, spark: bool = FULL) -> None:
        """Run statements in which `{t}` stands for a table: all by Spark in the full proof, or where that matters."""
        for statement in statements:
            if spark or not ran_by_delta_rs(self.path(name), statement):
                self.spark.sql(statement.format(t=f"delta.`{self.path(name)}`"))

    def age(self, name: str, *, since: int, days: float) -> None:
        """Make the commits of a table from a version on look as if they had been made this many days ago."""
        then = time.time() - days * 86_400
        for entry in sorted(Path(self.path(name), "_delta_log").glob("*.json"))[since:]:
            actions = [json.loads(line) for line in entry.read_text().splitlines()]
            for action in actions:
                action.get("commitInfo", {})["timestamp"] = int(then * 1000)
            entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)  # Spark's checksum of the file
            entry.write_text("\n".join(map(json.dumps, actions)))
            os.utime(entry, (then, then))

    def expected(self, view: str, query: str, *names: str, columns: Sequence[str] = ("*",)) -> Counter[tuple[Any, ...]]:
        """The query over these columns of tables (or views) at the versions in the view's position: the oracle."""
        position = self.project.record(view).position
        assert isinstance(position, SnapshotPosition)
        for name in names:
            declared = self.project.declared.get(name)
            path = self.path(name) if declared is None else self.location(name)
            self.rows(path, position.tables[name].version).select(*columns).createOrReplaceTempView(name)
        return Counter(tuple(map(_comparable, row)) for row in self.spark.sql(query).collect())

    def found(self, view: str, columns: Sequence[str]) -> Counter[tuple[Any, ...]]:
        """The rows of the view."""
        rows = self.rows(self.location(view)).selectExpr(*columns)
        return Counter(tuple(map(_comparable, row)) for row in rows.collect())

    def shown(self, view: str) -> Counter[tuple[Any, ...]]:
        """The rows of the view, without hidden columns."""
        names = [name for name in self.rows(self.location(view)).columns if not name.startswith("__")]
        return self.found(view, [f"`{name}`" for name in names])

    def passes(self, view: str, checks: Iterable[str]) -> None:
        """See that these checks of the view pass."""
        for check in checks:
            outcome = self.project.check(view, check)
            assert outcome.passed, (check, outcome)

    def rows(self, path: str, version: int | None = None) -> DataFrame:
        """A table's rows at a version, read by delta-rs if possible, so not by the product's reader."""
        options = dict(self.project.workspace().store.place.storage_options) if "://" in path else None
        table = deltalake.DeltaTable(path, version=version, storage_options=options)
        plain = table.protocol().min_reader_version == 1 and not table.metadata().partition_columns
        features = set(table.protocol().reader_features or ())
        if plain or features == {"timestampNtz"}:
            rows = table.to_pyarrow_table()
            return self.spark.createDataFrame(
                rows, None if len(rows) else ddl(columns_of_delta(table.schema().to_json()))
            )
        reader = self.spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(path)

    def location(self, view: str) -> str:
        """The folder of a view."""
        warehouse = self.project.warehouse if PLACE in IN_A_STORE else self.project.root / "warehouse"
        return f"{warehouse}/{self.project.declared[view].target}"


def _comparable(value: object) -> object:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
