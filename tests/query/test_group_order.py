"""Windows over groups: their order is completed by what tells the groups apart, or refused with the reason."""

import pytest

from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.query import analyze, spelled

ORDERED = "row_number() OVER (ORDER BY count(*) DESC)"
T = parse_schema("id BIGINT, name STRING, at TIMESTAMP")

COMPLETED = {
    f"SELECT name, {ORDERED} AS n FROM t GROUP BY name": ["name"],
    f"SELECT id, {ORDERED} AS n FROM t GROUP BY name, id % 3, id": ["name, id % 3, id"],
    f"SELECT upper(name) AS u, {ORDERED} AS n FROM t GROUP BY 1": ["upper(name)"],
    f"SELECT DISTINCT upper(name) u, {ORDERED} AS n FROM t GROUP BY u, at HAVING count(*) > 1": ["upper(name), at"],
    f"SELECT t.name AS name, {ORDERED} AS n FROM t GROUP BY name ORDER BY 1": ["name"],
    f"SELECT * EXCEPT (at), {ORDERED} AS n FROM t GROUP BY id, name": ["id, name"],
    f"SELECT 'a,b' AS x, {ORDERED} AS n FROM t GROUP BY concat(name, ','), 'a,b'": ["concat(name, ','), 'a,b'"],
    f"SELECT coalesce(1 + {ORDERED}, 0) AS n FROM t WHERE id IS DISTINCT FROM 3 GROUP BY id IS DISTINCT FROM 4": [
        "id IS DISTINCT FROM 4"
    ],
    f"SELECT name, {ORDERED} AS n FROM t GROUP BY name UNION ALL SELECT name, {ORDERED} AS n FROM t GROUP BY id, name": [
        "name",
        "id, name",
    ],
    f"WITH x AS (SELECT name, {ORDERED} AS n FROM t GROUP BY name) SELECT name, "
    f"(SELECT max(at) FROM t WHERE t.name = x.name GROUP BY id) AS at FROM x "
    f"WHERE n IN (SELECT {ORDERED} FROM t GROUP BY at)": [
        "name",
        "at",
    ],
}


@pytest.mark.parametrize("query", COMPLETED)
def test_a_window_over_groups_is_ordered_by_what_tells_them_apart(query: str) -> None:
    text = spelled(query, ["t"])
    squeezed = text.replace(" ", "")
    for keys in COMPLETED[query]:
        assert f"desc,{keys})".replace(" ", "").lower() in squeezed
    assert spelled(text, ["t"]) == text


def test_frames_of_rows_over_groups_are_completed_and_ranks_are_not() -> None:
    items = "sum(count(*)) OVER (ORDER BY max(at) ROWS 1 PRECEDING) AS n, rank() OVER (ORDER BY id) AS r"
    text = spelled(f"SELECT {items} FROM t GROUP BY id", ["t"])
    assert "order by max (at), id rows 1 preceding" in text
    assert "rank () over (order by id)" in text


@pytest.mark.parametrize("item", [ORDERED, "lag(max(id)) IGNORE NULLS OVER (ORDER BY min(at))"])
def test_the_one_group_of_a_query_without_group_by_has_only_one_order(item: str) -> None:
    query = f"SELECT count(*) AS n, {item} AS m FROM t"
    assert spelled(query, ["t"]).count(",") == 1


@pytest.mark.parametrize("item", ["lag(id) IGNORE NULLS", "sum(id) FILTER (WHERE id > 1)"])
def test_rows_that_are_no_groups_are_told_apart_by_all_their_columns(item: str) -> None:
    query = f"SELECT {item} OVER (ORDER BY at ROWS CURRENT ROW) AS m FROM t"
    assert "order by at, struct (*)" in spelled(query, ["t"])


LATER = {
    f"SELECT upper(name) AS name, {ORDERED} AS n FROM t GROUP BY name": "name",
    f"SELECT date(at) AS day, at, {ORDERED} AS n FROM t GROUP BY day, at": "date(at), at",
    f"SELECT 'x' AS k, {ORDERED} AS n FROM t GROUP BY k": "'x'",
    f"SELECT 1 AS k, {ORDERED} AS n FROM (SELECT id AS k FROM t) GROUP BY k": "k",
}


@pytest.mark.parametrize("query", LATER)
def test_what_a_name_in_group_by_means_may_be_told_by_the_columns_of_tables(query: str) -> None:
    assert "desc)" in spelled(query, ["t"]), "columns are not known yet"
    assert f"desc,{LATER[query]})".replace(" ", "") in analyze(query, {"t": T}, {"t": ("id",)}).text.replace(" ", "")


REFUSED = {
    f"SELECT 1 AS k, 2 AS K, {ORDERED} AS n FROM t GROUP BY k": "k in GROUP BY may be a column",
    f"SELECT name, {ORDERED} AS n FROM t GROUP BY ALL": "GROUP BY ALL",
    f"SELECT name, {ORDERED} AS n FROM t GROUP BY ROLLUP (name)": "grouping sets",
    f"SELECT name, {ORDERED} AS n FROM t GROUP BY name WITH CUBE": "grouping sets",
    f"SELECT name, at, {ORDERED} AS n FROM t GROUP BY GROUPING SETS ((name), (at))": "grouping sets",
    f"SELECT name, {ORDERED} AS n FROM t GROUP BY 7": "GROUP BY 7",
    f"SELECT *, {ORDERED} AS n FROM t GROUP BY 1": "GROUP BY 1",
    f"SELECT 1 AS a, {ORDERED} AS n FROM t GROUP BY name::STRUCT<a: INT, b: INT>": "cannot be split at its commas",
    f"SELECT name::STRUCT<a: INT, b: INT> AS c, {ORDERED} AS n FROM t GROUP BY 1": "are not found in the text",
}


@pytest.mark.parametrize("query", REFUSED)
def test_where_groups_are_not_told_apart_the_reason_is_said(query: str) -> None:
    with pytest.raises(QueryError) as caught:
        analyze(query, {"t": T}, {"t": ("id",)})
    assert caught.value.reason == "ORDER_NOT_TOTAL"
    assert REFUSED[query] in caught.value.message
    assert caught.value.hint
