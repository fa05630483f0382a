"""Three small tables that change, and queries of every shape over them."""

import re
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.sql.apply_relational import apply_relational
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.query import analyze
from backfill_assets.query.relational import RelationalQuery
from tests.support.lake import Lake
from tests.support.settings import SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("customers", "items", "orders")

COLUMNS = {
    "customers": "id BIGINT, name STRING, region BIGINT",
    "items": "id BIGINT, price BIGINT",
    "orders": "id BIGINT, customer BIGINT, item BIGINT, amount BIGINT, at TIMESTAMP",
}

QUERIES = {
    "inner_join": "SELECT o.id, c.name, o.amount FROM orders o JOIN customers c ON o.customer = c.id",
    "left_join": "SELECT c.id, c.name, o.amount FROM customers c LEFT JOIN orders o ON o.customer = c.id AND o.amount > 3",
    "right_join": "SELECT o.id, c.name FROM customers c RIGHT JOIN orders o ON o.customer = c.id",
    "full_join": "SELECT c.id, c.name, o.amount FROM customers c FULL JOIN orders o ON o.customer = c.id",
    "semi_join": "SELECT id, name FROM customers c LEFT SEMI JOIN orders o ON o.customer = c.id",
    "anti_join": "SELECT id, name FROM customers c LEFT ANTI JOIN orders o ON o.customer = c.id",
    "cross_join": "SELECT c.region, i.price FROM customers c CROSS JOIN items i",
    "self_join": "SELECT a.region AS one, b.name AS two FROM customers a JOIN customers b "
    "ON a.region = b.region AND a.id < b.id",
    "duplicates": "SELECT c.region, o.amount % 2 AS odd FROM orders o JOIN customers c ON o.customer = c.id",
    "two_joins": "SELECT a.id AS one, b.id AS two, c.name FROM orders a JOIN orders b ON a.item = b.item AND a.id < b.id "
    "JOIN customers c ON c.id = a.customer",
    "joins_together": "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id "
    "UNION ALL SELECT i.id, c.name FROM items i JOIN customers c ON i.id = c.id",
    "non_equi": "SELECT o.id, i.id AS item FROM orders o JOIN items i ON o.amount >= i.price",
    "using": "SELECT id, name, price FROM customers JOIN items USING (id)",
    "natural": "SELECT * FROM customers NATURAL JOIN items",
    "three_way": "SELECT c.region, i.id AS item, sum(o.amount) AS total FROM orders o, customers c, items i "
    "WHERE o.customer = c.id AND o.item = i.id GROUP BY c.region, i.id",
    "grouped_join": "SELECT c.region AS Area, count(*) AS n, max(o.amount) AS most, "
    "sum(CASE WHEN c.name = 'name 1' THEN o.amount ELSE 0 END) / count(o.id) AS share "
    "FROM orders o JOIN customers c ON o.customer = c.id WHERE o.amount > 1 GROUP BY region",
    "kept_rows": "SELECT c.region, count(*) AS n, max(o.amount) AS most FROM orders o JOIN customers c ON o.customer >= c.id "
    "WHERE o.amount <= (SELECT max(p.price) FROM items p WHERE p.id = o.item) GROUP BY c.region",
    "of_all": "SELECT count(*) AS n, sum(o.amount) AS total, min(coalesce(c.name, 'nobody')) AS first "
    "FROM orders o JOIN customers c ON o.customer = c.id WHERE o.amount > 2",
    "left_groups": "SELECT o.item, count(i.id) AS known, min(o.customer) AS first FROM orders o "
    "LEFT JOIN items i ON i.id = o.item GROUP BY o.item",
    "two_keys": "SELECT o.id, c.name, i.price FROM orders o LEFT JOIN customers c ON o.customer = c.id "
    "LEFT JOIN items i ON i.id = o.item",
    "star": "SELECT o.id, c.name, i.price FROM orders o JOIN customers c ON o.customer <= c.id "
    "LEFT JOIN items i ON i.id = o.item",
    "by_name": "SELECT count(*) AS n, max(amount) AS most FROM customers JOIN orders ON customer = customers.id "
    "GROUP BY upper(name), region",
    "distinct": "SELECT DISTINCT region FROM customers",
    "union": "SELECT id FROM customers UNION SELECT customer FROM orders",
    "intersect_all": "SELECT id FROM customers INTERSECT ALL SELECT customer FROM orders",
    "except": "SELECT id FROM customers EXCEPT SELECT customer FROM orders",
    "in": "SELECT id, name FROM customers WHERE id IN (SELECT customer FROM orders WHERE amount > 2)",
    "not_in": "SELECT id, name FROM customers WHERE id NOT IN (SELECT customer FROM orders WHERE customer IS NOT NULL)",
    "exists": "SELECT id FROM items i WHERE EXISTS (SELECT 1 FROM orders o WHERE o.item = i.id)",
    "correlated": "SELECT id, (SELECT max(amount) FROM orders o WHERE o.customer = c.id) AS most FROM customers c",
    "scalar": "SELECT id, amount FROM orders WHERE amount > (SELECT avg(amount) FROM orders)",
    "with": "WITH best AS (SELECT customer, max(amount) AS most FROM orders GROUP BY customer), "
    "orders AS (SELECT * FROM best) SELECT c.name, o.most FROM customers c JOIN orders o ON o.customer = c.id",
    "nested": "SELECT n, count(*) AS customers "
    "FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) GROUP BY n",
    "having": "SELECT customer, count(*) AS n FROM orders GROUP BY customer HAVING count(*) > 1",
    "no_groups": "SELECT count(*) AS n, sum(amount) AS total, count(DISTINCT customer) AS customers FROM orders",
    "filter": "SELECT customer, count(*) FILTER (WHERE amount > 3) AS large FROM orders GROUP BY customer",
    "grouping_sets": "SELECT customer, item, count(*) AS n FROM orders GROUP BY GROUPING SETS ((customer), (item), ())",
    "rollup": "SELECT region, count(*) AS n FROM customers GROUP BY ROLLUP (region)",
    "window": "SELECT id, amount, rank() OVER (PARTITION BY customer ORDER BY amount DESC) AS place FROM orders",
    "whole_window": "SELECT id, sum(amount) OVER (PARTITION BY item) AS total FROM orders",
    "qualify": "SELECT id, customer FROM orders QUALIFY dense_rank() OVER (PARTITION BY customer ORDER BY amount) = 1",
    "percentile": "SELECT item, percentile(amount, 0.5) AS middle, max(amount) AS most FROM orders GROUP BY item",
    "collected": "SELECT customer, CAST(array_sort(collect_list(amount)) AS STRING) AS amounts FROM orders GROUP BY customer",
    "exploded": "SELECT id, each FROM orders LATERAL VIEW explode(sequence(0, amount)) AS each",
    "lateral": "SELECT c.id, t.amount FROM customers c, LATERAL (SELECT amount FROM orders o WHERE o.customer = c.id) t",
    "tumbling": "SELECT window.start AS begins, count(*) AS n FROM orders GROUP BY window(at, '1 hour')",
    "hopping": "SELECT window.start AS begins, item, sum(amount) AS total FROM orders "
    "GROUP BY window(at, '1 hour', '20 minutes'), item",
    "group_by_all": "SELECT customer, item, sum(amount) AS total FROM orders GROUP BY ALL",
    "braces": "SELECT id, '{name}' AS pattern, name RLIKE 'a{1,2}' AS found FROM customers JOIN items USING (id)",
    "pivot": "SELECT * FROM (SELECT customer, item, amount FROM orders) PIVOT (sum(amount) FOR item IN (1 AS one, 2 AS two))",
    "other_forms": "SELECT 2 * (1 + customer) AS g, count(item, amount) AS n, sum(amount) AS s FROM orders "
    "GROUP BY customer + 1",
    "whole_rows": "SELECT id, to_json(struct(*)) AS j, hash(o.*) AS h FROM orders o",
    "listed": "SELECT region, listagg(name, ',') WITHIN GROUP (ORDER BY name) AS l, mode(name, true) AS m FROM customers "
    "GROUP BY region",
    "firsts": "SELECT id, first(amount) OVER (PARTITION BY item ORDER BY at) AS f, last(id) OVER (PARTITION BY item "
    "ORDER BY at ROWS 1 PRECEDING) AS l FROM orders",
    "ordered_group": "SELECT max(amount) AS m, count(*) AS n FROM orders ORDER BY m LIMIT 1",
}
"""Queries, by name, to which neither the rules for single rows nor those for groups apply."""


def tables_of(query: str) -> list[str]:
    """The tables that a query names."""
    return [name for name in TABLES if re.search(rf"(FROM|JOIN|,) {name}\b", query)]


def fill(lake: Lake, seed: int) -> None:
    """The tables with their first rows."""
    random = Random(seed)
    lake.append("customers", ({"id": at, "name": f"name {at % 4}", "region": at % 3} for at in (*range(8), 10)))
    lake.append("items", ({"id": at, "price": random.randrange(6)} for at in range(5)))
    lake.append("orders", (order(random, at) for at in range(20)))


def order(random: Random, at: int) -> dict[str, object]:
    """An order; its customer may not exist, or be null."""
    customer = random.choice([None, *range(10)])
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=random.randrange(300))
    return {"id": at, "customer": customer, "item": random.randrange(6), "amount": random.randrange(7), "at": moment}


def churn(lake: Lake, random: Random, first: int) -> None:
    """Insert, delete and update rows in each of the tables; `first` is the id of the first new order."""
    lake.append("orders", (order(random, at) for at in range(first, first + 4)))
    there = DeltaTable(lake.path("orders")).to_pyarrow_table(columns=["id"])["id"].to_pylist()
    gone, moved = random.sample(sorted(there), 2)
    lake.sql("orders", f"DELETE FROM {{t}} WHERE id IN ({gone}, {gone + 1})")
    moved_to = f"amount = amount + 1, customer = {random.randrange(8)}"
    lake.sql("orders", f"UPDATE {{t}} SET {moved_to} WHERE id >= {moved} AND id % 3 = {random.randrange(3)}")
    lake.sql("customers", f"UPDATE {{t}} SET region = {random.randrange(4)} WHERE id = {random.randrange(8)}")
    lake.sql("items", f"UPDATE {{t}} SET price = {random.randrange(6)} WHERE id = {random.randrange(5)}")


def results() -> dict[str, list[str]]:
    """The rows of each query, including hidden columns, with the Spark of this process."""
    runner = SparkResource(config=SPARK).runner(Warehouse(uri="/"))
    found = runner.run(lambda spark: {name: _result(spark, query) for name, query in QUERIES.items()})
    runner.close()
    return found


def _result(spark: "SparkSession", query: str) -> list[str]:
    inputs = {name: spark.createDataFrame(_rows(name), COLUMNS[name]) for name in tables_of(query)}
    columns = {name: parse_schema(COLUMNS[name]) for name in inputs}
    analyzed = analyze(query, columns, dict.fromkeys(inputs, ("id",)))
    assert isinstance(analyzed, RelationalQuery)
    return sorted(str(tuple(row)) for row in apply_relational(analyzed, inputs).collect())


def _rows(name: str) -> list[tuple[object, ...]]:
    random = Random(name)
    match name:
        case "customers":
            return [(at, f"name {at % 4}", at % 3) for at in range(8)]
        case "items":
            return [(at, random.randrange(6)) for at in range(5)]
        case _:
            return [tuple(order(random, at).values()) for at in range(20)]
