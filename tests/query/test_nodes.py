"""Nodes are found in the order in which sqlglot itself finds them."""

import pytest
from sqlglot import exp

from backfill_assets.query.nodes import all_of
from backfill_assets.query.parsing import parse, tokenize
from tests.support import nexmark, tpch


@pytest.mark.parametrize("types", [(exp.Expr,), (exp.Column,), (exp.Table, exp.Select), (exp.CTE,)])
def test_nodes_are_those_that_sqlglot_finds_in_its_order(types: tuple[type[exp.Expr], ...]) -> None:
    found = 0
    for query in (*tpch.QUERIES.values(), *nexmark.QUERIES.values()):
        tree = parse(query, tokenize(query))
        nodes = all_of(tree, *types)
        assert [*map(id, nodes)] == [*map(id, tree.find_all(*types))]
        found += len(nodes)
    assert found > 0
