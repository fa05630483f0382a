"""Which rows tell the keys of a view that changes of a place without one may touch."""

import pytest

from backfill_assets.query.ddl import Column
from backfill_assets.query.relational import RelationalQuery, analyze_relational

TABLES = {
    "a": "id BIGINT, k BIGINT, v BIGINT",
    "b": "id BIGINT, k BIGINT, v BIGINT",
    "c": "id BIGINT, k BIGINT, v BIGINT, f DOUBLE",
}
WITHIN = "SELECT x.id FROM a x WHERE x.id IN (SELECT b.k FROM b WHERE b.v IN (SELECT c.id FROM c))"


def analyzed(query: str) -> RelationalQuery:
    named = {name: columns for name, columns in TABLES.items() if f" {name} " in f"{query} ".replace(")", " ")}
    return analyze_relational(
        query, {name: tuple(Column(*each.split()) for each in columns.split(", ")) for name, columns in named.items()}
    )


@pytest.mark.parametrize(
    ("query", "place", "steps"),
    [
        pytest.param(WITHIN, 2, [(2, "id", 1, "v")], id="a subquery in a subquery"),
        pytest.param(
            "SELECT DISTINCT b.k FROM a JOIN b ON a.id = b.id", 0, [(0, "id", 1, "id")], id="a join below DISTINCT"
        ),
        pytest.param(
            "SELECT b.k, count(DISTINCT a.v) AS n FROM c JOIN a ON c.k = a.v JOIN b ON a.id = b.id GROUP BY b.k",
            0,
            [(0, "k", 1, "v"), (1, "id", 2, "id")],
            id="two steps",
        ),
        pytest.param(
            "SELECT k, max(v) OVER (PARTITION BY k) AS most FROM (SELECT b.k, a.v, "
            "rank() OVER (PARTITION BY b.id, b.k ORDER BY a.v) AS place FROM a JOIN b ON a.id = b.id) WHERE place = 1",
            0,
            [(0, "id", 1, "id")],
            id="a window over a window",
        ),
        pytest.param(
            "SELECT a.id, (SELECT max(b.v) FROM b WHERE b.k = a.id AND b.v IN (SELECT c.k FROM c)) AS most FROM a",
            1,
            [(1, "k", 0, "v")],
            id="a subquery of the SELECT list, which is the first place of the text",
        ),
    ],
)
def test_changes_lead_from_place_to_place_to_a_key(query: str, place: int, steps: list[tuple[object, ...]]) -> None:
    made = analyzed(query)
    found = made.classes.lifts[place]
    assert [
        (each.known, each.key.columns[each.known], to, each.key.columns[to]) for each in found for to in each.others
    ] == steps
    key = made.classes.classes[made.classes.of[place]]
    assert place not in key.columns
    assert steps[-1][2] in key.columns
    assert made.steps([made.occurrences[place]]).rule == "restricted"


@pytest.mark.parametrize(
    ("query", "place"),
    [
        pytest.param(
            "SELECT DISTINCT a.k FROM c JOIN a ON c.v < a.v LEFT JOIN b ON b.id = c.id AND b.k = a.k",
            0,
            id="rows are there without the side that an outer join may leave out",
        ),
        pytest.param("SELECT DISTINCT b.k FROM c JOIN b ON c.f = b.v", 0, id="floats are no key"),
        pytest.param("SELECT DISTINCT b.k FROM a JOIN b ON a.id < b.id", 0, id="nothing is equal"),
        pytest.param(f"{WITHIN.replace('b.v IN', 'b.v > 1 OR b.v IN')}", 2, id="OR is no comparison by a key"),
        pytest.param(
            "SELECT DISTINCT b.k FROM b JOIN (SELECT count(*) AS n, max(id) AS id FROM a) x ON x.id = b.id",
            1,
            id="groups of everything",
        ),
    ],
)
def test_changes_lead_nowhere(query: str, place: int) -> None:
    made = analyzed(query)
    assert place not in made.classes.lifts
    assert made.steps([made.occurrences[place]]).rule == "full"


def test_not_in_leads_to_a_key_where_nothing_that_it_compares_is_null() -> None:
    made = analyzed(WITHIN.replace("b.v IN", "b.v NOT IN"))
    assert [step.others for step in made.classes.lifts[2]] == [(1,)]
    assert made.steps(["c"]).nulls == ((1, "v"), (2, "id"))
    assert made.steps(["b"]).nulls == ()
    assert (made.steps(["b"]).are_certain, made.steps(["c"]).are_certain) == (True, False)


def test_places_with_a_key_or_followed_by_changed_rows_alone_need_no_steps() -> None:
    for query in (
        "SELECT a.id, b.v FROM a JOIN b ON a.k = b.k",
        "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k",
        "SELECT b.k, count(*) AS n FROM a JOIN b ON a.id = b.id GROUP BY b.k",
    ):
        made = analyzed(query)
        assert not (made.grouped.rows if made.grouped else made).classes.lifts
