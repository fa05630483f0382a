"""The SELECT list of a query, and whether a longer one leaves the rows of a shorter one as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.query.select_list import SelectList, select_list

ITEMS = st.sampled_from([
    "a",
    "b + 1",
    "f(a, b) AS c",
    "array(1, 2)[0]",
    "CASE WHEN a IN (1, 2) THEN 'x, y' END",
    "(SELECT max(x) FROM u WHERE u.k = t.k) AS m",
    "sum(a) OVER (PARTITION BY b ORDER BY c) AS s",
    "extract(DAY FROM at)",
    "`a, b`",
    "count(DISTINCT a)",
    "a IS NOT DISTINCT FROM b AS same",
])
AROUND = st.sampled_from([
    ("SELECT", "FROM t WHERE a > 0"),
    (
        "WITH x AS (SELECT DISTINCT a, b FROM u LIMIT 3) SELECT",
        "FROM x JOIN t ON x.a = t.a GROUP BY t.a HAVING count(*) > 1",
    ),
    ("select", "from (select a, b from u union all select a, b from v) t order by a"),
    ("SELECT", "FROM t WHERE a IS DISTINCT FROM 3"),
])


@given(st.lists(ITEMS, min_size=1, max_size=6), AROUND)
def test_a_list_is_cut_at_its_commas_and_nowhere_else(items: list[str], around: tuple[str, str]) -> None:
    found = select_list(f"{around[0]} {', '.join(items)} {around[1]}")
    assert found == SelectList(items=tuple(items), around=around)
    assert found.first(1) == select_list(f"{around[0]} {items[0]} {around[1]}")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT a FROM t",
        "SELECT DISTINCT FROM t",
        "SELECT a FROM t UNION ALL SELECT a FROM u",
        "SELECT a FROM t INTERSECT SELECT a FROM u",
        "SELECT a FROM t UNION (SELECT a FROM u)",
        "(SELECT a FROM t)",
        "SELECT a FROM t ORDER BY a LIMIT 3",
        "SELECT a FROM t OFFSET 3",
        "SELECT a FROM t GROUP BY ALL",
        "SELECT 1",
        "SELECT FROM t",
        "FROM t SELECT a",
        "VALUES (1)",
        "SELECT 'a",
        "",
    ],
)
def test_where_a_longer_list_may_give_other_rows_there_is_none(query: str) -> None:
    assert select_list(query) is None
