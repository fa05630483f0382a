"""What a view over Delta tables refuses, with a stable code, and that nothing was written before."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as Delta
from deltalake import Field, write_deltalake
from deltalake.schema import PrimitiveType

from backfill_assets.adapters.compute import key_checks
from backfill_assets.app.lifecycle import reset
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.errors import (
    BackfillError,
    DuplicateKeyError,
    PoisonRowError,
    QueryError,
    UpstreamChangedError,
    UpstreamRefusedError,
    VersionsLostError,
)
from tests.support.lake import FEED, Lake

pytestmark = pytest.mark.e2e

APPEND_ONLY = {"delta.appendOnly": "true"}
ONE = Limits(chunk_rows=1, max_rows=1)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def refused(lake: Lake, error: type[BackfillError], *, view: str = "large") -> BackfillError:
    """A refresh that is refused; neither the view's commits nor its files change."""
    before = state(lake, view)
    with pytest.raises(error) as found:
        lake.project.refresh(view)
    assert state(lake, view) == before
    return found.value


def state(lake: Lake, view: str) -> object:
    folder = Path(lake.location(view))
    look = lake.project.workspace().table(lake.project.declared[view]).output.look()
    return look.record, sorted(folder.glob("*-*/__op=*/*.parquet")) if look.record else folder.exists()


def test_a_table_that_cannot_be_followed_is_refused_before_anything_is_written(lake: Lake) -> None:
    lake.append("orders", [{"id": 1}], configuration={})
    lake.view("large", "SELECT id FROM orders", lake.table("orders"))
    assert refused(lake, UpstreamRefusedError).facts["reason"] == "NO_CHANGE_FEED"
    lake.view("lost", "SELECT id FROM nowhere", lake.table("nowhere"))
    assert refused(lake, UpstreamRefusedError, view="lost").facts["reason"] == "NO_TABLE"
    lake.append("feeds", [{"id": 1, "_Change_Type": "insert"}])
    lake.view("archive", "SELECT id FROM feeds", lake.table("feeds"))
    assert refused(lake, UpstreamRefusedError, view="archive").facts == {
        "reason": "RESERVED_COLUMN",
        "column": "_Change_Type",
    }
    lake.view("keyed", "SELECT id FROM orders", lake.table("orders", key="other"))
    Delta(lake.path("orders")).alter.set_table_properties(FEED)
    assert refused(lake, UpstreamRefusedError, view="keyed").facts["reason"] == "UNKNOWN_KEY"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT o.id, date_add(o.name, p.id) AS d FROM orders o JOIN orders p ON o.id = p.id",
        "SELECT name, max(date_add(name, id)) AS s FROM orders GROUP BY name",
        "SELECT id, array_contains(id, name) AS c FROM orders",
    ],
    ids=["joined", "groups", "rows"],
)
def test_what_spark_refuses_of_a_query_is_told_as_its_fault(lake: Lake, query: str) -> None:
    lake.append("orders", [{"id": 1, "name": "A"}])
    lake.view("large", query, lake.table("orders"))
    error = refused(lake, QueryError)
    assert ("array_contains" if "array" in query else "date_add") in str(error)
    assert not Path(lake.location("large")).exists()


def test_texts_with_a_collation_are_refused_where_the_view_names_them(lake: Lake) -> None:
    lake.append("orders", [{"id": 1, "name": "A"}, {"id": 2, "name": "a"}])
    log = Path(lake.path("orders"), "_delta_log", f"{0:020d}.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (metadata,) = (each["metaData"] for each in actions if "metaData" in each)
    schema = json.loads(metadata["schemaString"])
    schema["fields"][1]["metadata"] = {"__COLLATIONS": {"name": "spark.UTF8_LCASE"}}
    metadata["schemaString"] = json.dumps(schema)
    log.write_text("\n".join(map(json.dumps, actions)))

    lake.view("large", "SELECT name, count(*) AS n FROM orders GROUP BY name", lake.table("orders"))
    assert refused(lake, UpstreamRefusedError).facts == {"reason": "COLLATED_COLUMN", "column": "name"}
    lake.view("ids", "SELECT id FROM orders", lake.table("orders"))
    lake.project.refresh("ids")
    assert lake.found("ids", ["id"]) == {(1,): 1, (2,): 1}
    lake.view("keyed", "SELECT id FROM orders", lake.table("orders", key="name"))
    assert refused(lake, UpstreamRefusedError, view="keyed").facts["reason"] == "COLLATED_COLUMN"


def test_an_append_only_table_needs_no_feed_until_it_has_neither(lake: Lake) -> None:
    lake.append("orders", ({"id": at} for at in range(10)), configuration=APPEND_ONLY)
    lake.view("large", "SELECT id + 1 AS next FROM orders WHERE id <> 3", lake.table("orders", key=None))
    lake.project.refresh("large")
    for at in range(10, 13):
        lake.append("orders", [{"id": at}])
    Delta(lake.path("orders")).optimize.compact()
    done = lake.project.refresh("large").report
    assert (done.record.rows_total, done.record.engine) == (12, "append")
    assert lake.found("large", ["next"]) == {(at + 1,): 1 for at in range(13) if at != 3}
    assert lake.project.check("large", "exactly_once").passed

    Delta(lake.path("orders")).alter.set_table_properties(FEED)
    lake.append("orders", [{"id": 13}])
    lake.project.refresh("large")
    assert lake.found("large", ["next"]) == {(at + 1,): 1 for at in range(14) if at != 3}
    Delta(lake.path("orders")).alter.set_table_properties({"delta.appendOnly": "false"})
    lake.sql("orders", "DELETE FROM {t} WHERE id = 1")
    error = refused(lake, UpstreamRefusedError)
    assert (error.facts["reason"], error.facts["version"]) == ("NO_KEY", Delta(lake.path("orders")).version())
    off = {"delta.enableChangeDataFeed": "false"}
    Delta(lake.path("orders")).alter.set_table_properties(off)
    assert refused(lake, UpstreamRefusedError).facts["reason"] == "NO_CHANGE_FEED"


def test_rows_without_a_key_that_go_are_followed_in_full_once_that_is_asked_for(lake: Lake) -> None:
    lake.append("orders", [{"id": 1}, {"id": 1}, {"id": 2}])
    lake.view("large", "SELECT id FROM orders", lake.table("orders", key=None))
    lake.project.refresh("large")
    lake.sql("orders", "DELETE FROM {t} WHERE id = 2")
    assert "refresh_mode='full' for the view; then `backfill reset large`" in refused(lake, UpstreamRefusedError).hint
    lake.view("large", "SELECT id FROM orders", lake.table("orders", key=None), refresh_mode="full")
    reset(lake.project.workspace(), "large")
    lake.project.refresh("large")
    lake.append("orders", [{"id": 3}])
    lake.sql("orders", "DELETE FROM {t} WHERE id = 1")
    lake.project.refresh("large")
    assert lake.found("large", ["id"]) == {(3,): 1}


@pytest.mark.full
def test_a_feed_that_was_turned_off_since_is_still_read_where_it_was_written(lake: Lake) -> None:
    lake.append("orders", ({"id": at, "part": at % 2} for at in range(10)), partition_by=["part"])
    lake.view("large", "SELECT id FROM orders", lake.table("orders"))
    lake.project.refresh("large")
    lake.sql("orders", "DELETE FROM {t} WHERE part = 1")
    Delta(lake.path("orders")).alter.set_table_properties({**APPEND_ONLY, "delta.enableChangeDataFeed": "false"})
    lake.append("orders", [{"id": 11, "part": 1}])
    lake.project.refresh("large")
    assert lake.found("large", ["id"]) == {(at,): 1 for at in (0, 2, 4, 6, 8, 11)}


def test_a_key_that_is_not_unique_is_refused_at_the_snapshot_and_when_it_comes_later(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.append("orders", [{"id": 1, "at": 1}, {"id": 2, "at": 1}, {"id": 1, "at": 2}])
    lake.view("large", "SELECT id, at FROM orders WHERE at > 0", lake.table("orders"))
    assert refused(lake, DuplicateKeyError).facts["keys"] == [["1"]]
    lake.sql("orders", "DELETE FROM {t} WHERE id = 1 AND at = 2")
    assert lake.project.refresh("large").report.record.rows_total == 2

    lake.append("orders", [{"id": 2, "at": 3}])
    assert refused(lake, DuplicateKeyError).facts["keys"] == [["2"]]
    monkeypatch.setattr(key_checks, "fit_in", lambda _spark, _keys: False)
    assert refused(lake, DuplicateKeyError).facts["keys"] == [["2"]], "as long as nothing corrects it, by sorting too"
    lake.sql("orders", "DELETE FROM {t} WHERE at = 3")
    lake.append("orders", [{"id": 3, "at": 3}, {"id": 4, "at": 3}])
    assert lake.project.refresh("large", Limits(chunk_rows=1)).report.record.live, (
        "what corrects it came after the plan"
    )
    lake.append("orders", [{"id": 5, "at": 4}, {"id": 5, "at": 5}])
    assert refused(lake, DuplicateKeyError).facts["keys"] == [["5"]]
    assert lake.found("large", ["id", "at"]) == {(1, 1): 1, (2, 1): 1, (3, 3): 1, (4, 3): 1}


def test_what_spark_cannot_compute_is_named_and_nothing_of_it_is_committed(lake: Lake) -> None:
    lake.append("orders", [{"id": 1, "text": "1"}, {"id": 2, "text": "two"}])
    lake.view("large", "SELECT id, CAST(text AS INT) AS number FROM orders", lake.table("orders"))
    for _ in range(2):  # the plan is repeated unchanged
        with pytest.raises(PoisonRowError, match="epoch 1 cannot be computed: table orders, key id = 2: "):
            lake.project.refresh("large")
        assert (lake.project.record("large").epoch, lake.found("large", ["id"]).total()) == (0, 0)
    lake.sql("orders", "UPDATE {t} SET text = '2' WHERE id = 2")
    reset(lake.project.workspace(), "large")
    assert lake.project.refresh("large").report.record.live
    assert lake.found("large", ["id", "number"]) == {(1, 1): 1, (2, 2): 1}


def dropped(table: Delta) -> None:
    """Drop column `b`, by an overwrite with a schema without it."""
    write(table, pa.table({"id": [1], "c": [1]}))


def retyped(table: Delta) -> None:
    """Change column `b` to a string."""
    write(table, pa.table({"id": [1], "b": ["x"], "c": [1]}))


def write(table: Delta, rows: pa.Table) -> None:
    write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite")


@pytest.mark.parametrize("change", [dropped, retyped])
def test_a_column_that_goes_or_changes_its_type_is_refused_naming_the_version(
    lake: Lake, change: Callable[[Delta], None]
) -> None:
    lake.append("orders", [{"id": at, "b": at, "c": at} for at in range(5)])
    lake.view("large", "SELECT id, b FROM orders", lake.table("orders"))
    lake.project.refresh("large")
    lake.append("orders", [{"id": 7, "b": 7, "c": 7}])
    Delta(lake.path("orders")).alter.add_columns([Field("d", PrimitiveType("string"))])
    change(Delta(lake.path("orders")))
    error = refused(lake, UpstreamChangedError)
    assert (error.facts["version"], error.facts["column"]) == (3, "b")


def lose_files(lake: Lake) -> int:
    """What a VACUUM leaves of the pinned version after an overwrite."""
    lake.append("orders", [{"id": 9}], mode="overwrite")
    Delta(lake.path("orders")).vacuum(0, dry_run=False, enforce_retention_duration=False)
    return 2


def lose_log(lake: Lake) -> int:
    """The log after its cleanup: everything before a checkpoint is gone, including the pinned version and those after
    it."""
    pinned = Delta(lake.path("orders")).version()
    for at in range(10, 13):
        lake.append("orders", [{"id": at}])
    Delta(lake.path("orders")).create_checkpoint()
    for version in range(pinned + 3):
        (Path(lake.path("orders")) / f"_delta_log/{version:020d}.json").unlink()
    return pinned


@pytest.mark.parametrize("lose", [lose_files, lose_log])
def test_what_is_lost_during_the_snapshot_is_an_error_and_a_reset_continues(
    lake: Lake, lose: Callable[[Lake], int]
) -> None:
    for at in range(3):
        lake.append("orders", [{"id": at}])
    lake.view("large", "SELECT id FROM orders", lake.table("orders"))
    lake.project.refresh("large", ONE)
    version = lose(lake)
    assert refused(lake, VersionsLostError).facts["version"] == version
    begin_again(lake)
    assert lake.found("large", ["id"]) == lake.expected("large", "SELECT id FROM orders", "orders")


def test_versions_that_the_log_lost_after_the_view_was_live_are_named(lake: Lake) -> None:
    lake.append("orders", [{"id": 0}])
    lake.view("large", "SELECT id FROM orders", lake.table("orders"))
    lake.project.refresh("large")
    version = lose_log(lake) + 1  # the pinned version itself has been read
    assert refused(lake, VersionsLostError).facts["version"] == version


def test_a_table_recreated_at_the_same_path_is_another_one(lake: Lake) -> None:
    lake.append("orders", [{"id": at} for at in range(3)])
    lake.view("large", "SELECT id FROM orders", lake.table("orders"))
    lake.project.refresh("large")
    shutil.rmtree(lake.path("orders"))
    assert refused(lake, UpstreamRefusedError).facts["reason"] == "NO_TABLE"
    lake.append("orders", [{"id": 7}])
    expected: dict[str, Any] = {"found": str(Delta(lake.path("orders")).metadata().id)}
    assert expected.items() <= refused(lake, UpstreamChangedError).facts.items()
    begin_again(lake)
    assert lake.found("large", ["id"]) == {(7,): 1}
    lake.append("orders", [{"id": 8}])
    lake.project.refresh("large")
    (Path(lake.path("orders")) / f"_delta_log/{1:020d}.json").unlink()
    assert refused(lake, UpstreamChangedError).facts["found"] == 0


def begin_again(lake: Lake) -> None:
    reset(lake.project.workspace(), "large")
    lake.project.refresh("large")
