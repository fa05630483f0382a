"""Sources, tables and views that are declared in YAML."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from backfill_assets import Views
from backfill_assets.defs.component import SourceModel, ViewModel
from backfill_assets.errors import DeclarationError

ALL = """
sources:
  - {name: orders, topic: orders, schema: "order_id LONG, amount DOUBLE", start: latest}
tables:
  - {name: customers, path: lake/customers, primary_key: id}
views:
  - {name: large, upstreams: [orders], query: "SELECT order_id FROM orders WHERE amount > 100"}
  - {name: named, upstreams: [customers], query: "SELECT id, name FROM customers"}
  - {name: both, upstreams: [large, named], query: "SELECT l.order_id, n.name FROM large l JOIN named n ON n.id = l.order_id"}
"""


def test_what_is_declared_in_yaml_are_assets_over_each_other(tmp_path: Path) -> None:
    context: Any = SimpleNamespace(project_root=tmp_path)
    graph = Views(**yaml.safe_load(ALL)).build_defs(context).resolve_asset_graph()
    over = {
        key.to_user_string(): sorted(each.to_user_string() for each in graph.get(key).parent_keys)
        for key in graph.materializable_asset_keys
    }
    assert over == {
        "sources/orders": ["kafka/orders_topic"],
        "views/large": ["sources/orders"],
        "views/named": ["delta/customers"],
        "views/both": ["views/large", "views/named"],
    }


@pytest.mark.parametrize(
    ("start", "meant"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("2026-01-31T00:00:00+00:00", datetime(2026, 1, 31, tzinfo=UTC)),
        ({"0": 5, "12": 0}, {0: 5, 12: 0}),
    ],
)
def test_a_source_starts_where_it_is_written(start: Any, meant: Any) -> None:
    assert SourceModel(name="o", topic="o", schema="id LONG", start=start).declare().start == meant


def test_a_start_that_is_no_time_is_refused() -> None:
    with pytest.raises(DeclarationError, match="argument 'start' is 'yesterday'"):
        SourceModel(name="o", topic="o", schema="id LONG", start="yesterday").declare()


@pytest.mark.parametrize(("known", "named"), [({}, "none"), ({"b": None, "a": None}, "a, b")])
def test_a_view_reads_what_is_declared_before_it(known: Any, named: str) -> None:
    view = ViewModel(name="v", query="SELECT id FROM orders", upstreams=["orders"])
    with pytest.raises(DeclarationError, match="names orders, which are not declared before it") as refused:
        view.declare(known)
    assert f"declared before it are {named}" in str(refused.value)
