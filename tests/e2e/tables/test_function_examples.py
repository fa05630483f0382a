"""The examples that Spark has for its functions: each is accepted in a view, or refused for what the function does."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets import delta_table, materialized_view
from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import Column
from backfill_assets.query.query import analyze

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.full]

TABLE = delta_table("t", path="t", primary_key="id")
COLUMNS = (Column("id", "BIGINT"),)
_CHANCE = """
aes_encrypt curdate current_catalog current_database current_date current_path current_schema current_time
current_timestamp current_timezone current_user input_file_block_length input_file_block_start input_file_name
java_method localtimestamp monotonically_increasing_id now rand randn random randstr reflect session_user shuffle
spark_partition_id try_reflect uniform unix_timestamp user uuid version
"""
CHANCE = frozenset(_CHANCE.split())
_ORDER = """
any_value approx_percentile array_agg collect_list collect_set count_min_sketch first first_value histogram_numeric
last last_value listagg max_by min_by mode percentile_approx schema_of_variant_agg string_agg
"""
ORDER = frozenset(_ORDER.split())
OTHERS = {
    "collations": "UNSUPPORTED",
    "collate": "UNSUPPORTED",
    "measure": "UNKNOWN_UPSTREAM",
    "python_worker_logs": "UNSUPPORTED",
    "sql_keywords": "ORDER_NOT_TOTAL",
}


def _examples(spark: "SparkSession") -> Iterator[tuple[str, str]]:
    jvm: Any = spark._jvm
    for info in jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos():
        for example in re.findall(r"> (SELECT.*?);\n", info.getExamples(), re.DOTALL):
            yield info.getName(), example


def _refused(example: str) -> str:
    """The reason for which a query with an example in a subquery is refused; empty if it is not."""
    try:
        view = materialized_view("v", query=f"SELECT t.id, s.* FROM t, ({example}) AS s", upstreams=[TABLE])
        analyze(view.text, {"t": COLUMNS}, {"t": ("id",)})
    except QueryError as error:
        return str(error.reason)
    return ""


def test_only_functions_of_chance_and_of_the_order_of_rows_are_refused(spark: "SparkSession") -> None:
    found = [(name, _refused(example), example) for name, example in _examples(spark)]
    reasons = {
        **OTHERS,
        **dict.fromkeys(CHANCE, "NOT_DETERMINISTIC"),
        **dict.fromkeys(ORDER, "ORDER_DEPENDENT"),
        # Names of columns that Delta does not accept are made of their arguments.
        "to_timestamp": "COLUMN_NAME",
    }
    wrong = [
        each
        for each in found
        if each[1] not in {"", reasons.get(each[0])}
        and not (each[1] == "ORDER_DEPENDENT" and re.match("approx_top_k|hll_|kll_|theta_|tuple_", each[0]))
    ]
    assert wrong == []
    assert len(found) > 1_000
    assert {name for name, reason, _ in found if reason} >= CHANCE | ORDER
