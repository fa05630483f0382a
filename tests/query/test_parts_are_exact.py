"""What a query gives for the parts into which a key divides the rows of tables is, together, what it gives: for random
queries, in another engine."""

from collections import Counter
from contextlib import closing

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from backfill_assets.query.ddl import Column
from backfill_assets.query.relational import analyze_relational
from tests.support.drawn_queries import nested_queries, queries, queries_of_computed, tables
from tests.support.rules_in_sqlite import Engine, Row, analyzed, of_table, told
from tests.support.settings import examples


@pytest.mark.drawn
def test_parts_of_a_key_give_together_what_the_query_gives() -> None:
    """Also where nothing is linear, and where places without the key are read with each part."""
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(40, 600), suppress_health_check=list(HealthCheck), print_blob=True)
    @given(st.data())
    def divide(data: st.DataObject) -> None:
        text = data.draw(st.one_of(queries(), nested_queries(), queries_of_computed()), label="query")
        query = analyzed(text)
        held = data.draw(tables(), label="tables")
        key = query.partitioning_key({name: len(rows) for name, rows in held.items()})
        assume(key is not None)
        assert key is not None
        count = data.draw(st.integers(2, 3), label="parts")
        whole = of_table(held, query)
        view: Counter[Row] = Counter()
        with closing(Engine(query)) as engine:
            for part in range(count):
                view.update(
                    engine.rows([
                        [
                            row
                            for row in rows
                            if at not in key.columns or hash(told(query, key, at, row)) % count == part
                        ]
                        for at, rows in enumerate(whole)
                    ])
                )
            assert view == Counter(engine.rows(whole)), (query.text, key)
        driven = query.grouped.rows if query.grouped else query
        seen["linear" if driven.linearity.linear else "not linear"] += 1
        seen["all places" if len(key.columns) == len(whole) else "places beside"] += 1

    divide()
    assert min(seen[each] for each in ("not linear", "all places", "places beside")) > 0, seen


def test_of_several_keys_the_one_that_covers_most_rows_divides_them() -> None:
    tables = {"a": (Column("k", "INT"),), "b": (Column("k", "INT"), Column("j", "INT")), "c": (Column("j", "INT"),)}
    text = "SELECT k, j FROM (SELECT DISTINCT b.k, b.j FROM b LEFT JOIN a ON a.k = b.k LEFT JOIN c ON c.j = b.j)"
    query = analyze_relational(text, tables)
    found = {}
    for name in "ac":
        key = query.partitioning_key({"a": 1, "b": 1, "c": 1, name: 100})
        assert key is not None
        found[name] = {query.occurrences[at]: key.value(at) for at in key.columns}
    assert found == {"a": {"a": "`k`", "b": "`k`"}, "c": {"b": "`j`", "c": "`j`"}}
    assert (
        analyze_relational("SELECT count(DISTINCT k) AS n FROM a", {"a": tables["a"]}).partitioning_key({"a": 1})
        is None
    )


def test_rows_that_are_in_several_windows_are_not_divided_by_these() -> None:
    text = "SELECT window(at, '1 hour', '20 minutes').start AS hour, count(DISTINCT v) AS n FROM t GROUP BY 1"
    tables = {"t": (Column("at", "TIMESTAMP"), Column("v", "INT"))}
    query = analyze_relational(text.replace("GROUP BY 1", "GROUP BY window(at, '1 hour', '20 minutes')"), tables)
    assert query.classes.classes, "the windows are a key"
    assert query.partitioning_key({"t": 1}) is None
