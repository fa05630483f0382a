"""Values that Python does not have, as texts that are not UTF-8 and dates after 9999: what is wrong is told all the same."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.proof.file_statistics import MAX_VIOLATIONS
from backfill_assets.adapters.sql.named_rows import named_rows
from backfill_assets.errors import DuplicateKeyError
from tests.support.damage import misstate, take_out
from tests.support.lake import Lake
from tests.support.over_connect import over_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

ROWS = (
    "SELECT IF(id = 0, CAST(X'61C3' AS STRING), CAST(id AS STRING)) AS k, "
    "IF(id = 0, DATE'+10000-01-01', DATE'2026-01-01') AS d, id AS n FROM range(0, 6, 1, 1)"
)
FEED = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"


def told(root: str) -> dict[str, Any]:
    """What is told of a lost row, and of a second row with its key."""
    lake = Lake(Path(root))
    lake.sql("base", f"CREATE TABLE {{t}} USING delta {FEED} AS {ROWS}")
    lake.view("odd", "SELECT k, d, n FROM base", lake.table("base", key="k"))
    lake.view("ranges", "SELECT k, n FROM base", lake.table("base", key="k"), strategy="arrangement")
    for view in ("odd", "ranges"):
        lake.project.refresh(view)
    numbers = Counter(DeltaTable(lake.location("ranges")).to_pyarrow_table(columns=["n"])["n"].to_pylist())
    (file,) = DeltaTable(lake.location("odd")).file_uris()
    path = Path(unquote(urlsplit(file).path))
    before = take_out(path, pc.field("n") == 0)
    lost = lake.project.check("odd", "exactly_once")
    path.write_bytes(before)
    lake.sql("base", "INSERT INTO {t} SELECT CAST(X'61C3' AS STRING), DATE'+10000-01-01', 100")
    try:
        lake.project.refresh("odd")
    except DuplicateKeyError as error:
        keys = error.facts["keys"]
    return {"passed": lost.passed, "violations": lost.violations, "keys": keys, "numbers": sorted(numbers.elements())}


def assert_told(found: dict[str, Any], key: str) -> None:
    assert not found["passed"]
    (violation,) = found["violations"]
    assert violation.items() >= {"violation": "missing", "rows": 1, "d": "+10000-01-01"}.items()
    assert (violation["k"], int(violation["n"])) == (key, 0)
    assert [each[0] for each in found["keys"]] == [key]
    assert found["numbers"] == list(range(6)), "a keyed scan reads them, too"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("DATE'+10000-01-01'", "+10000-01-01"),
        ("DATE'-0001-01-01'", "-0001-01-01"),
        ("TIMESTAMP'+10000-01-01 00:00:00'", "+10000-01-01 00:00:00"),
        ("array(DATE'+10000-01-01')", "[+10000-01-01]"),
    ],
)
def test_rows_are_named_as_spark_writes_them_where_python_has_no_such_value(
    spark: "SparkSession", value: str, text: str
) -> None:
    (row,) = named_rows(spark.sql(f"SELECT {value} AS v, 1 AS n, 2 AS rows"), kept=("rows",))
    assert row.asDict() == {"v": text, "n": "1", "rows": 2}


def test_what_is_wrong_with_odd_values_is_told_over_spark_connect(tmp_path: Path, remote: str) -> None:
    assert_told(over_connect(remote, told, tmp_path), "X'61C3'")


@pytest.mark.full
def test_what_is_wrong_with_odd_values_is_told_in_process(tmp_path: Path) -> None:
    found = told(str(tmp_path))
    assert found["keys"][0][0] in {"X'61C3'", "a�"}, "a text alone is replaced by Spark"
    assert_told({**found, "keys": [["X'61C3'"]]}, "X'61C3'")


ODD_NAMES = [
    "null",
    "current_date",
    "left",
    "rows",
    "file",
    "deleted",
    "stats",
    "low0",
    "it's",
    "a`b",
    "back\\slash",
    'a"b',
    "Größe",
]


def test_a_wrong_bound_is_found_whatever_the_name_of_its_column(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append("base", [dict.fromkeys(ODD_NAMES, number) for number in range(3)])
    lake.view("odd", "SELECT * FROM base", lake.table("base", key="null"))
    lake.project.refresh("odd")
    assert lake.project.check("odd", "rows_conserved").passed

    def lowered(stats: dict[str, Any]) -> None:
        stats["maxValues"] = {name: least for name, least in stats["minValues"].items() if name in ODD_NAMES}

    path = misstate(lake.project, "odd", lowered)
    found = lake.project.check("odd", "rows_conserved").violations
    said = [f"the log states of file {path}, a maximum of {name}: 0, it holds 2" for name in ODD_NAMES]
    assert found == sorted(said)[:MAX_VIOLATIONS]
    assert len(said) > MAX_VIOLATIONS
