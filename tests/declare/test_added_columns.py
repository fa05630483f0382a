"""A changed declaration that only gives more columns is told by what the fingerprint of the old one says."""

from typing import Any

import pytest

from backfill_assets import delta_table, materialized_view
from backfill_assets.core.epoch.records import SELECT, Fingerprint, changed_parts
from backfill_assets.declare.added_columns import adds_columns, missing_columns
from backfill_assets.declare.fingerprints import fingerprint_of
from backfill_assets.declare.model import MaterializedView
from backfill_assets.query.ddl import Column

OLD = "SELECT a, b FROM t WHERE a > 0"
LONGER = "SELECT a, b, c FROM t WHERE a > 0"


def view(query: str, *, key: str = "a", **given: Any) -> MaterializedView:
    return materialized_view("view", query=query, upstreams=[delta_table("t", path="t", primary_key=key)], **given)


@pytest.mark.parametrize(
    ("query", "adds"),
    [
        (LONGER, True),
        ("SELECT a, b, c, a AS again FROM t WHERE a > 0", True),
        ("select a,\n  b, -- as before\n  c from t where a > 0", True),
        (OLD, False),
        ("SELECT a FROM t WHERE a > 0", False),
        ("SELECT a, c, b FROM t WHERE a > 0", False),
        ("SELECT b, a, c FROM t WHERE a > 0", False),
        ("SELECT a, b AS d, c FROM t WHERE a > 0", False),
        ("SELECT a, b, c FROM t WHERE a > 1", False),
        ("WITH x AS (SELECT 1) SELECT a, b, c FROM t WHERE a > 0", False),
        ("SELECT DISTINCT a, b, c FROM t WHERE a > 0", False),
        ("SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) AS n FROM t WHERE a > 0", False),
    ],
)
def test_only_expressions_at_the_end_of_the_list_are_added(query: str, adds: bool) -> None:
    assert adds_columns(fingerprint_of(view(OLD)), view(query)) is adds


def test_nothing_else_may_have_changed() -> None:
    built_with = fingerprint_of(view(OLD))
    assert not adds_columns(built_with, view(LONGER, key="b"))
    assert not adds_columns(built_with, view(LONGER, primary_key="b"))
    assert not adds_columns(built_with, view(LONGER, refresh_mode="full")), (
        "other rules, with hidden columns of their own"
    )
    assert not adds_columns(built_with, view(LONGER, refresh_mode="incremental_strict"))


@pytest.mark.parametrize("said", [{}, {SELECT: ""}, {SELECT: "x:y"}, {SELECT: "2:0123456789abcdef"}])
def test_a_table_that_does_not_say_its_columns_is_not_extended(said: Fingerprint) -> None:
    before = {name: digest for name, digest in fingerprint_of(view(OLD)).items() if name != SELECT} | said
    assert not adds_columns(before, view(LONGER))


def test_what_it_says_of_them_is_no_part_that_changes_by_itself() -> None:
    """Tables that were built before it was said go on."""
    before = fingerprint_of(view(OLD))
    assert changed_parts({name: before[name] for name in before if name != SELECT}, before) == []


def test_columns_are_missing_by_name_and_by_type() -> None:
    before = [Column("a", "INT"), Column("b", "STRING"), Column("c", "INT")]
    assert missing_columns(before, [Column("c", "BIGINT"), Column("a", "INT")]) == ["b", "c"]
    assert missing_columns(before, [Column("new", "INT"), *before]) == []
