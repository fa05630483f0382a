"""What first rows of a subquery have to do with rows around it: nothing that a key would tell."""

import pytest
from sqlglot import exp

from backfill_assets.query.computed_keys import ComputedKeys
from backfill_assets.query.covers import covers
from backfill_assets.query.key_classes import key_classes
from backfill_assets.query.nodes import all_of
from backfill_assets.query.occurrences import occurrences
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.partition import PLACE, Shape, partition
from backfill_assets.query.resolved import resolved, spelled_alias
from tests.support.three_tables import columns_of

FIRST_ROWS = [
    "SELECT id FROM a WHERE id IN ((SELECT id FROM b) ORDER BY id LIMIT 3)",
    "SELECT a.id FROM a JOIN ((SELECT id FROM b) ORDER BY id LIMIT 3) AS x ON a.id = x.id",
    "SELECT id FROM a UNION ((SELECT id FROM b) ORDER BY id LIMIT 3)",
]


def shape_of(query: str) -> Shape:
    tokens = tokenize(query)
    root = parse(query, tokens)
    tables = {name: columns_of(name) for name in "ab"}
    found = occurrences(root, list(tables))
    tree = resolved(root, found, tables)
    assert tree is not None
    types = [{column.name: column.type for column in tables[each.upstream]} for each in found]
    key_classes(root, tokens, tree, types)
    return Shape(tree, ComputedKeys.of(tree))


def ids_of(shape: Shape) -> dict[int, str]:
    """The column `id` of each table, by its place."""
    return {table.meta[PLACE]: f"{spelled_alias(table)}.id" for table in all_of(shape.tree, exp.Table)}


@pytest.mark.parametrize("query", FIRST_ROWS)
def test_what_first_rows_are_compared_with_is_not_one_key_with_theirs(query: str) -> None:
    shape = shape_of(query)
    assert {len(cover) for _, cover in covers(shape.tree, shape.computed)} == {1}


@pytest.mark.parametrize("query", FIRST_ROWS)
def test_the_table_of_first_rows_is_left_out_of_a_key(query: str) -> None:
    shape = shape_of(query)
    ids = ids_of(shape)
    assert len(ids) == 2
    (first,) = (at for at, column in ids.items() if "b" in column)
    assert partition(shape, first, ids) is None
    found = partition(shape, 1 - first, ids)
    assert found is None or found.cover.keys() == {1 - first}


def test_all_rows_of_a_subquery_are_one_key_with_what_they_are_compared_with() -> None:
    shape = shape_of("SELECT id FROM a WHERE id IN (SELECT id FROM b)")
    found = partition(shape, 0, ids_of(shape))
    assert found is not None
    assert found.cover.keys() == {0, 1}
    assert 2 in {len(cover) for _, cover in covers(shape.tree, shape.computed)}
