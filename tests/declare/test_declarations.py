"""Declarations are checked when they are created: each error names the argument, what was found, and what to do."""

import dataclasses
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from itertools import combinations
from typing import Any

import pytest

from backfill_assets import build_definitions, delta_table, kafka_source, materialized_view
from backfill_assets.declare.fingerprints import fingerprint_of
from backfill_assets.declare.model import Declared, KafkaSource, MaterializedView, has_key
from backfill_assets.defs.definitions import registry
from backfill_assets.errors import DeclarationError, QueryError


def source(name: str = "orders", **given: Any) -> KafkaSource:
    return kafka_source(name, **{"topic": "t", "schema": "id LONG", **given})


def view(name: str = "large", **given: Any) -> MaterializedView:
    return materialized_view(name, **{"query": "SELECT id FROM orders", "upstreams": [source()], **given})


def refused(make: Callable[[], object]) -> DeclarationError:
    with pytest.raises(DeclarationError) as caught:
        make()
    return caught.value


WRONG_SOURCES: list[tuple[str, dict[str, Any], str]] = [
    ("name", {"name": "or-ders"}, "'or-ders'"),
    ("name", {"name": ""}, "''"),
    ("name", {"name": "orders\n"}, "orders"),
    ("name", {"name": "../orders"}, "'../orders'"),
    ("name", {"name": None}, "None"),
    ("topic", {"topic": ""}, "empty"),
    ("topic", {"topic": 7}, "7"),
    ("format", {"format": "avro"}, "'avro'"),
    ("bronze", {"bronze": "some"}, "'some'"),
    ("bronze", {"bronze": ["all"]}, "['all']"),
    ("isolation", {"isolation": "serializable"}, "'serializable'"),
    ("start", {"start": "newest"}, "'newest'"),
    ("start", {"start": datetime(2024, 1, 2)}, "no time zone"),
    ("start", {"start": {}}, "{}"),
    ("start", {"start": {0: -1}}, "-1"),
    ("start", {"start": {"0": 1}}, "'0'"),
    ("start", {"start": {0: True}}, "True"),
    ("start", {"start": 5}, "5"),
    ("client_config", {"client_config": {"retries": 3}}, "retries"),
    ("client_config", {"client_config": "retries=3"}, "retries=3"),
    ("schema", {"schema": ""}, "no columns"),
    ("schema", {"schema": "id LONG, _offset LONG"}, "_offset"),
    ("schema", {"schema": "id LONG, ID INT"}, "twice"),
    ("schema", {"schema": "id LONGG"}, "LONGG"),
    ("schema", {"schema": "id LONG NOT NULL"}, "NOT NULL"),
    ("schema", {"format": "raw"}, "id LONG"),
    ("schema", {"format": "raw", "schema": "a STRING, b STRING"}, "a STRING, b STRING"),
]


@pytest.mark.parametrize(("argument", "given", "found"), WRONG_SOURCES)
def test_a_wrong_source_is_refused(argument: str, given: dict[str, Any], found: str) -> None:
    error = refused(lambda: source(**given))
    assert error.facts["argument"] == argument
    assert f"argument {argument!r}" in error.message
    assert found in error.message
    assert error.hint
    assert str(error).startswith("[DECLARATION] kafka_source ")


WRONG_VIEWS: list[tuple[str, dict[str, Any], str]] = [
    ("name", {"name": "la rge"}, "'la rge'"),
    ("primary_key", {"primary_key": "id"}, "'id'"),
    ("primary_key", {"primary_key": ["id"]}, "['id']"),
    ("strategy", {"strategy": "magic"}, "'magic'"),
    ("refresh_mode", {"refresh_mode": "sometimes"}, "'sometimes'"),
    ("upstreams", {"upstreams": []}, "[]"),
    ("upstreams", {"upstreams": "orders"}, "'orders'"),
    ("upstreams", {"upstreams": ["orders"]}, "'orders'"),
    ("upstreams", {"upstreams": source()}, "orders"),
    ("upstreams", {"upstreams": [source(), source()]}, "twice"),
]


WRONG_TABLES: list[tuple[str, dict[str, Any], str]] = [
    ("name", {"name": "cus tomers"}, "'cus tomers'"),
    ("path", {"path": ""}, "''"),
    ("path", {"path": 7}, "7"),
    ("primary_key", {"primary_key": 7}, "7"),
    ("primary_key", {"primary_key": []}, "[]"),
    ("primary_key", {"primary_key": ""}, "''"),
    ("primary_key", {"primary_key": ["id", None]}, "['id', None]"),
    ("primary_key", {"primary_key": ["id", "day", "id"]}, "['id', 'day', 'id'] names a column twice"),
]


@pytest.mark.parametrize(("argument", "given", "found"), WRONG_TABLES)
def test_a_wrong_table_is_refused(argument: str, given: dict[str, Any], found: str) -> None:
    error = refused(lambda: delta_table(**{"name": "customers", "path": "lake/customers", **given}))
    assert error.facts["argument"] == argument
    assert found in error.message
    assert error.hint
    assert str(error).startswith("[DECLARATION] delta_table ")


def test_a_strategy_that_does_not_read_a_views_upstreams_is_refused_with_those_that_do() -> None:
    table = delta_table("customers", path="lake/customers", primary_key="id")
    over_records = refused(lambda: view(strategy="snapshot"))
    over_tables = refused(lambda: view(query="SELECT id FROM customers", upstreams=[table], strategy="source"))
    assert (over_records.message.count("'snapshot' does not read such upstreams"), over_records.hint) == (
        1,
        "use 'source'",
    )
    assert "'source' does not read such upstreams" in over_tables.message
    assert over_tables.hint.startswith("use one of 'snapshot', ")
    assert view(strategy="source").strategy == "source"
    assert view(query="SELECT id FROM customers", upstreams=[table], strategy="snapshot").strategy == "snapshot"


def test_an_aggregate_over_records_takes_the_key_of_its_groups_and_no_other() -> None:
    query = "SELECT id, count(*) AS n FROM orders GROUP BY id"
    assert view(query=query, primary_key="id").own_key == ("id",)
    assert (
        "['n'] was given, but an aggregate is keyed by its groups, (id)"
        in refused(lambda: view(query=query, primary_key="n")).message
    )


def test_rows_of_a_source_are_known_by_where_their_record_came_from() -> None:
    table = delta_table("customers", path="lake/customers")
    assert (has_key(source()), has_key(table)) == (True, False)
    assert has_key(delta_table("customers", path="lake/customers", primary_key="id"))


@pytest.mark.parametrize(("argument", "given", "found"), WRONG_VIEWS)
def test_a_wrong_view_is_refused(argument: str, given: dict[str, Any], found: str) -> None:
    error = refused(lambda: view(**given))
    assert error.facts["argument"] == argument
    assert f"argument {argument!r}" in error.message
    assert found in error.message
    assert error.hint
    assert str(error).startswith("[DECLARATION] materialized_view ")


@pytest.mark.parametrize(
    ("reason", "query", "upstreams"),
    [
        ("UNUSED_UPSTREAM", "SELECT id FROM orders", [source(), source("others")]),
        ("UNKNOWN_UPSTREAM", "SELECT id FROM clicks", [source()]),
        ("UNKNOWN_COLUMN", "SELECT price FROM orders", [source()]),
        ("SYNTAX", "SELECT FROM WHERE", [source()]),
    ],
)
def test_a_wrong_query_is_refused_with_its_reason(reason: str, query: str, upstreams: list[KafkaSource]) -> None:
    error = refused(lambda: view(query=query, upstreams=upstreams))
    assert isinstance(error, QueryError)
    assert (error.reason, error.facts["argument"]) == (reason, "query")
    assert str(error).startswith(f"[QUERY:{reason}] materialized_view 'large': ")
    assert error.hint


def test_names_are_unique_across_sources_and_views() -> None:
    clashes: list[tuple[Declared, Declared]] = [
        (source(), source(topic="u")),
        (source(), view("orders", upstreams=[source()])),
        (view(), view(query="SELECT id + 1 AS id FROM orders")),
    ]
    for pair in clashes:
        error = refused(partial(registry, pair))
        assert error.facts["argument"] == "name"
        assert "two tables named" in error.message
        assert error.hint


def test_asset_keys_are_unique_too() -> None:
    pair = (source(key=["orders"]), source("others", key=["orders"]))
    error = refused(lambda: registry(pair))
    assert error.facts["argument"] == "key"
    assert "orders" in error.message
    assert "others" in error.message


def test_only_declarations_and_known_resources_are_taken() -> None:
    assert refused(lambda: registry(("orders",))).facts["argument"] == "declared"  # type: ignore[arg-type]
    error = refused(lambda: build_definitions(source(), resources={"spark": 1}))
    assert error.facts["argument"] == "resources"
    assert "spark" in error.message


def test_upstreams_come_in_transitively_sources_first() -> None:
    assert list(registry((view(),))) == ["orders", "large"]
    assert list(registry((view(), source()))) == ["orders", "large"]


def test_declarations_are_frozen_keyword_only_and_equal_by_value() -> None:
    assert source() == source()
    assert view() == view()
    assert source(start={0: 1, 1: 2}) == source(start={1: 2, 0: 1})
    assert source() != source(topic="u")
    for declared, name in ((source(), "topic"), (view(), "query")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(declared, name, "other")
    with pytest.raises(TypeError):
        kafka_source("orders", "t", "id LONG")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        materialized_view("large", "SELECT id FROM orders", [source()])  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        source(colour="red")


def test_what_the_caller_changes_later_does_not_change_the_declaration() -> None:
    start, settings = {0: 1}, {"client.id": "a"}
    declared = source(start=start, client_config=settings)
    start[0], settings["client.id"] = 2, "b"
    assert declared == source(start={0: 1}, client_config={"client.id": "a"})


def test_equal_declarations_have_equal_fingerprints() -> None:
    berlin = timezone(timedelta(hours=1))
    pairs: list[tuple[Declared, Declared]] = [
        (source(start={0: 1, 1: 2}), source(start={1: 2, 0: 1})),
        (source(schema="id LONG"), source(schema="id  bigint")),
        (source(start=datetime(2024, 1, 2, 1, tzinfo=berlin)), source(start=datetime(2024, 1, 2, tzinfo=UTC))),
        (view(), view(query="select id from orders -- all of them")),
    ]
    for one, other in pairs:
        assert one.name == other.name
        assert fingerprint_of(one) == fingerprint_of(other)


def test_a_declaration_that_means_something_else_has_another_fingerprint() -> None:
    base = fingerprint_of(source())
    changes = [{"topic": "u"}, {"schema": "id INT"}, {"start": "latest"}, {"bronze": "new"}]
    for given in [*changes, {"isolation": "read_uncommitted"}, {"format": "raw", "schema": "id STRING"}]:
        assert fingerprint_of(source(**given)) != base, given
    views = [
        view(),
        view(upstreams=[source(schema="id INT")]),
        view(upstreams=[source(format="raw", schema="id STRING")]),
        view(query="SELECT id, 1 AS one FROM orders"),
        *(view(upstreams=[delta_table("orders", path="p", primary_key=key)]) for key in ("id", "other")),
        view(upstreams=[delta_table("orders", path="p", primary_key="id")], primary_key="id"),
    ]
    assert len({json.dumps(fingerprint_of(each)) for each in views}) == len(views)
    unimportant: list[dict[str, Any]] = [{"description": "x"}, {"client_config": {"client.id": "x"}}]
    for same in unimportant:
        assert fingerprint_of(source(**same)) == base, same


JOIN = "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id"


def test_a_join_of_a_source_and_a_table_reads_both_as_tables() -> None:
    orders = kafka_source("orders", topic="orders", schema="id LONG, customer LONG")
    customers = delta_table("customers", path="customers", primary_key="id")
    view = materialized_view("named", query=JOIN, upstreams=[orders, customers])
    assert (view.whole, view.sources, view.tables) == (True, (), (orders, customers))
    other = kafka_source("orders", topic="orders", schema="id LONG, customer INT")
    changed = materialized_view("named", query=JOIN, upstreams=[other, customers])
    assert fingerprint_of(view)["schema"] != fingerprint_of(changed)["schema"]
    assert "layout" in fingerprint_of(view)
    assert "layout" not in fingerprint_of(materialized_view("copy", query="SELECT id FROM orders", upstreams=[orders]))


def test_parts_of_a_union_are_kept_by_a_key_that_all_have_and_otherwise_read_as_whole_tables() -> None:
    orders = kafka_source("orders", topic="orders", schema="id LONG, city STRING")
    people, shops = (delta_table(name, path=name, primary_key="id") for name in ("people", "shops"))
    items = delta_table("items", path="items", primary_key="item")

    def over(name: str, query: str, *upstreams: Any, **given: Any) -> MaterializedView:
        return materialized_view(name, query=query, upstreams=upstreams, **given)

    plain = over("plain", "SELECT id, city FROM people WHERE city > ''", people)
    starred = over("starred", "SELECT * FROM shops", shops)
    hidden = over("hidden", "SELECT city FROM people", people)
    grouped = over("grouped", "SELECT city, count(*) AS n FROM people GROUP BY city", people)
    of_all = over("of_all", "SELECT p.city FROM people AS p JOIN shops AS s USING (id)", people, shops)
    distinct = over("cities", "SELECT DISTINCT city FROM people", people)
    records = over("records", "SELECT id, city FROM orders", orders)
    counted = over("counted", "SELECT city, count(*) AS n FROM orders GROUP BY city", orders)
    named = over(
        "named", "SELECT p.city FROM people AS p JOIN shops AS s USING (id)", people, shops, primary_key="city"
    )

    def is_whole(one: Any, other: Any, **given: Any) -> bool:
        query = f"SELECT city FROM {one.name} UNION ALL SELECT city FROM {other.name}"
        return over("both", query, one, other, **given).whole

    same = [(people, shops), (plain, shops), (plain, starred), (grouped, counted), (named, grouped)]
    assert not any(is_whole(one, other) for one, other in same)
    others = [plain, items, hidden, grouped, of_all, distinct, records]
    assert all(is_whole(one, other) for one, other in combinations(others, 2))
    assert not is_whole(plain, items, primary_key="city")


def test_a_source_that_keeps_only_new_records_is_not_read_as_a_whole_table() -> None:
    orders = kafka_source("orders", topic="orders", schema="id LONG", bronze="new")
    with pytest.raises(QueryError, match="keeps only new records") as caught:
        materialized_view("many", query="SELECT DISTINCT id FROM orders", upstreams=[orders])
    assert caught.value.reason == "NOT_KEPT"
    assert materialized_view("all", query="SELECT id FROM orders", upstreams=[orders]).sources == (orders,)
