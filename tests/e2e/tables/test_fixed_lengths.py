"""Columns of type CHAR: Spark pads what they are compared with, in a view as in a table that it reads itself."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.core.epoch.limits import Limits
from tests.support.lake import Lake
from tests.support.settings import FULL, one_in_gate

pytestmark = pytest.mark.e2e

TABLE = (
    "CREATE TABLE {t} (id BIGINT, code CHAR(5)) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO {t} VALUES (3, 'a'), (4, 'c')",
)
QUERY = "SELECT id, code FROM base WHERE code = 'a' OR code IN ('c', 'd')"
GROUPED = "SELECT code, count(*) AS n FROM base WHERE code < 'b' GROUP BY code"
VIEWS = {"rows": QUERY, "groups": GROUPED} if FULL else {"rows": QUERY}


@pytest.mark.parametrize("strategy", one_in_gate("rearranged", "snapshot", "arrangement"))
def test_text_of_a_fixed_length_is_compared_as_spark_compares_it(tmp_path: Path, strategy: Any) -> None:
    lake = Lake(tmp_path)
    lake.sql("base", *TABLE, spark=True)  # which pads the texts that it writes
    for name, query in VIEWS.items():
        lake.view(name, query, lake.table("base"), strategy=strategy)
        lake.project.refresh(name, Limits(chunk_rows=1, max_rows=1))
    changes = "UPDATE {t} SET code = 'a' WHERE id = 2", "DELETE FROM {t} WHERE id = 3"
    lake.sql("base", *changes, spark=True)
    for name, query in VIEWS.items():
        # What changed waits, captured by `rearranged`, until history is read.
        assert not lake.project.refresh(name, Limits(chunk_rows=1, max_rows=1)).report.record.live
        assert lake.project.refresh(name).report.record.live
        wanted = lake.spark.sql(query.replace("base", f"delta.`{lake.path('base')}`"))
        assert lake.found(name, wanted.columns) == Counter(map(tuple, wanted.collect())) != Counter()
        assert lake.project.check(name).passed
