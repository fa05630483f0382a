"""The kinds of values that a tree says, and those that it does not."""

import pytest
from sqlglot import exp

from backfill_assets.query.ddl import Column
from backfill_assets.query.kinds import are_typed, kind_of
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.query import analyze
from backfill_assets.query.relational import RelationalQuery


def test_a_value_has_a_kind_once_its_type_is_known() -> None:
    text = "SELECT x, x + 1, upper(s) FROM t"
    tree = parse(text, tokenize(text))
    assert isinstance(tree, exp.Select)
    assert [kind_of(each) for each in tree.expressions] == ["", "", ""]
    assert are_typed(tree, [])
    assert [kind_of(each) for each in tree.expressions] == ["", "", "STRING"]


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        ("SELECT DISTINCT id FROM t WHERE x IS NULL", "restricted"),
        ("SELECT t.x, sum(u.id) AS s FROM t JOIN t AS u ON t.id = u.id GROUP BY t.x", "additive"),
    ],
)
def test_over_columns_of_a_type_that_cannot_be_read_a_query_is_computed_in_full(query: str, rule: str) -> None:
    def rule_over(kind: str) -> str:
        found = analyze(query, {"t": (Column("id", "INT"), Column("x", kind))}, {"t": ("id",)})
        assert isinstance(found, RelationalQuery)
        return found.steps(["t"]).rule

    assert [rule_over(kind) for kind in ("INT", "DECIMAL(", "'new'")] == [rule, "full", "full"]
