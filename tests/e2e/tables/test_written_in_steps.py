"""A view as people write it, in steps that WITH names: each change is followed by the customers that it touches."""

from pathlib import Path

import pytest

from backfill_assets.app.table_checks import CHECKS
from tests.support.lake import Lake

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.usefixtures("spark")]

COLUMNS = ["customer_id", "name", "first_order", "orders", "paid"]
QUERY = """
WITH customer_orders AS (
    -- a row for each customer
    SELECT customer_id, min(order_id) AS first_order, count(order_id) AS orders FROM orders GROUP BY customer_id
), customer_payments AS (
    SELECT o.customer_id, sum(p.amount) AS paid
    FROM payments p LEFT JOIN orders o ON p.order_id = o.order_id
    GROUP BY o.customer_id
)
SELECT c.customer_id, c.name, co.first_order, co.orders, cp.paid
FROM customers c
LEFT JOIN customer_orders co ON c.customer_id = co.customer_id
LEFT JOIN customer_payments cp ON c.customer_id = cp.customer_id
"""
KEYS = {"customers": "customer_id", "orders": "order_id", "payments": "payment_id"}
CHANGES = [
    ("payments", "INSERT INTO {t} VALUES (500, 5, 77), (501, 999, 3), (502, NULL, 4)", 1),
    ("orders", "UPDATE {t} SET customer_id = 3 WHERE order_id = 8", 2),
    ("orders", "INSERT INTO {t} VALUES (65, 7), (66, NULL)", 2),
    ("orders", "DELETE FROM {t} WHERE order_id = 11", 1),
    ("customers", "INSERT INTO {t} VALUES (21, 'x'), (22, 'y')", 2),
    ("payments", "DELETE FROM {t} WHERE payment_id < 9", 8),
    ("customers", "DELETE FROM {t} WHERE customer_id = 3", 1),
]
"""A change of a table, and how many customers it touches; a null counts as one."""


def test_changes_of_each_table_are_followed_by_the_customers_that_they_touch(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append("customers", [{"customer_id": at, "name": f"n{at}"} for at in range(20)])
    lake.append("orders", [{"order_id": at, "customer_id": at % 23} for at in range(60)])
    lake.append("payments", [{"payment_id": at, "order_id": at % 70, "amount": at * 3} for at in range(150)])
    lake.view("customer", QUERY, *(lake.table(*each) for each in KEYS.items()), refresh_mode="incremental")
    lake.project.refresh("customer")
    for name, change, touched in CHANGES:
        lake.sql(name, change)
        record = lake.project.refresh("customer").report.record
        assert (record.rule, record.keys_touched) == ("restricted", touched), change
        assert lake.found("customer", COLUMNS) == lake.expected("customer", QUERY, *KEYS), change
    lake.passes("customer", CHECKS)
