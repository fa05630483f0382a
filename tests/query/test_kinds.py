"""The kinds of values that a tree says, and those that it does not."""

from sqlglot import exp

from backfill_assets.query.kinds import are_typed, kind_of
from backfill_assets.query.parsing import parse, tokenize


def test_a_value_has_a_kind_once_its_type_is_known() -> None:
    text = "SELECT x, x + 1, upper(s) FROM t"
    tree = parse(text, tokenize(text))
    assert isinstance(tree, exp.Select)
    assert [kind_of(each) for each in tree.expressions] == ["", "", ""]
    assert are_typed(tree, [])
    assert [kind_of(each) for each in tree.expressions] == ["", "", "STRING"]
