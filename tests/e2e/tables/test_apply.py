"""Row-wise queries on real Spark: their rows, and that Spark accepts what sqlglot accepted."""

import re
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.adapters.compute.no_rows import no_rows
from backfill_assets.adapters.proof.tables import view_difference
from backfill_assets.adapters.sql.apply_relational import apply_relational, numbered
from backfill_assets.adapters.sql.apply_rowwise import apply_rowwise
from backfill_assets.declare.model import ERROR_COLUMNS, METADATA_COLUMNS
from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import Column, ddl, parse_schema
from backfill_assets.query.fragments import placed
from backfill_assets.query.functions import REFUSED_FUNCTIONS
from backfill_assets.query.relational import COPY, ROW_HASH, analyze_relational
from backfill_assets.query.rowwise import analyze_rowwise
from backfill_assets.query.spark_functions import SPARK_FUNCTIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.e2e

OF_ITS_GRAMMAR = {"timestampadd", "timestampdiff", "try_cast"}
WHEN = datetime(2024, 1, 2, 3, 4, 5)


def bronze_columns(schema: str) -> tuple[Column, ...]:
    return (*METADATA_COLUMNS, *parse_schema(schema), *ERROR_COLUMNS)


ORDERS = bronze_columns(
    "a INT, x STRING, at TIMESTAMP, ns ARRAY<INT>, st STRUCT<P: STRUCT<q: INT>>, m MAP<STRING, INT>"
)
ITEMS = bronze_columns("big LONG, c STRING")
BOTH = {"orders": ORDERS, "items": ITEMS}


def orders(spark: "SparkSession") -> "DataFrame":
    """Two good records and a bad one."""
    nothing = (None,) * 6
    rows = [
        (0, 0, WHEN, None, None, 1, "aa", WHEN, [1, 2], ((7,),), {"k": 5}, None, None),
        (1, 5, WHEN, None, None, 2, "b", WHEN, [], None, None, None, None),
        (1, 6, WHEN, None, None, *nothing, "the value is empty", b""),
    ]
    return spark.createDataFrame(rows, ddl(ORDERS))


def items(spark: "SparkSession") -> "DataFrame":
    return spark.createDataFrame([(2, 9, WHEN, None, None, 5_000_000_000, "c", None, None)], ddl(ITEMS))


def bag(rows: "DataFrame") -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in rows.collect())


def test_good_records_come_with_the_hidden_key(spark: "SparkSession") -> None:
    query = analyze_rowwise("SELECT A + 1 AS n, X FROM Orders o WHERE o.a > 0 -- good ones", {"orders": ORDERS})
    rows = apply_rowwise(query, {"orders": orders(spark)})
    assert rows.columns == ["n", "x", "__partition", "__offset"]
    assert bag(rows) == Counter([(2, "aa", 0, 0), (3, "b", 1, 5)])


def test_a_star_is_every_column_that_users_see(spark: "SparkSession") -> None:
    query = analyze_rowwise("SELECT * EXCEPT (_headers, _key, ns, st, m, at) FROM orders", {"orders": ORDERS})
    rows = apply_rowwise(query, {"orders": orders(spark)})
    assert rows.columns == ["_partition", "_offset", "_timestamp", "a", "x"]
    assert bag(rows) == Counter([(0, 0, WHEN, 1, "aa"), (1, 5, WHEN, 2, "b")])


def test_swapped_key_names_do_not_swap_the_hidden_key(spark: "SparkSession") -> None:
    query = analyze_rowwise("SELECT _offset AS _partition, _partition AS _offset FROM orders", {"orders": ORDERS})
    assert bag(apply_rowwise(query, {"orders": orders(spark)})) == Counter([(0, 0, 0, 0), (5, 1, 1, 5)])


UNION = "SELECT a AS n, x FROM orders UNION ALL (SELECT big, c FROM items UNION ALL SELECT -a, 'neg' FROM orders)"


def test_a_union_goes_by_position_and_takes_the_wider_type(spark: "SparkSession") -> None:
    rows = apply_rowwise(analyze_rowwise(UNION, BOTH), {"orders": orders(spark), "items": items(spark)})
    assert rows.dtypes[:3] == [("n", "bigint"), ("x", "string"), ("__branch", "int")]
    assert bag(rows) == Counter([
        (1, "aa", 0, 0, 0),
        (2, "b", 0, 1, 5),
        (5_000_000_000, "c", 1, 2, 9),
        (-1, "neg", 2, 0, 0),
        (-2, "neg", 2, 1, 5),
    ])


@pytest.mark.parametrize("present", ["orders", "items"])
def test_a_part_without_input_gives_no_rows_but_the_same_types(spark: "SparkSession", present: str) -> None:
    query = analyze_rowwise(UNION, BOTH)
    every = {"orders": orders(spark), "items": items(spark)}
    rows = apply_rowwise(query, {present: every[present]})
    assert rows.schema == apply_rowwise(query, every).schema
    numbers = {"orders": {0, 2}, "items": {1}}
    assert {row["__branch"] for row in rows.collect()} == numbers[present]


def test_without_any_input_there_is_nothing_to_apply() -> None:
    with pytest.raises(ValueError, match="none of the upstreams orders, items"):
        apply_rowwise(analyze_rowwise(UNION, BOTH), {})


@pytest.mark.parametrize(
    "expression", ["no_such_function(a)", "a + st", "round(a, x)", "st.nothing", "date_add(ns, 1)"]
)
def test_what_only_spark_can_refuse_is_a_query_error_with_its_message(spark: "SparkSession", expression: str) -> None:
    text = f"SELECT {expression} AS e FROM orders"
    query = analyze_rowwise(text, {"orders": ORDERS})
    with pytest.raises(QueryError) as raised:
        apply_rowwise(query, {"orders": orders(spark)})
    said = rf"Spark refuses {re.escape(expression)} in line 1, column 8: \[[A-Z_.]+\]"
    assert re.match(said, placed(raised.value, text).message)
    assert " pos " not in raised.value.message
    assert raised.value.reason == "SPARK"
    assert "\n" not in raised.value.message


EXPRESSIONS: list[tuple[str, Any]] = [
    ("transform(ns, N -> n + A)", [2, 3]),
    ("aggregate(ns, 0, (acc, n) -> acc + n)", 3),
    ("map_filter(m, (k, v) -> v > a)", {"k": 5}),
    ("CASE WHEN x RLIKE '^a{2}$' THEN '{x} {{' ELSE 'now' END", "{x} {{"),
    ("a::STRING || 'it''s'", "1it's"),
    ("try_cast(x AS INT)", None),
    ("m['k'] + ns[0] + st.p.Q", 13),
    ("from_json('{\"z\": 4}', 'z INT').z", 4),
    ("unix_timestamp(at)", 1704164645),
    ("timestampdiff(DAY, timestamp '2024-01-01', at)", 1),
    ("a IS NOT DISTINCT FROM 1L", True),
    ("/* a */ 1 -- comment\n + 1", 2),
]


@pytest.mark.parametrize(("expression", "value"), EXPRESSIONS, ids=[text for text, _ in EXPRESSIONS])
def test_spark_computes_what_the_user_wrote(spark: "SparkSession", expression: str, value: Any) -> None:
    query = analyze_rowwise(f"SELECT {expression} AS e FROM orders WHERE a = 1", {"orders": ORDERS})
    (row,) = apply_rowwise(query, {"orders": orders(spark)}).collect()
    assert row["e"] == value


def test_names_that_are_words_of_sql_or_need_quotes_work(spark: "SparkSession") -> None:
    columns = bronze_columns("order INT, `select` INT, `odd-na``me` INT, user STRING, left INT")
    frame = spark.createDataFrame([(0, 3, WHEN, None, None, 1, 2, 3, "me", 4, None, None)], ddl(columns))
    hidden = "_key, _headers, order, `select`, `odd-na``me`, user"
    text = f"SELECT `left`.order, `select`, `odd-na``me`, user, `left`.left AS `cross`, * EXCEPT ({hidden}) FROM `left`"
    rows = apply_rowwise(analyze_rowwise(text, {"left": columns}), {"left": frame})
    assert rows.columns == [
        "order",
        "select",
        "odd-na`me",
        "user",
        "cross",
        "_partition",
        "_offset",
        "_timestamp",
        "left",
    ]
    assert bag(rows) == Counter([(1, 2, 3, "me", 4, 0, 3, WHEN, 4)])


def test_equal_rows_have_numbers_of_their_own(spark: "SparkSession") -> None:
    rows = spark.createDataFrame([(1, 2), (1, 2), (3, 4)], "a INT, b INT")
    found = numbered(rows, ["a", "b"], [ROW_HASH, COPY]).select("a", COPY).collect()
    assert sorted(map(tuple, found)) == [(1, 1), (1, 2), (3, 1)]


def test_rows_that_differ_in_where_they_are_null_are_numbered_alike(spark: "SparkSession") -> None:
    # Spark's hashes ignore nulls, so these rows have the same hash.
    rows = [(1, None), (None, 1)]
    found = [
        bag(numbered(spark.createDataFrame(each, "a INT, b INT").coalesce(1), ["a", "b"], [ROW_HASH, COPY]))
        for each in (rows, rows[::-1])
    ]
    assert len({row[2] for row in found[0]}) == 1
    assert found[0] == found[1]


def _functions(spark: "SparkSession", groups: Iterable[str]) -> set[str]:
    jvm: Any = spark._jvm  # there is no other way to get at the registry
    infos = jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()
    return {info.getName() for info in infos if info.getGroup() in set(groups)}


def test_groups_are_compared_with_what_the_users_own_text_gives(spark: "SparkSession") -> None:
    inputs = {
        "a": spark.createDataFrame([(1, 2), (2, 3)], "id INT, k INT"),
        "b": spark.createDataFrame([(1,)], "id INT"),
    }
    text = "SELECT a.k, count(*) AS n FROM a JOIN b ON a.id >= b.id GROUP BY a.k"
    right = analyze_relational(text, {name: parse_schema(ddl(columns_of(rows))) for name, rows in inputs.items()})
    assert right.grouped is not None
    difference = view_difference(right, apply_relational(right, inputs), inputs)
    assert (difference.rows_found, difference.missing, difference.unexpected) == (2, 0, 0)
    rows = replace(right.grouped.rows, template=right.grouped.rows.template.replace(">=", ">"))
    wrong = replace(right, grouped=replace(right.grouped, rows=rows))
    difference = view_difference(wrong, apply_relational(wrong, inputs), inputs)
    assert (difference.rows_found, difference.missing, difference.unexpected) == (1, 1, 0)


def test_a_query_with_with_is_compared_with_the_text_as_it_was_written(spark: "SparkSession") -> None:
    inputs = {"a": spark.createDataFrame([(1, 2), (2, 3), (3, 3)], "id INT, k INT")}
    text = "WITH p AS (SELECT k, count(*) AS n FROM a GROUP BY k) SELECT p.k, q.n FROM p JOIN p AS q USING (k)"
    right = analyze_relational(text, {"a": parse_schema("id INT, k INT")})
    assert right.occurrences == ("a", "a")
    difference = view_difference(right, apply_relational(right, inputs), inputs)
    assert (difference.rows_found, difference.missing, difference.unexpected) == (2, 0, 0)
    wrong = replace(right, template=right.template.replace("count(*)", "count(*) + 1"))
    difference = view_difference(wrong, apply_relational(wrong, inputs), inputs)
    assert (difference.rows_found, difference.missing, difference.unexpected) == (2, 2, 2)


def test_wrong_rows_of_a_view_without_a_key_are_named(spark: "SparkSession") -> None:
    inputs = {"a": spark.createDataFrame([(1,), (2,)], "id INT")}
    query = analyze_relational("SELECT DISTINCT id FROM a", {"a": parse_schema("id INT")})
    found = apply_relational(query, {"a": spark.createDataFrame([(2,), (3,)], "id INT")})
    difference = view_difference(query, found, inputs)
    assert (difference.rows_found, difference.missing, difference.unexpected) == (2, 1, 1)
    assert difference.violations == [
        {"violation": "missing", "rows": 1, "id": 1},
        {"violation": "unexpected", "rows": 1, "id": 3},
    ]


def columns_of(rows: "DataFrame") -> list[Column]:
    return [Column(name, kind.upper()) for name, kind in rows.dtypes]


def test_every_aggregate_window_and_table_function_of_spark_is_refused(spark: "SparkSession") -> None:
    known = _functions(spark, ["agg_funcs", "window_funcs", "generator_funcs", "table_funcs"])
    assert known
    assert known <= set(REFUSED_FUNCTIONS)


def test_a_group_of_all_rows_may_have_fields_of_any_name(spark: "SparkSession") -> None:
    schema = "id INT, st STRUCT<x: INT, `y.z`: STRING>"
    rows = spark.createDataFrame([(1, (1, "a")), (2, (2, "b"))], schema)
    query = analyze_relational("SELECT max(st).`y.z` AS most, count(*) AS n FROM a", {"a": parse_schema(schema)})
    assert query.grouped is not None
    for given, expected in ((rows, [("b", 2)]), (no_rows(spark, rows.schema), [(None, 0)])):
        assert [
            tuple(row[:2]) for row in apply_relational(query, {"a": given}).select("most", "n").collect()
        ] == expected


def test_the_names_of_sparks_functions_are_those_of_its_registry(spark: "SparkSession") -> None:
    found = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert {name for name in found if name.replace("_", "").isalnum()} == SPARK_FUNCTIONS - OF_ITS_GRAMMAR


@pytest.mark.full
def test_the_functions_that_spark_calls_not_deterministic_are_refused(spark: "SparkSession") -> None:
    names = _functions(spark, ["math_funcs", "string_funcs", "misc_funcs", "array_funcs", "collection_funcs"])
    named = [name for name in names if name.isidentifier()]
    with ThreadPoolExecutor() as pool:  # Spark analyzes each in a thread of its own
        said = pool.map(partial(_is_deterministic, spark), named)
        found = {name for name, deterministic in zip(named, said, strict=True) if not deterministic}
    assert {"rand", "uuid", "shuffle", "randstr"} <= found
    assert found <= set(REFUSED_FUNCTIONS)


def _is_deterministic(spark: "SparkSession", name: str) -> bool:
    """What Spark reports for a call with arguments that it accepts; a function that accepts none of these counts as
    one."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    for arguments in ("", "1", "array(1)", "1, 2", "'java.lang.Math', 'random'"):
        try:
            plan = spark.sql(f"SELECT {name}({arguments}) AS e")._jdf.queryExecution().analyzed()
        except (PySparkException, Py4JError):
            continue
        return bool(plan.expressions().head().deterministic())
    return True
