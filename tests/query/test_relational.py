"""Queries of any shape: which queries these are, where they name their upstreams, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import Column
from backfill_assets.query.occurrences import bound, occurrences
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.query import analyze, is_constrained, reader_key, spelled, unique_keys
from backfill_assets.query.relational import COPY, ROW_HASH, RelationalQuery, analyze_relational
from backfill_assets.query.rules_end import is_relational
from tests.support.queries_world import QUERIES, tables_of

T = (Column("id", "BIGINT"), Column("name", "STRING"), Column("at", "TIMESTAMP"), Column("__hidden", "BIGINT"))
TABLES = {"t": T, "u": T}


def analyzed(query: str, primary_key: tuple[str, ...] = ()) -> RelationalQuery:
    names = [name for name in TABLES if any(token.text.lower() == name for token in tokenize(query))]
    found = analyze(query, dict.fromkeys(names, T), dict.fromkeys(names, ("id",)), primary_key)
    assert isinstance(found, RelationalQuery)
    return found


def named(query: str) -> list[str]:
    return [query[each.start : each.end] for each in occurrences(parse(query, tokenize(query)), list(TABLES))]


@pytest.mark.parametrize("name", QUERIES)
def test_each_query_of_the_world_is_one_that_no_rule_keeps(name: str) -> None:
    assert is_relational(QUERIES[name])
    names = tables_of(QUERIES[name])
    assert spelled(spelled(QUERIES[name], names), names) == spelled(QUERIES[name], names)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t WHERE id > 1",
        "SELECT id FROM t UNION ALL SELECT id FROM u",
        "SELECT name, count(*) AS n FROM t GROUP BY name",
        "SELECT id FROM",
        "DELETE FROM t",
    ],
)
def test_what_the_rules_keep_and_what_is_no_query_is_left_to_them(query: str) -> None:
    assert not is_relational(query)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT a.id FROM t a JOIN `U` AS b ON a.id = b.id", ["t", "`U`"]),
        ("SELECT id FROM t, t AS again", ["t", "t"]),
        ("WITH u AS (SELECT id FROM u) SELECT t.id FROM t JOIN U USING (id)", ["u", "t"]),
        ("WITH x AS (SELECT id FROM t), y AS (SELECT id FROM x) SELECT id FROM y JOIN u USING (id)", ["t", "u"]),
        ("SELECT id FROM t WHERE id IN (SELECT id FROM u WHERE u.id = t.id)", ["t", "u"]),
        ("SELECT id, (SELECT max(id) FROM u) AS most FROM t", ["u", "t"]),
        ("SELECT id FROM t LATERAL VIEW explode(array(1)) e AS x", ["t"]),
        ("SELECT t.id FROM `range`(3) r JOIN t ON t.id = r.id", ["t"]),
        ("SELECT t.id FROM t, LATERAL explode_outer(array(1)) AS c(a), inline(array(struct(1))) AS d(a)", ["t"]),
        ("SELECT t.id FROM t, json_tuple('{}', 'a') AS c(a) LATERAL VIEW OUTER posexplode(array(1)) AS d, e", ["t"]),
        ("SELECT id FROM (SELECT id FROM t UNION SELECT id FROM u)", ["t", "u"]),
        ("SELECT id FROM (t JOIN u USING (id))", ["t", "u"]),
    ],
)
def test_each_place_that_names_an_upstream_is_found_and_no_name_of_with(query: str, found: list[str]) -> None:
    assert named(query) == found


def test_only_the_places_are_replaced_and_each_keeps_its_name() -> None:
    query = "WITH t AS (SELECT id FROM t) SELECT t.id, 't' AS text, u.name FROM t JOIN u ON t.id = u.id"
    found = analyzed(query)
    assert found.template == (
        "SELECT t.id, 't' AS text, u.name FROM (SELECT id FROM {occurrence_0} AS `t`) AS `t` "
        "JOIN {occurrence_1} AS `u` ON t.id = u.id"
    )
    assert found.written is not None
    assert found.written.template == (
        "WITH t AS (SELECT id FROM {occurrence_0} AS `t`) SELECT t.id, 't' AS text, u.name FROM t "
        "JOIN {occurrence_1} AS `u` ON t.id = u.id"
    )
    assert found.written.occurrences == found.occurrences == ("t", "u")
    assert found.text.startswith("with t as")
    assert analyzed("SELECT o.id, '{x}' AS b FROM t o, u").template == (
        "SELECT o.id, '{{x}}' AS b FROM {occurrence_0} o, {occurrence_1} AS `u`"
    )


@given(st.lists(st.sampled_from(["t", "u"]), min_size=1, max_size=6))
def test_binding_to_the_own_names_changes_nothing_but_adds_them(names: list[str]) -> None:
    query = "SELECT 1 AS one FROM " + ", ".join(f"{name} AS n{at}" for at, name in enumerate(names))
    found = occurrences(parse(query, tokenize(query)), list(TABLES))
    assert [each.upstream for each in found] == names
    assert bound(query, found, lambda at: names[at]) == query


def test_rows_without_a_key_are_known_by_their_hash_and_with_one_by_it() -> None:
    query = "SELECT t.id AS one, u.id AS two FROM t, u"
    plain, keyed = analyzed(query), analyzed(query, ("one",))
    assert (plain.key_columns, plain.output_columns) == (("one", ROW_HASH, COPY), ("one", "two"))
    assert (keyed.key_columns, unique_keys(keyed), reader_key(keyed)) == (("one",), (("one",),), ("one",))
    assert (is_constrained(plain), is_constrained(keyed)) == (False, True)


@pytest.mark.parametrize("alias", ["AS x(a, b, c)", "x(a, b, c)", "AS x(name, a, id)"])
def test_a_query_that_gives_columns_other_names_is_not_looked_into(alias: str) -> None:
    found = analyzed(f"SELECT DISTINCT u.id AS other, x.a FROM t {alias} LEFT JOIN u ON u.id IS NULL")
    assert (found.classes.classes, found.partners.classes, found.key_columns) == ((), (), (ROW_HASH, COPY))
    assert found.used["t"] == {"id", "name", "at"}


def test_a_star_means_what_users_see() -> None:
    assert analyzed("SELECT * FROM t LEFT ANTI JOIN u ON t.id = u.id").output_columns == ("id", "name", "at")
    assert [column.name for column in analyzed("SELECT t.* FROM t, u").columns["t"]] == ["id", "name", "at"]


REFUSED = [
    ("NOT_DETERMINISTIC", "SELECT t.id, rand() AS r FROM t, u"),
    ("NOT_DETERMINISTIC", "SELECT t.id, current_date AS d FROM t, u"),
    ("NOT_DETERMINISTIC", "SELECT t.id FROM t, u WHERE t.at > now()"),
    ("NOT_DETERMINISTIC", "SELECT t.id FROM t, u WHERE t.at > 'today'"),
    ("NOT_DETERMINISTIC", "SELECT t.id FROM t, u WHERE t.at > r'today'"),
    ("NOT_DETERMINISTIC", "SELECT CASE WHEN t.id = 1 THEN 'today' ELSE CAST(t.at AS DATE) END AS d FROM t, u"),
    ("NOT_DETERMINISTIC", "SELECT CASE WHEN t.id = 1 THEN 'today' WHEN t.id = 2 THEN t.at END AS d FROM t, u"),
    ("NOT_DETERMINISTIC", "SELECT IF(t.id = 1, 'today', t.at) AS d FROM t, u"),
    ("NOT_DETERMINISTIC", "SELECT CASE t.at WHEN 'today' THEN 1 ELSE 2 END AS d FROM t, u"),
    ("NOT_DETERMINISTIC", "SELECT a.id FROM (SELECT at AS name, id FROM t) a, u WHERE a.name = 'today'"),
    ("NOT_DETERMINISTIC", "SELECT a.id FROM t AS a(id, at, name), u WHERE a.name = 'today'"),
    ("NOT_DETERMINISTIC", "SELECT t.id FROM t, u WHERE t.at > 'to' 'day'"),
    ("NOT_DETERMINISTIC", "SELECT t.id FROM t, u WHERE t.at > 'to' || ('d' || 'ay')"),
    ("NOT_DETERMINISTIC", "SELECT t.id, CAST(trim('x' FROM 'xtoday') AS DATE) AS d FROM t, u"),
    ("NOT_DETERMINISTIC", "SELECT t.id, CAST(unhex('746f646179') AS DATE) AS d FROM t, u"),
    ("NOT_DETERMINISTIC", "SELECT t.id, IF(true, 'today', 'now')::timestamp AS d FROM t, u"),
    ("NOT_DETERMINISTIC", "SELECT t.id, TIMESTAMP '12:30' AS d FROM t, u"),
    ("NOT_DETERMINISTIC", "SELECT t.id, CAST(' T1:2:03.5' AS TIMESTAMP_LTZ) AS d FROM t, u"),
    ("NOT_DETERMINISTIC", "SELECT t.id, CAST('12' || ':30' AS TIMESTAMP) AS d FROM t, u"),
    ("NOT_DETERMINISTIC", "SELECT t.id FROM t TABLESAMPLE (10 PERCENT), u"),
    ("NOT_DETERMINISTIC", "SELECT t.id, session_user AS s FROM t, u"),
    ("NOT_DETERMINISTIC", "SELECT t.id, user AS user FROM t, u"),
    ("NOT_DETERMINISTIC", "SELECT t.id, t.name AS user FROM t, u WHERE user = 'me'"),
    (
        "NOT_DETERMINISTIC",
        "SELECT id FROM (SELECT id, name AS user FROM t) a WHERE EXISTS (SELECT 1 FROM u WHERE name = user)",
    ),
    ("NOT_DETERMINISTIC", "WITH session_user AS (SELECT id FROM t) SELECT session_user AS s FROM session_user"),
    ("ORDER_DEPENDENT", "SELECT name, first(id) AS f FROM t JOIN u USING (name) GROUP BY name"),
    ("ORDER_DEPENDENT", "SELECT name, collect_list(id) AS f FROM (SELECT * FROM t) GROUP BY name"),
    ("ORDER_DEPENDENT", "SELECT name, max_by(id, at) AS f FROM t GROUP BY name HAVING count(*) > 1"),
    ("ORDER_DEPENDENT", "SELECT name, max_by(id, struct(at)) AS f FROM t GROUP BY name"),
    ("ORDER_DEPENDENT", "SELECT name, max_by(id, struct(id, at).at) AS f FROM t GROUP BY name"),
    ("ORDER_DEPENDENT", "SELECT name, min_by(id, array(at, id)[0], 2) AS f FROM t GROUP BY name"),
    ("ORDER_DEPENDENT", "SELECT name, max_by(id / 2, struct(at, id / 2)) AS f FROM t GROUP BY name"),
    ("ORDER_DEPENDENT", "SELECT name, try_sum(id) AS s FROM t GROUP BY name HAVING count(*) > 1"),
    ("ORDER_DEPENDENT", "SELECT name, try_sum(DISTINCT t.id) OVER (PARTITION BY name) AS s FROM t"),
    ("ORDER_DEPENDENT", "SELECT name, try_sum(CAST(id AS DECIMAL(29, 0))) AS s FROM t GROUP BY name"),
    ("ORDER_DEPENDENT", "SELECT name, try_avg(id + 1) AS s FROM t GROUP BY name"),
    ("ORDER_DEPENDENT", "SELECT name, try_avg(CAST(id AS DECIMAL(38, 0))) AS s FROM t GROUP BY name"),
    ("ORDER_DEPENDENT", "SELECT name, try_sum(CAST(id AS BIGINT) * CAST(1 AS INT)) AS s FROM t GROUP BY name"),
    ("ORDER_NOT_TOTAL", "SELECT id, any_value(name) OVER (PARTITION BY at) AS f FROM t"),
    ("ORDER_DEPENDENT", "SELECT name, first_value(id) AS f FROM (SELECT * FROM t) GROUP BY name"),
    ("ORDER_DEPENDENT", "SELECT name, last_value(id) FILTER (WHERE id > 1) AS f FROM (SELECT * FROM t) GROUP BY name"),
    ("ORDER_DEPENDENT", "SELECT name, first_value(id) IGNORE NULLS AS f FROM (SELECT * FROM t) GROUP BY name"),
    ("ORDER_DEPENDENT", "SELECT size(collect_list(array(id))[0]) AS f FROM (SELECT * FROM t)"),
    ("ORDER_DEPENDENT", "SELECT listagg(name) WITHIN GROUP (ORDER BY id) AS f FROM (SELECT * FROM t)"),
    ("ORDER_DEPENDENT", "SELECT listagg(name) AS f FROM (SELECT * FROM t)"),
    ("ORDER_DEPENDENT", "SELECT mode(id) AS f, mode() WITHIN GROUP (ORDER BY id) AS g FROM (SELECT * FROM t)"),
    ("ORDER_DEPENDENT", "SELECT name, last(id) `over` FROM t GROUP BY name"),
    ("ORDER_DEPENDENT", "SELECT listagg(id / 2) WITHIN GROUP (ORDER BY id / 2) AS l FROM (SELECT * FROM t)"),
    ("ORDER_DEPENDENT", "SELECT mode() WITHIN GROUP (ORDER BY id * 0.5D) AS l FROM (SELECT * FROM t)"),
    ("ORDER_DEPENDENT", "SELECT mode(id / 3, true) AS l FROM (SELECT * FROM t)"),
    ("ORDER_DEPENDENT", "SELECT mode(name, true) AS l FROM (SELECT id / 3 AS name FROM t)"),
    ("ORDER_DEPENDENT", "SELECT mode(id, false) AS f FROM (SELECT * FROM t)"),
    ("ORDER_DEPENDENT", "SELECT name, any_value(id) AS f FROM t GROUP BY name"),
    ("ORDER_NOT_TOTAL", "SELECT id, first(at) OVER (PARTITION BY name) AS f FROM t"),
    ("ORDER_NOT_TOTAL", "SELECT t.id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id LIMIT 1 OFFSET 1)"),
    ("ORDER_DEPENDENT", "SELECT array_max(collect_list(struct(array(id) AS a))[0].a) AS f FROM (SELECT * FROM t)"),
    ("ORDER_DEPENDENT", "SELECT array_sort(collect_list(id), (a, b) -> 0) AS f FROM (SELECT * FROM t)"),
    ("ORDER_DEPENDENT", "SELECT array_contains(array(array(1)), collect_list(id)) AS f FROM (SELECT * FROM t)"),
    ("ORDER_DEPENDENT", "SELECT filter(collect_list(id), v -> v > 1) AS f FROM (SELECT * FROM t)"),
    ("ORDER_DEPENDENT", "SELECT exists(collect_list(id), v -> 10 DIV v > 5) AS f FROM (SELECT * FROM t)"),
    ("ORDER_NOT_TOTAL", "SELECT sum(id) OVER w AS n FROM t WINDOW w AS (PARTITION BY at ROWS 1 PRECEDING)"),
    ("ORDER_NOT_TOTAL", "SELECT row_number() OVER w AS n FROM t WINDOW v AS (ORDER BY id)"),
    ("ORDER_NOT_TOTAL", "SELECT last(id) OVER (PARTITION BY name ORDER BY at) AS n FROM t"),
    ("ORDER_NOT_TOTAL", "SELECT nth_value(id, 2) OVER w AS n FROM t WINDOW w AS (ORDER BY at)"),
    ("ORDER_NOT_TOTAL", "SELECT first(id) IGNORE NULLS OVER (ORDER BY at) AS n FROM t"),
    ("ORDER_NOT_TOTAL", "SELECT first_value(id, true) OVER (ORDER BY at) AS n FROM t"),
    ("ORDER_NOT_TOTAL", "SELECT first(name) OVER (ORDER BY id RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS n FROM t"),
    ("ORDER_NOT_TOTAL", "SELECT * FROM t, range(3) ORDER BY t.id LIMIT 3"),
    (
        "ORDER_NOT_TOTAL",
        "SELECT col FROM (SELECT id, posexplode(array(id)) FROM t) QUALIFY row_number() OVER (ORDER BY id) = 1",
    ),
    (
        "ORDER_NOT_TOTAL",
        "SELECT t.id FROM t JOIN VALUES (1), (2) AS v ON true QUALIFY row_number() OVER (ORDER BY at) = 1",
    ),
    (
        "ORDER_NOT_TOTAL",
        "SELECT m FROM t UNPIVOT (m FOR k IN (id)) QUALIFY row_number() OVER (PARTITION BY name ORDER BY at) = 1",
    ),
    ("ORDER_NOT_TOTAL", "SELECT id FROM t, LATERAL VIEW explode(array(1)) AS v QUALIFY lag(id) OVER (ORDER BY at) = 1"),
    ("ORDER_NOT_TOTAL", "SELECT 1 AS one, * FROM t, range(3) ORDER BY t.id LIMIT 3"),
    ("ORDER_NOT_TOTAL", "SELECT * FROM (SELECT explode(map(id, name)) FROM t) ORDER BY 1 LIMIT 3"),
    ("ORDER_NOT_TOTAL", "SELECT t.id FROM t, range(3) QUALIFY row_number() OVER (ORDER BY at) = 1"),
    (
        "ORDER_NOT_TOTAL",
        "SELECT b FROM (SELECT id, json_tuple(name, 'a', 'b') FROM t ORDER BY 1 LIMIT 3) AS s(a, b, c)",
    ),
    ("ORDER_NOT_TOTAL", "SELECT b FROM (SELECT explode(map(id, name)) FROM t ORDER BY 1 LIMIT 3) AS s(a, b)"),
    ("ORDER_NOT_TOTAL", "SELECT id FROM t LIMIT 3"),
    ("ORDER_NOT_TOTAL", "SELECT id, row_number() OVER () AS n FROM t"),
    ("ORDER_NOT_TOTAL", "SELECT first_value(id) OVER () AS f FROM t"),
    ("ORDER_NOT_TOTAL", "SELECT first_value(id) OVER (RANGE UNBOUNDED PRECEDING) AS f FROM t"),
    (
        "ORDER_NOT_TOTAL",
        "SELECT id, at FROM t UNION SELECT id, at FROM u ORDER BY row_number() OVER (ORDER BY id) LIMIT 3",
    ),
    ("ORDER_NOT_TOTAL", "SELECT rank() OVER w r FROM t WINDOW w AS (ORDER BY at), v (ORDER BY id) ORDER BY id LIMIT 2"),
    ("UNSUPPORTED", "SELECT DISTINCT name COLLATE UTF8_LCASE AS n FROM t"),
    ("UNSUPPORTED", "SELECT max(collate(name, 'UNICODE_CI')) AS n FROM (SELECT * FROM t)"),
    ("UNSUPPORTED", "SELECT CAST(name AS STRING COLLATE UNICODE_CI) AS n FROM t JOIN u USING (name)"),
    ("UNSUPPORTED", "SELECT id FROM t WHERE lower(name COLLATE UNICODE_CI) = 'a' UNION SELECT id FROM t"),
    ("UNSUPPORTED", "SELECT id FROM t ORDER BY name COLLATE UNICODE LIMIT 3"),
    ("UNSUPPORTED", "SELECT t.id FROM t JOIN IDENTIFIER('u') ON true"),
    ("UNSUPPORTED", "SELECT t.id FROM t JOIN table_changes('other', 1) c ON t.id = c.id"),
    ("UNSUPPORTED", "SELECT t.id FROM t, LATERAL table_changes('other', 1) AS c"),
    ("UNSUPPORTED", "SELECT t.id FROM t LATERAL VIEW of_the_session(t.id) c AS x"),
    ("UNSUPPORTED", "SELECT t.id FROM t VERSION AS OF 1, u"),
    ("UNSUPPORTED", "SELECT :p AS p, t.id FROM t, u"),
    ("UNSUPPORTED", "SELECT t.id FROM t, u WHERE t.id = ?"),
    ("UNSUPPORTED", "SELECT t.id FROM t LEFT JOIN u ON (SELECT max(x.id) > 3 FROM u AS x WHERE x.id = t.id)"),
    ("UNSUPPORTED", "SELECT id FROM t, LATERAL explode((SELECT collect_set(id) FROM u)) AS e(x)"),
    ("UNKNOWN_UPSTREAM", "SELECT t.id FROM t, nowhere"),
    ("UNKNOWN_UPSTREAM", "SELECT 1 AS one UNION SELECT 2"),
    ("UNUSED_UPSTREAM", "SELECT a.id FROM t a, t b"),
    ("UNUSED_UPSTREAM", "WITH unread AS (SELECT id FROM u) SELECT id FROM t"),
    ("UNNAMED_COLUMN", "SELECT count(*) FROM t, u"),
    ("DUPLICATE_COLUMN", "SELECT t.id, u.ID FROM t, u"),
    ("COLUMN_NAME", "SELECT t.id AS __id FROM t, u"),
    ("COLUMN_NAME", "SELECT t.id AS `a b` FROM t, u"),
    ("COLUMN_NAME", "SELECT * FROM (SELECT id AS __copy FROM t)"),
    ("COLUMN_NAME", "SELECT a.* FROM (SELECT id AS `a b` FROM t) a"),
    ("COLUMN_NAME", "WITH a(__row_hash) AS (SELECT id FROM t) SELECT * FROM a"),
    ("COLUMN_NAME", "SELECT * FROM t LATERAL VIEW explode(array(1)) AS __copy"),
]


@pytest.mark.parametrize(("reason", "query"), REFUSED)
def test_what_cannot_be_kept_is_refused_with_its_code_and_a_hint(reason: str, query: str) -> None:
    names = ["t", "u"] if reason == "UNUSED_UPSTREAM" or " u" in query or ", " in query.partition("FROM")[2] else ["t"]
    with pytest.raises(QueryError) as caught:
        analyze(query, dict.fromkeys(names, T), dict.fromkeys(names, ("id",)))
    assert (caught.value.reason, bool(caught.value.hint)) == (reason, True)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.id FROM t, u WHERE t.name = 'today'",
        "SELECT t.id, 'today' AS day FROM t, u",
        "SELECT CASE t.id WHEN 1 THEN 'today' WHEN 2 THEN t.name WHEN 3 THEN NULL ELSE 'later' END AS d FROM t, u",
        "SELECT CASE t.name WHEN 'today' THEN 1 ELSE 2 END AS d FROM t, u",
        "SELECT IF(t.id = 1, 'now', IF(t.id = 2, upper(t.name), CAST(t.at AS STRING))) AS d FROM t, u",
        "SELECT t.id, 'to' 'day' AS day FROM t, u WHERE t.name = 'to' || 'day'",
        "SELECT t.id, CAST(concat('20', '20-01-01') AS DATE) AS day FROM t, u",
        "SELECT t.id, CAST(concat(t.name, '-01-01') AS DATE) AS day, CAST(trim(t.name) AS TIMESTAMP) AS at FROM t, u",
        "SELECT t.id, CAST(date_add(DATE '2020-01-01', 1) AS TIMESTAMP) AS at FROM t, u",
        "SELECT t.id, TIMESTAMP '2020-01-01 12:30' AS at FROM t, u WHERE date_format(t.at, 'HH:mm') > '12:30'",
        "FROM t SELECT id",
        "SELECT id, to_json(struct(*)) AS j, hash(t.*) AS h FROM t",
        "SELECT 2 * (1 + id) AS d, count(*) AS n FROM t GROUP BY id + 1",
        "SELECT name, count(id, at) AS n FROM t GROUP BY name",
        "SELECT id, listagg(DISTINCT name, ', ') WITHIN GROUP (ORDER BY name DESC) AS l FROM t GROUP BY id",
        "SELECT name, mode(id, true) AS m FROM t GROUP BY name",
        "SELECT name, try_sum(CAST(id AS DECIMAL(28,0))) AS s, try_avg(id) AS a FROM t GROUP BY name",
        "SELECT name, try_sum(CAST(id AS integer)) AS s, try_sum(DISTINCT CAST(id AS dec)) AS d FROM t GROUP BY name",
        "SELECT name, max_by(id, struct(at, id)) AS m, min_by(t.id, t.id) AS l FROM t GROUP BY name",
        "SELECT name, max_by(id, STRUCT(length(name) / 2, at, id), 2) FILTER (WHERE id > 1) AS m FROM t GROUP BY name",
        "SELECT id, any_value(name) OVER (PARTITION BY at, name) AS f, last(at) OVER (PARTITION BY at) AS l FROM t",
        "SELECT name, mode() WITHIN GROUP (ORDER BY t.id) AS m FROM t GROUP BY name",
        "SELECT name, listagg(CAST(at AS STRING)) WITHIN GROUP (ORDER BY CAST(at AS STRING)) AS m FROM t GROUP BY name",
        "SELECT id, first(at) OVER (PARTITION BY name ORDER BY at) AS f, last(at) OVER (ORDER BY at) AS l FROM t",
        "SELECT max(id) AS m FROM t LIMIT 1",
        "SELECT id FROM t WHERE hash(*) % 2 = 0",
        "SELECT t.id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id LIMIT 1)",
        "SELECT user FROM (SELECT name AS user FROM t) JOIN u ON u.name = user",
        "WITH a AS (SELECT name AS user FROM t), b AS (SELECT * FROM a) SELECT user, count(*) AS n FROM B GROUP BY user",
        "SELECT user FROM t AS x(user, name, at) JOIN u ON u.id = x.user",
        "SELECT name, array_sort(collect_list(id)) AS ids FROM (SELECT * FROM t) GROUP BY name",
        "SELECT name, size(collect_set(id)) + array_size(collect_list(id)) AS ids FROM (SELECT * FROM t) GROUP BY name",
        "SELECT name, array_contains(collect_set(id), 3) AS has FROM t GROUP BY name",
        "SELECT sort_array(collect_list(id) FILTER (WHERE id > 1), false) AS ids FROM (SELECT * FROM t)",
        "SELECT id, array_sort(collect_list(id) OVER (PARTITION BY name)) AS ids FROM t",
        "SELECT id, first_value(id) IGNORE NULLS OVER (ORDER BY at ROWS 3 PRECEDING) AS f FROM t",
        "SELECT id, last_value(id) FILTER (WHERE id > 1) OVER (ORDER BY at ROWS 3 PRECEDING) AS f FROM t",
        "SELECT DISTINCT id, (name COLLATE UNICODE_CI) BETWEEN 'a' AND 'b' AS b FROM t",
        "SELECT t.id FROM t, u WHERE CAST(t.name AS STRING COLLATE UNICODE) LIKE 'a' OR t.name IN ('a' COLLATE UNICODE)",
        "SELECT DISTINCT id FROM t WHERE contains(name COLLATE UTF8_LCASE, 'a') OR endswith(name COLLATE UTF8_LCASE, 'b')",
    ],
)
def test_what_only_looks_so_is_taken(query: str) -> None:
    assert analyzed(query).output_columns


def test_files_of_rows_without_a_key_are_laid_out_by_a_column_only_if_all_are_known() -> None:
    known = analyzed("SELECT id FROM t UNION SELECT id FROM u")
    first = analyzed("SELECT id FROM t UNION ((SELECT id FROM u) ORDER BY id LIMIT 3)")
    assert (known.key_columns, known.branch_column) == (("id", ROW_HASH, COPY), "")
    assert (first.key_columns, first.branch_column) == ((ROW_HASH, COPY), "")


def test_what_a_collation_makes_equal_is_no_key() -> None:
    query = analyzed("SELECT t.id, u.at FROM t LEFT JOIN u ON t.name = u.name AND t.name COLLATE UNICODE = 'x'")
    assert (query.steps(["t"]).rule, query.steps(["u"]).rule) == ("linear", "full")
    cast = analyzed("SELECT t.id, u.at FROM t LEFT JOIN u ON CAST(t.name AS STRING COLLATE UNICODE) = u.name")
    assert (cast.steps(["u"]).rule, cast.partners.classes) == ("full", ())
    of_bytes = analyzed(query.text.replace("unicode", "utf8_binary"))
    assert of_bytes.steps(["u"]).rule == "restricted"


COMPLETED = [
    (
        "SELECT id, row_number() OVER (PARTITION BY name ORDER BY at DESC) AS n FROM t",
        "OVER (PARTITION BY name ORDER BY at DESC, struct(*)) AS n",
    ),
    ("SELECT id, lag(id) IGNORE NULLS OVER (ORDER BY at) AS n FROM t", "OVER (ORDER BY at, struct(*)) AS n"),
    (
        "SELECT sum(id) FILTER (WHERE id > 1) OVER (ORDER BY at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM t",
        "OVER (ORDER BY at, struct(*) ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    ),
    ("SELECT id, name FROM t ORDER BY at LIMIT 3", "ORDER BY at, 1, 2 LIMIT 3"),
    ("SELECT b FROM (SELECT name || 'x', id FROM t ORDER BY at LIMIT 3) AS s(a, b)", "ORDER BY at, 1, 2 LIMIT 3"),
    ("SELECT posexplode(array(id)) AS (a, b), name FROM t ORDER BY 1 LIMIT 3", "ORDER BY 1, 1, 2, 3 LIMIT 3"),
    (
        "SELECT id, lag(id) OVER (ORDER BY rows, range DESC) AS n FROM t",
        "OVER (ORDER BY rows, range DESC, struct(*)) AS n",
    ),
    (
        "SELECT id, lag(id) OVER (ORDER BY at RANGE UNBOUNDED PRECEDING) AS n FROM t",
        "OVER (ORDER BY at, struct(*) RANGE UNBOUNDED PRECEDING)",
    ),
    ("SELECT id FROM t UNION SELECT id FROM u ORDER BY 1 LIMIT 3", "ORDER BY 1, 1 LIMIT 3"),
    (
        "WITH x AS (SELECT id, name FROM t ORDER BY 1 LIMIT 2) "
        "SELECT id FROM (SELECT id FROM x ORDER BY 1 LIMIT 1) ORDER BY 1",
        "t ORDER BY 1, 1, 2 LIMIT 2) SELECT id FROM (SELECT id FROM x ORDER BY 1, 1 LIMIT 1) ORDER BY 1",
    ),
]


@pytest.mark.parametrize(("query", "part"), COMPLETED)
def test_orders_that_results_depend_on_are_made_total_once(query: str, part: str) -> None:
    names = [name for name in TABLES if f"FROM {name}" in query]
    text = spelled(query, names)
    assert part.lower().replace(" ", "") in text.lower().replace(" ", "")
    assert spelled(text, names) == text


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, rank() OVER (PARTITION BY name ORDER BY at) AS n FROM t",
        "SELECT id, sum(id) OVER (PARTITION BY name) AS n FROM t",
        "SELECT id, sum(id) OVER w AS n FROM t WINDOW w AS (PARTITION BY name ORDER BY at)",
        "SELECT id, sum(id) OVER (ORDER BY at RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS n FROM t",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) AS p FROM t",
    ],
)
def test_orders_that_no_result_depends_on_stay_as_they_are(query: str) -> None:
    assert "struct" not in spelled(query, ["t"])


def test_columns_that_begin_as_hidden_ones_do_are_seen_if_they_are_named() -> None:
    tables = {"t": T, "u": (Column("id", "BIGINT"),)}
    named = analyze_relational("SELECT t.id FROM t JOIN u USING (id) WHERE T.__Hidden > 1", tables)
    starred = analyze_relational("SELECT t.* FROM t JOIN u USING (id)", tables)
    assert [each.name for each in named.columns["t"]] == ["id", "name", "at", "__hidden"]
    assert [each.name for each in starred.columns["t"]] == ["id", "name", "at"]


def test_sums_that_may_fail_are_taken_of_columns_whose_sums_do_not_overflow() -> None:
    kinds = {"id": "INT", "small": "SMALLINT", "f": "DOUBLE", "d": "DECIMAL(28,2)", "name": "STRING"}
    tables = {"t": tuple(Column(name, kind) for name, kind in kinds.items())}
    for name in ("id", "t.small", "f", "d"):
        analyze_relational(f"SELECT name, try_sum({name}) AS s, try_avg({name}) AS a FROM t GROUP BY name", tables)
