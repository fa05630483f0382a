"""Epochs that one task does, as their rows are few, and epochs with shuffles, in turn: each goes on where the other ended."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.adapters.compute import tasks
from tests.support.lake import Lake
from tests.support.project import Project

pytestmark = pytest.mark.e2e

VIEWS: dict[str, dict[str, Any]] = {
    "rows": {"query": "SELECT id, v * 2 AS twice FROM base WHERE v <> 3"},
    "groups": {"query": "SELECT v, count(*) AS n, sum(id) AS s, max(id) AS most FROM base GROUP BY v"},
    "joined": {"query": "SELECT b.v, o.id % 3 AS o FROM base b JOIN base o ON o.id % 7 = b.v", "refresh_mode": "full"},
    "keyed": {
        "query": "SELECT b.v AS v, max(b.id) AS id FROM base b JOIN base o ON o.id = b.v GROUP BY b.v",
        "refresh_mode": "full",
        "primary_key": "v",
    },
}


FIRST = [pytest.param(False, id="shuffled first"), pytest.param(True, id="one task first", marks=pytest.mark.full)]
"""Both orders: the second builds the view by one task, which all other tests of small views do, too."""


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("name", list(VIEWS))
def test_views_follow_by_one_task_and_by_shuffles_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, first: bool
) -> None:
    lake = Lake(tmp_path)
    lake.append("base", [{"id": at, "v": at % 6 or None} for at in range(30)])
    given = dict(VIEWS[name])
    query = given.pop("query")
    lake.view(name, query, lake.table("base"), **given)
    changes: tuple[list[str], ...] = (
        ["DELETE FROM {t} WHERE id = 29"],
        ["DELETE FROM {t} WHERE v = 5", "UPDATE {t} SET v = 1 WHERE id IN (2, 3)", "INSERT INTO {t} VALUES (40, 8)"],
        [
            "UPDATE {t} SET v = NULL WHERE v = 2",
            "INSERT INTO {t} VALUES (41, 5), (42, 4)",
            "DELETE FROM {t} WHERE v = 8",
        ],
    )
    few = first
    for statements in changes:
        monkeypatch.setattr(tasks, "FILES_OF_TASK", 32 if few else -1)
        lake.sql("base", *statements)
        lake.project.refresh(name)
        assert lake.shown(name) == lake.expected(name, query, "base") != Counter(), (few, statements)
        few = not few


@pytest.mark.parametrize("first", FIRST)
def test_groups_over_a_topic_follow_by_one_task_and_by_shuffles_in_turn(
    project: Project, monkeypatch: pytest.MonkeyPatch, *, first: bool
) -> None:
    topic = project.topic(partitions=3)
    orders = kafka_source("orders", topic=topic, schema="id LONG, v LONG")
    sums = materialized_view(
        "sums", query="SELECT v, count(*) AS n, min(id) AS least FROM orders GROUP BY v", upstreams=[orders]
    )
    project.declare(orders, sums)
    sent: list[dict[str, Any]] = []
    few = first
    for values in ((1, 2, None), (2, 3), (None, 1, 4)):
        monkeypatch.setattr(tasks, "FILES_OF_TASK", 32 if few else -1)
        sent += (batch := [{"id": len(sent) + at, "v": v} for at, v in enumerate(values)])
        project.produce(topic, batch)
        project.refresh("orders")
        project.refresh("sums")
        groups: dict[Any, list[int]] = {}
        for each in sent:
            groups.setdefault(each["v"], []).append(each["id"])
        assert project.rows("sums", "v", "n", "least") == Counter(
            (v, len(ids), min(ids)) for v, ids in groups.items()
        ), few
        few = not few
