"""Views over several tables follow few changes by rows that this process finds: exact, and without a scan by Spark."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from backfill_assets.adapters.compute import rules, table_compute, table_inputs
from backfill_assets.adapters.compute.selectable_rows import part_of
from backfill_assets.adapters.compute.table_inputs import TableInputs
from backfill_assets.errors import ReadMismatchError
from tests.support.lake import Lake
from tests.support.settings import FULL, one_in_gate

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("spark")]

ITEMS = """SELECT i.no, i.price, o.day, c.name
    FROM items i JOIN orders o ON i.order_no = o.no JOIN customers c ON o.customer = c.id"""
LEFT = "SELECT c.name, o.no, o.day FROM customers c LEFT JOIN orders o ON o.customer = c.id"
NAMES = "SELECT DISTINCT c.name FROM items i JOIN orders o ON i.order_no = o.no JOIN customers c ON o.customer = c.id"
VIEWS = {
    "items_of": (ITEMS, ("items", "orders", "customers")),
    "left_of": (LEFT, ("customers", "orders")),
    "names_of": (NAMES, ("items", "orders", "customers")),
}
SCHEMAS = {
    "customers": pa.schema({"id": pa.string(), "name": pa.string(), "note": pa.string()}),
    "orders": pa.schema({"no": pa.int64(), "customer": pa.string(), "day": pa.date32(), "note": pa.string()}),
    "items": pa.schema({"no": pa.int64(), "order_no": pa.int32(), "price": pa.float64(), "note": pa.string()}),
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = Lake(tmp_path_factory.mktemp("filled"))
    customers = [{"id": f"c{at}", "name": f"n{at}", "note": ""} for at in range(30)] + [{"id": None, "name": "nobody"}]
    orders = [{"no": at, "customer": f"c{at % 25}" if at % 7 else None, "note": "", "day": None} for at in range(120)]
    items = [{"no": at % 270, "order_no": at // 3 if at % 11 else None, "price": at / 2} for at in range(300)]
    for name, rows in (("customers", customers), ("orders", orders), ("items", items)):
        made.append(name, pa.Table.from_pylist(rows, schema=SCHEMAS[name]))
    for view, (query, tables) in VIEWS.items():
        made.view(view, query, *(made.table(name, None) for name in tables), refresh_mode="incremental")
        checked(made, view)
    return made


@pytest.fixture
def lake(filled: Lake, tmp_path: Path) -> Lake:
    return filled.copy(tmp_path)


def checked(lake: Lake, view: str) -> tuple[str, int, int]:
    """The rule, keys and rows reached of the epoch with which a view is what its query gives."""
    record = lake.project.refresh(view).report.record
    query, tables = VIEWS[view]
    columns = [each for each in lake.rows(lake.location(view)).columns if not each.startswith("__")]
    assert lake.found(view, columns) == lake.expected(view, query, *tables)
    return record.rule, record.keys_touched, record.rows_reached


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The upstreams of which Spark reads rows, as they are read."""
    names: list[str] = []
    rows = TableInputs.rows

    def noted(inputs: TableInputs, attempt: Any, name: str, kind: Any = None) -> Any:
        names.append(name)
        return rows(inputs, attempt, name, kind)

    monkeypatch.setattr(table_inputs.TableInputs, "rows", noted)
    return names


RENAMED = {
    "joined": "SELECT x.a, c.name, x.d FROM orders AS x(a, b, d, e) JOIN customers c ON x.b = c.id",
    "permuted": "SELECT c.name, x.no FROM customers c LEFT JOIN orders x(customer, no, note, day) ON x.no = c.id",
    "groups": "SELECT x.no, count(*) AS n FROM orders AS x(customer, no, note, day) JOIN customers c ON x.no = c.id "
    "GROUP BY x.no",
    "anti": "SELECT c.name FROM customers c WHERE NOT EXISTS "
    "(SELECT 1 FROM orders x(customer, no, note, day) WHERE x.no = c.id)",
}


@pytest.mark.full
def test_columns_of_tables_may_have_other_names(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = RENAMED if FULL else ["joined", "permuted"]
    for name in chosen:
        query = RENAMED[name]
        monkeypatch.setitem(VIEWS, name, (query, ("customers", "orders")))
        lake.view(name, query, lake.table("customers", None), lake.table("orders", None), refresh_mode="incremental")
        checked(lake, name)
    lake.sql(
        "orders",
        "UPDATE {t} SET customer = 'c29' WHERE no = 4",
        "UPDATE {t} SET day = DATE'2021-02-03' WHERE no IN (8, 9)",
        "INSERT INTO {t} VALUES (500, 'c28', NULL, 'x')",
    )
    for name in chosen:
        checked(lake, name)


GROUPS = """SELECT o.customer, count(*) AS n, sum(o.no) AS total, max(i.no) AS last
    FROM orders o JOIN items i ON i.order_no = o.no GROUP BY o.customer"""


def test_groups_that_change_are_found_among_many(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VIEWS, "groups_of", (GROUPS, ("orders", "items")))
    lake.view("groups_of", GROUPS, lake.table("orders", None), lake.table("items", None), refresh_mode="incremental")
    checked(lake, "groups_of")

    def read(*_given: Any) -> None:
        raise AssertionError("all groups of the view are read")

    monkeypatch.setattr(rules, "_MANY_GROUPS", 0)
    monkeypatch.setattr(table_compute, "rows_at", read)
    lake.sql(
        "orders",
        "UPDATE {t} SET customer = 'c3' WHERE no IN (4, 7)",
        "UPDATE {t} SET customer = 'c3 ' WHERE no = 5",
        "DELETE FROM {t} WHERE no = 9",
        "INSERT INTO {t} VALUES (8, NULL, NULL, 'x'), (9, 'new', NULL, '')",
    )
    if FULL:
        assert checked(lake, "groups_of")[0] == "additive"
    lake.sql("items", "DELETE FROM {t} WHERE no < 30")
    assert checked(lake, "groups_of")[0] == "additive"


def test_few_changes_are_followed_without_a_scan_of_the_tables(lake: Lake, scanned: list[str]) -> None:
    lake.sql(
        "orders",
        "UPDATE {t} SET customer = 'c3' WHERE no IN (4, 7)",
        "DELETE FROM {t} WHERE no = 9",
        "INSERT INTO {t} VALUES (141, 'c5 ', DATE'2020-01-01', ''), (9, 'c1', NULL, ''), (142, NULL, NULL, 'x')",
    )
    lake.sql("items", "INSERT INTO {t} VALUES (200, 141, 1.5, ''), (201, 9, -0.0, ''), (201, 9, -0.0, '')")
    assert checked(lake, "items_of")[0] == "linear"
    rule, keys, reached = checked(lake, "left_of")
    assert (rule, keys > 3, reached > 10) == ("restricted", True, True)
    lake.sql(
        "customers", "UPDATE {t} SET id = 'c9', name = 'moved' WHERE id = 'c1'", "DELETE FROM {t} WHERE id IS NULL"
    )
    assert checked(lake, "items_of")[0] == "linear"
    assert checked(lake, "left_of")[0] == "linear"
    assert not scanned


def test_rows_between_lead_to_the_keys_that_changes_touch(lake: Lake) -> None:
    lake.sql("items", "DELETE FROM {t} WHERE order_no IN (1, 26, 51, 76)", "INSERT INTO {t} VALUES (202, 14, 2.5, '')")
    assert checked(lake, "names_of")[:2] == ("restricted", 2)
    lake.sql("items", "DELETE FROM {t} WHERE order_no = 2", "INSERT INTO {t} VALUES (203, 15, 2.5, '')")
    lake.sql("orders", "DELETE FROM {t} WHERE no IN (2, 27)", "INSERT INTO {t} VALUES (15, 'c29', NULL, '')")
    assert checked(lake, "names_of")[:2] == ("restricted", 3)


def test_a_change_of_columns_that_are_not_used_is_no_change(lake: Lake, scanned: list[str]) -> None:
    lake.sql("orders", "UPDATE {t} SET note = 'other' WHERE no < 3")
    for view in VIEWS:
        before = lake.project.record(view)
        checked(lake, view)
        after = lake.project.record(view)
        assert (after.epoch, after.rows_written, after.rows_deleted) == (before.epoch + 1, 0, 0)
    assert not scanned


def test_tables_that_only_spark_reads_as_they_are_are_scanned(lake: Lake, scanned: list[str]) -> None:
    lake.sql(
        "orders",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "DELETE FROM {t} WHERE no = 12",
        *(["UPDATE {t} SET day = DATE'2021-05-05' WHERE no = 14"] if FULL else []),
    )
    for view in VIEWS if FULL else ("items_of",):
        checked(lake, view)
    lake.sql("items", "INSERT INTO {t} VALUES (300, 12, 1.5, ''), (301, 14, 2.5, '')")
    checked(lake, "items_of")
    assert "orders" in scanned


@pytest.mark.parametrize("kind", one_in_gate("CHAR(4)", "STRUCT<c: CHAR(4)>"))
def test_texts_of_a_fixed_length_have_the_blanks_that_spark_adds(tmp_path: Path, kind: str) -> None:
    lake = Lake(tmp_path)
    value = "named_struct('c', 'x')" if kind.startswith("STRUCT") else "'x'"
    tables = {"a": f"(id INT, c {kind})", "b": "(id INT, n INT)"}
    for name, columns in tables.items():
        lake.sql(
            name, f"CREATE TABLE {{t}} {columns} USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        )
    lake.sql("a", f"INSERT INTO {{t}} SELECT id, {value} FROM range(1, 3)")
    lake.sql("b", "INSERT INTO {t} VALUES (1, 1)")
    query = "SELECT a.id, a.c, b.n FROM a JOIN b ON a.id = b.id"
    lake.view("padded", query, lake.table("a", None), lake.table("b", None), refresh_mode="incremental")
    for statement in (None, "INSERT INTO {t} VALUES (2, 2)", *(["UPDATE {t} SET n = 3 WHERE id = 1"] if FULL else [])):
        lake.sql("b", *filter(None, [statement]))
        assert lake.project.refresh("padded").report.record.rule == ("full" if statement is None else "linear")
        named = query.replace(" a JOIN b ", f" delta.`{lake.path('a')}` a JOIN delta.`{lake.path('b')}` b ")
        assert lake.found("padded", ["id", "c", "n"]) == Counter(map(tuple, lake.spark.sql(named).collect()))


def test_a_file_that_was_written_over_is_no_answer(lake: Lake) -> None:
    lake.sql("items", "INSERT INTO {t} VALUES (400, 3, 1.5, '')")
    before = lake.project.record("items_of")
    path = next(Path(lake.path("orders")).glob("*.parquet"))
    path.write_bytes(path.read_bytes() + b"PAR1")
    with pytest.raises(ReadMismatchError, match="cannot be read: it has"):
        lake.project.refresh("items_of")
    assert lake.project.record("items_of") == before


def test_rows_that_are_here_come_to_spark_in_whatever_parts_they_are(lake: Lake) -> None:
    rows = pa.table({"a": pa.array([1, 2], pa.int64()), "b": pa.array(["x", None], pa.large_string())})
    nothing = rows.slice(0, 0)
    for parts in ([nothing, nothing, rows], [rows, nothing, rows], [nothing]):
        whole = pa.concat_tables(parts)
        part = part_of(lake.spark, whole)
        assert [tuple(row) for row in part.frame.collect()] == list(zip(*whole.to_pydict().values(), strict=True))
        assert part.frame.rdd.getNumPartitions() <= 1
