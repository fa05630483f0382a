"""How declared tables are found and connected, over real Delta tables: Spark is not started for facts that logs
contain."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_assets import KafkaConnector, SparkResource, StateStore, delta_table, kafka_source, materialized_view
from backfill_assets.adapters.spark.reaching_runner import ReachingRunner
from backfill_assets.app.dry_run import Planned, plan
from backfill_assets.app.status import status
from backfill_assets.app.workspace import Workspace
from backfill_assets.cli.printing import plan_text
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.ports import of_kind
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.progress.reads import SnapshotRead
from backfill_assets.declare.model import KafkaSource, MaterializedView
from backfill_assets.environment import spool_bytes
from backfill_assets.errors import DeclarationError, EnvironmentSetupError, QueryError, UpstreamNotLiveError

EVENTS = delta_table("events", path="lake/events")
COPIED = materialized_view("copied", query="SELECT id FROM events", upstreams=[EVENTS])
CHILD = materialized_view("child", query="SELECT id + 1 AS id FROM copied", upstreams=[COPIED])
CLICKS = kafka_source("clicks", topic="clicks", schema="id LONG")
FEED = {"delta.enableChangeDataFeed": "true"}
ROWS = 7
TOTAL = "SELECT v, max(id) AS last FROM events GROUP BY v"


def workspace_of(root: Path, *declared: KafkaSource | MaterializedView) -> Workspace:
    return Workspace(
        declared={each.name: each for each in declared},
        store=StateStore(root=str(root)),
        kafka=KafkaConnector(bootstrap_servers="127.0.0.1:1", root=str(root)),
        spark=SparkResource(root=str(root)),
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A view over a table without a key, and one over that view."""
    write_deltalake(str(tmp_path / "lake" / "events"), pa.table({"id": list(range(ROWS))}), configuration=FEED)
    return workspace_of(tmp_path, CLICKS, COPIED, CHILD)


def test_what_is_not_declared_is_refused_with_what_there_is(workspace: Workspace) -> None:
    with pytest.raises(
        DeclarationError, match=r"there is no source or view 'nothing'; expected one of child, clicks, copied"
    ):
        workspace.registry.find("nothing")
    with pytest.raises(DeclarationError, match="expected a source, found view 'copied'"):
        workspace.registry.source("copied")


@pytest.mark.parametrize(("query", "at_once"), [("SELECT id FROM events", False), (TOTAL, True)])
def test_groups_take_all_captured_rows_at_once_as_they_may_need_the_newest_version(
    tmp_path: Path, query: str, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = delta_table("events", path="lake/events", primary_key="id")
    view = materialized_view("v", query=query, upstreams=[events], strategy="rearranged")
    write_deltalake(str(tmp_path / "lake" / "events"), pa.table({"id": [1], "v": [2]}), configuration=FEED)
    monkeypatch.setenv("BACKFILL_SPOOL_BYTES", "123")
    decider: Any = workspace_of(tmp_path, view).table(view).parts.decider
    history = decider.histories["rearranged"]
    assert (history.at_once, history.limit) == (at_once, 123)


@pytest.mark.parametrize("given", ["many", "-1", "1.5", "10 GB", "²"])
def test_a_size_of_the_spool_that_is_no_number_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKFILL_SPOOL_BYTES", given)
    with pytest.raises(EnvironmentSetupError, match=f"BACKFILL_SPOOL_BYTES is '{given}': expected a number of bytes"):
        spool_bytes()


@pytest.mark.parametrize(
    "upstreams",
    [(CLICKS, kafka_source("visits", topic="v", schema="id LONG")), (EVENTS, delta_table("more", path="lake/more"))],
)
def test_histories_are_read_in_the_order_that_is_declared(tmp_path: Path, upstreams: Any) -> None:
    for name in ("events", "more"):
        write_deltalake(str(tmp_path / "lake" / name), pa.table({"id": [1]}), configuration=FEED)
    first, second = (each.name for each in upstreams)
    query = f"SELECT id FROM {first} UNION ALL SELECT id FROM {second}"
    view = materialized_view("v", query=query, upstreams=upstreams, backfill_order=[second, first])
    sources = [each for each in upstreams if isinstance(each, KafkaSource)]
    decider: Any = workspace_of(tmp_path, *sources, view).table(view).parts.decider
    assert decider.order == view.backfill_order == {first: frozenset({second})}


@pytest.mark.parametrize("storage", [None, {"provider": "s3", "endpoint": "http://127.0.0.1:1", "region": "r"}])
def test_spark_reaches_the_stores_of_tables_before_it_reads_them(
    tmp_path: Path, storage: dict[str, str] | None
) -> None:
    given: dict[str, Any] = {"path": "lake/base"} if storage is None else {"path": "s3://raw/base", "storage": storage}
    view = materialized_view("v", query="SELECT id FROM base", upstreams=[delta_table("base", **given)])
    runner: Any = workspace_of(tmp_path, view).inputs(view).runner
    assert isinstance(runner, ReachingRunner)
    assert [each.uri for each in runner._tables()] == ([] if storage is None else ["s3://raw/base"])


def test_the_views_that_read_a_table_are_found(workspace: Workspace) -> None:
    assert [view.name for view in workspace.registry.readers("copied")] == ["child"]
    assert workspace.registry.readers("child") == []


def planned_over_two(root: Path, text: str) -> Planned:
    """What a refresh of a view over `events` and `others` would do."""
    for name in ("events", "others"):
        write_deltalake(str(root / "lake" / name), pa.table({"id": [1]}), configuration=FEED)
    view = materialized_view("joined", query=text, upstreams=[EVENTS, delta_table("others", path="lake/others")])
    return plan(workspace_of(root, view), "joined", Limits())


def test_a_plan_says_the_query_with_total_orders_and_how_each_change_is_followed(tmp_path: Path) -> None:
    number = "row_number() OVER (PARTITION BY e.id ORDER BY e.id)"
    text = f"SELECT e.id, {number} AS n FROM events e LEFT JOIN others o ON o.id > e.id"
    planned = planned_over_two(tmp_path, text)
    assert "order by e.id, struct (*)" in planned.query
    assert planned.document()["rules"] == {"events": "restricted", "others": "full"}


def test_a_plan_says_the_columns_that_a_star_stands_for_in_an_order(tmp_path: Path) -> None:
    text = "SELECT * FROM (SELECT e.id, o.id AS other FROM events e, others o) ORDER BY other DESC LIMIT 3"
    assert "order by other desc, 1, 2 limit 3" in planned_over_two(tmp_path, text).query


NUMBERED = "SELECT id, row_number() OVER (PARTITION BY part ORDER BY at{}) AS n FROM events"
ORDERED = [(NUMBERED.format(""), ["id", "at", "part"]), (NUMBERED.format(", struct(*)"), ["id", "at", "more", "part"])]


@pytest.mark.parametrize(("text", "named"), ORDERED)
def test_an_order_that_is_completed_depends_on_no_column_that_its_author_did_not_name(
    tmp_path: Path, text: str, named: list[str]
) -> None:
    rows = pa.table({name: [1] for name in ("id", "at", "more", "part")})
    write_deltalake(str(tmp_path / "lake" / "events"), rows, configuration=FEED)
    view = materialized_view("v", query=text, upstreams=[EVENTS])
    assert "struct (*)" in view.text
    columns = workspace_of(tmp_path, view).table(view).parts.decider.columns()
    assert [name for name, _ in columns["events"]] == named


LATE = [
    (
        "SELECT  Id,\n  -- nothing of that name\n  nope\nFROM events",
        "'nope', which the query names in line 3, column 3",
    ),
    (
        "SELECT E.id, o.id AS other\nFROM events AS E JOIN others AS o ON E.at > '12:30'",
        "'12:30' in line 2, column 45, which",
    ),
]


@pytest.mark.parametrize(("text", "said"), LATE)
def test_what_only_the_columns_of_tables_show_is_placed_in_the_text_as_it_was_written(
    tmp_path: Path, text: str, said: str
) -> None:
    upstreams = []
    for name in ("events", "others"):
        write_deltalake(
            str(tmp_path / "lake" / name), pa.table({"id": [1], "at": [datetime(2024, 1, 1)]}), configuration=FEED
        )
        upstreams += [delta_table(name, path=f"lake/{name}")] if name in text else []
    view = materialized_view("v", query=text, upstreams=upstreams)
    with pytest.raises(QueryError) as caught:
        workspace_of(tmp_path, view).table(view).parts.decider.begin()
    assert said in caught.value.message


def test_a_plan_says_which_changes_are_followed_only_without_nulls(tmp_path: Path) -> None:
    planned = planned_over_two(tmp_path, "SELECT e.id FROM events e WHERE e.id NOT IN (SELECT o.id FROM others o)")
    assert planned.document()["rules"] == {"events": "linear", "others": "restricted"}
    assert planned.document()["rules_without_nulls"] == ["others"]
    *_, events, others = plan_text("joined", planned).splitlines()
    assert "unless NOT IN compares a null" in others
    assert "NOT IN" not in events


def test_a_plan_says_which_changes_are_followed_only_while_subqueries_give_the_same_value(tmp_path: Path) -> None:
    planned = planned_over_two(tmp_path, "SELECT e.id FROM events e WHERE e.id > (SELECT max(o.id) FROM others o)")
    assert planned.document()["rules"] == {"events": "linear", "others": "linear"}
    assert planned.document()["rules_with_same_parameters"] == ["others"]
    *_, events, others = plan_text("joined", planned).splitlines()
    assert others.endswith("unless a subquery gives another value")
    assert "unless" not in events


def test_a_plan_says_that_enough_of_the_first_rows_have_to_be_known(tmp_path: Path) -> None:
    planned = planned_over_two(tmp_path, "SELECT e.id FROM events e JOIN others o ON o.id = e.id ORDER BY 1 LIMIT 3")
    assert planned.document()["rules"] == {"events": "linear", "others": "linear"}
    assert planned.document()["rules_with_enough_rows"] == ["events", "others"]
    assert plan_text("joined", planned).endswith("unless too few of the first rows are left")


def test_a_view_begins_at_the_newest_version_and_reads_all_its_files(workspace: Workspace) -> None:
    decider = workspace.table(COPIED).parts.decider
    begin = decider.begin()
    position = of_kind(begin.position, SnapshotPosition)
    assert (begin.total, begin.live, position.tables["events"].version) == (ROWS, False, 0)
    step = decider.next(position, live=False, budget=100)
    assert step is not None
    (read,) = step.reads
    assert isinstance(read, SnapshotRead)
    assert (read.source, read.rows, step.live) == ("events", ROWS, True)


def test_a_dry_run_names_the_strategy_that_the_view_would_begin_with(workspace: Workspace) -> None:
    planned = plan(workspace, "copied", Limits())
    assert planned.choice is not None
    assert (planned.record, planned.step) == (None, None)
    assert workspace.chooser(COPIED).decided() == planned.choice.chosen


def test_a_view_over_a_view_waits_until_that_one_is_created(workspace: Workspace) -> None:
    found = status(workspace, "child")
    assert (found.state, "waits for view 'copied'" in found.problem) == ("waiting", True)
    with pytest.raises(UpstreamNotLiveError):
        workspace.table(CHILD).parts.decider.begin()


def test_tables_that_are_read_are_opened_once_a_run(workspace: Workspace) -> None:
    assert workspace.upstream(COPIED) is workspace.upstream(COPIED)
    assert workspace.table(COPIED) is not workspace.table(COPIED)


def test_a_view_that_may_only_follow_is_refused_where_changes_have_no_rule(tmp_path: Path) -> None:
    for name in ("events", "others"):
        write_deltalake(str(tmp_path / "lake" / name), pa.table({"id": [1]}), configuration=FEED)
    others = delta_table("others", path="lake/others")
    store, kafka = StateStore(root=str(tmp_path)), KafkaConnector(bootstrap_servers="127.0.0.1:1", root=str(tmp_path))
    joined = "SELECT e.id, o.id AS other FROM events e LEFT JOIN others o ON"
    for text, refused in (
        (f"{joined} o.id > e.id", "'others' have no rule by which"),
        (
            "SELECT e.id FROM events e WHERE e.id NOT IN (SELECT o.id FROM others o)",
            "'others' have a rule only while NOT IN compares no null",
        ),
        (
            f"{joined} o.id = e.id ORDER BY 1, 2 LIMIT 3",
            "'events', 'others' have a rule only while enough of the first rows are known",
        ),
        (
            "SELECT e.id FROM events e WHERE e.id > (SELECT max(o.id) FROM others o)",
            "'others' have a rule only while subqueries for one value give the same",
        ),
        (f"{joined} o.id = e.id", ""),
    ):
        view = materialized_view("joined", query=text, upstreams=[EVENTS, others], refresh_mode="incremental_strict")
        every = Workspace(declared={"joined": view}, store=store, kafka=kafka, spark=SparkResource(root=str(tmp_path)))
        if not refused:
            assert plan(every, "joined", Limits()).rules == {"events": "linear", "others": "restricted"}
            continue
        with pytest.raises(QueryError, match=f"changes of {refused}") as caught:
            plan(every, "joined", Limits())
        assert caught.value.reason == "NO_RULE"


@pytest.mark.parametrize(
    ("query", "key", "said"),
    [
        ("SELECT * FROM events", "nothing", "the query does not return nothing"),
        (TOTAL, "last", r"an aggregate is keyed by its groups, \(v\), expected as primary_key, found \(last\)"),
    ],
)
def test_a_key_that_the_query_does_not_give_is_refused_when_columns_are_known(
    tmp_path: Path, query: str, key: str, said: str
) -> None:
    write_deltalake(str(tmp_path / "lake" / "events"), pa.table({"id": [1], "v": [2]}), configuration=FEED)
    view = materialized_view("v", query=query, upstreams=[EVENTS], primary_key=key)
    with pytest.raises(QueryError, match=said):
        workspace_of(tmp_path, view).table(view).parts.decider.begin()
