"""From which place, in the order of the text, and column a view's column is read as it is."""

import pytest

from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.relational import analyze_relational

TABLES = {"a": parse_schema("id BIGINT, k INT, Name STRING"), "b": parse_schema("id BIGINT, x INT, day DATE")}

CASES: dict[str, dict[str, tuple[int, str]]] = {
    "SELECT a.id, b.x FROM a JOIN b ON a.k = b.id": {"id": (0, "id"), "x": (1, "x")},
    "SELECT b.id AS other, a.NAME FROM a JOIN b ON a.k = b.id": {"other": (1, "id"), "name": (0, "name")},
    "SELECT a.id + 1 AS id, -b.x AS x, day FROM a JOIN b ON a.k = b.id": {"day": (1, "day")},
    "SELECT CAST(a.id AS INT) AS id, max(x) AS x FROM a JOIN b ON a.k = b.id GROUP BY a.id": {},
    "SELECT k, count(*) AS n FROM a JOIN b ON a.id = b.id GROUP BY k": {"k": (0, "k")},
    "SELECT t.z FROM (SELECT x AS z, a.id FROM a JOIN b ON a.id = b.id) t": {"z": (1, "x")},
    "WITH t AS (SELECT b.id AS v, x + 1 AS w FROM b) SELECT v, w, a.k FROM a JOIN t ON a.id = v": {
        "v": (1, "id"),
        "k": (0, "k"),
    },
    "SELECT id, k FROM a JOIN b USING (id)": {"k": (0, "k")},
    "SELECT a.id FROM a JOIN b ON a.id = b.id UNION ALL SELECT x FROM b": {"id": (0, "id")},
    "SELECT l.id, r.k FROM a l JOIN a r ON l.k = r.k JOIN b ON b.id = l.id": {"id": (0, "id"), "k": (1, "k")},
    "SELECT (SELECT max(x) FROM b) AS m, a.k FROM a": {"k": (1, "k")},
    "SELECT f.k, b.x FROM ((SELECT id, k FROM a) ORDER BY id LIMIT 3) AS f JOIN b ON f.id = b.id": {"x": (1, "x")},
}


@pytest.mark.parametrize("query", CASES)
def test_columns_that_are_read_as_they_are_have_an_origin(query: str) -> None:
    assert analyze_relational(query, TABLES).origins == CASES[query]
