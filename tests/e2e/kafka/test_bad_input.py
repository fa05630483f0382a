"""Input that cannot work is refused before anything is written, and the error names it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets import kafka_source, materialized_view
from backfill_assets.adapters.runtime.tcp_ports import free_port
from backfill_assets.errors import (
    BackfillError,
    BrokerUnavailableError,
    EnvironmentSetupError,
    ExternalWriteError,
    QueryError,
    UnknownTopicError,
)
from tests.support.project import Project

pytestmark = pytest.mark.e2e


def tables(project: Project) -> set[str]:
    """The folders of tables in the warehouse, without the state store."""
    warehouse = project.root / "warehouse"
    return {str(path.parent.relative_to(warehouse)) for path in warehouse.glob("[sv]*/*/*")}


def declare(project: Project, topic: str, query: str = "SELECT id FROM orders", **given: Any) -> None:
    orders = kafka_source("orders", topic=topic, schema="id LONG, note STRING", **given)
    project.declare(orders, materialized_view("large", query=query, upstreams=[orders]))


def refused(project: Project, error: type[BackfillError], *names: str) -> BackfillError:
    for name in names:
        with pytest.raises(error) as caught:
            project.refresh(name)
        assert caught.value.hint
    assert tables(project) == set()
    return caught.value


@pytest.mark.parametrize("topic", ["no-such-topic", "not a topic's name"])
def test_an_unknown_topic_is_named_for_the_source_and_for_the_view(project: Project, topic: str) -> None:
    declare(project, topic)
    error = refused(project, UnknownTopicError, "orders", "large")
    assert repr(topic) in error.message
    assert project.servers in error.message


@pytest.mark.full
def test_a_broker_that_is_down_is_reported_within_the_timeout(project: Project) -> None:
    down = Project(root=project.root, servers=f"127.0.0.1:{free_port()}")
    declare(down, "orders")
    refused(down, BrokerUnavailableError, "orders")
    began = time.monotonic()
    error = refused(down, BrokerUnavailableError, "large")
    assert time.monotonic() - began < 3 * 4.0
    assert error.code == "BROKER_UNAVAILABLE"
    assert down.servers in error.message


@pytest.mark.full
def test_a_table_that_exists_keeps_its_rows_while_the_broker_is_down(project: Project) -> None:
    topic = project.topic()
    project.produce(topic, [{"id": 1}])
    declare(project, topic)
    project.refresh("orders")
    down = Project(root=project.root, servers=f"127.0.0.1:{free_port()}", declared=project.declared)
    with pytest.raises(BrokerUnavailableError):
        down.refresh("orders")
    project.produce(topic, [{"id": 2}])
    project.refresh("orders")
    assert project.rows("orders", "id") == {(1,): 1, (2,): 1}


def test_a_missing_secret_is_named_before_anything_is_created(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_SECRET", raising=False)
    declare(project, "orders", client_config={"sasl.password": "env:NO_SUCH_SECRET"})
    assert "NO_SUCH_SECRET" in refused(project, EnvironmentSetupError, "orders", "large").message


@pytest.mark.parametrize(
    ("query", "reason", "said"),
    [
        ("SELECT no_such_function(id) AS x FROM orders", "UNKNOWN_FUNCTION", "no_such_function"),
        ("SELECT id + array(1) AS x FROM orders", "SPARK", "DATATYPE_MISMATCH"),
        (f"SELECT {'9' * 41} AS x FROM orders", "SPARK", "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION"),
        ("SELECT id FROM orders UNION ALL SELECT map('a', 1) AS id FROM orders", "SPARK", "INCOMPATIBLE_COLUMN_TYPE"),
        ("SELECT id, NULL AS nothing FROM orders", "TYPE", "'nothing' has type void"),
        ("SELECT array() AS nothing FROM orders", "TYPE", "'nothing' has type void"),
        ("SELECT named_struct('a', map('b', INTERVAL 1 DAY)) AS span FROM orders", "TYPE", "interval"),
        ("SELECT parse_json(note) AS body FROM orders", "TYPE", "'body' has type variant"),
    ],
)
def test_a_query_that_spark_or_delta_cannot_take_is_refused_before_anything_is_written(
    project: Project, query: str, reason: str, said: str
) -> None:
    found: BackfillError
    try:
        declare(project, project.topic(), query)
    except QueryError as error:
        found = error
    else:
        found = refused(project, QueryError, "large")
    assert isinstance(found, QueryError)
    assert said in found.message
    assert found.reason == reason


def test_a_field_may_be_named_like_a_type_that_delta_cannot_hold(project: Project) -> None:
    topic = project.topic()
    project.produce(topic, [{"id": 1}])
    declare(project, topic, "SELECT named_struct('interval_void_variant', id) AS span FROM orders")
    project.refresh("large")
    assert sum(project.rows("large").values()) == 1


def add_rows(place: Path) -> None:
    write_deltalake(str(place), pa.table({"id": [1, 2]}))


def add_and_compact(place: Path) -> None:
    add_rows(place)
    write_deltalake(str(place), pa.table({"id": [3]}), mode="append")
    DeltaTable(str(place)).optimize.compact()


def add_and_clean_the_log(place: Path) -> None:
    add_and_compact(place)
    DeltaTable(str(place)).create_checkpoint()
    for version in (0, 1):
        (place / "_delta_log" / f"{version:020d}.json").unlink()


@pytest.mark.parametrize("make", [add_rows, add_and_compact, add_and_clean_the_log])
def test_an_external_table_in_the_place_of_a_view_is_refused_and_left_as_it_is(
    project: Project, make: Callable[[Path], None]
) -> None:
    topic = project.topic()
    project.produce(topic, [{"id": 9}])
    declare(project, topic)
    place = project.root / "warehouse" / "views" / "large"
    make(place)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    with pytest.raises(BackfillError) as caught:
        project.refresh("large")
    assert caught.value.code in {ExternalWriteError.code, "POSITIONS_LOST"}
    assert "views/large" in caught.value.message
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
