"""Many keyed changes of a view in an object store: Spark stages them there, and they are committed."""

from collections import Counter

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets import delta_table, materialized_view
from backfill_assets.app.table_checks import CHECKS
from tests.support.processes import Processes
from tests.support.project import Project
from tests.support.runner import order_of

pytestmark = [pytest.mark.e2e, pytest.mark.full]

QUERY = "SELECT id, v, repeat('x', 200000) AS wide FROM base"
"""Its rows are too large for the planning process to write them."""
JOB = {"refresh": "wide", "query": QUERY}
FEED = {"delta.enableChangeDataFeed": "true"}


def test_updates_and_deletes_of_many_bytes_are_staged_by_spark_and_merged(on_s3: Project, processes: Processes) -> None:
    path = str(on_s3.root / "lake" / "base")
    write_deltalake(path, pa.table({"id": range(300), "v": range(300)}), configuration=FEED)
    order = order_of(on_s3)
    assert processes.run(order, JOB)[0] == 0
    table = DeltaTable(path)
    table.update({"v": "v + 1"}, predicate="id < 250")
    table.delete("id = 299")
    code, said = processes.run(order, JOB, {**JOB, "verify": "wide"})
    assert (code, said[-1]) == (0, dict.fromkeys(CHECKS, True))
    on_s3.declare(materialized_view("wide", query=QUERY, upstreams=[delta_table("base", path=path, primary_key="id")]))
    assert on_s3.record("wide").epoch == 2
    assert on_s3.rows("wide", "id", "v") == Counter((number, number + (number < 250)) for number in range(299))
