"""Views over tables of hundreds of columns follow changes of few rows in seconds."""

from pathlib import Path

import pytest

from tests.support.lake import Lake

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(240)]

COLUMNS = 150


def test_a_wide_table_without_a_key_is_joined_with_itself(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    table = f"delta.`{lake.path('wide')}`"
    columns = ", ".join(f"c{at} {'INT' if at % 2 else 'STRING'}" for at in range(COLUMNS))
    values = ", ".join(f"CAST(id % {at % 7 + 2} AS {'INT' if at % 2 else 'STRING'})" for at in range(COLUMNS))
    options = "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true'"
    query = "SELECT a.*, b.c1 AS other FROM wide a LEFT JOIN wide b ON a.c3 = b.c5 AND a.id = b.id"

    def told(*statements: str) -> None:
        def tell(spark: object) -> None:
            for each in statements:
                spark.sql(each).collect()  # type: ignore[attr-defined]

        lake.project.workspace().runner.run(tell)

    told(
        f"CREATE TABLE {table} (id BIGINT, {columns}) USING delta TBLPROPERTIES({options})",
        f"INSERT INTO {table} SELECT id, {values} FROM range(100)",
    )
    lake.view("joined", query, lake.table("wide"), refresh_mode="incremental")
    lake.project.refresh("joined")
    told(f"UPDATE {table} SET c3 = c3 + 1, c2 = 'zz' WHERE id % 9 = 4", f"DELETE FROM {table} WHERE id % 17 = 4")
    record = lake.project.refresh("joined").report.record
    assert record.rule == "restricted"
    names = ["id", *(f"c{at}" for at in range(COLUMNS)), "other"]
    found = lake.found("joined", names)
    assert found == lake.expected("joined", query, "wide")
    assert found
