"""Row-wise queries: their results, their SQL, their text in one spelling, and every refusal with its code."""

import re
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.declare.model import ERROR_COLUMNS, METADATA_COLUMNS
from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import Column, parse_schema
from backfill_assets.query.query import reader_key, unique_keys
from backfill_assets.query.refusals import HINTS
from backfill_assets.query.rowwise import RowwiseQuery, analyze_rowwise

METADATA = tuple(column.name for column in METADATA_COLUMNS)
SCHEMA = "a INT, b INT, x STRING, at TIMESTAMP, ns ARRAY<INT>, st STRUCT<P: STRUCT<q: INT>>, m MAP<STRING, INT>"
VISIBLE = (*METADATA, "a", "b", "x", "at", "ns", "st", "m")


def bronze(schema: str) -> tuple[Column, ...]:
    return (*METADATA_COLUMNS, *parse_schema(schema), *ERROR_COLUMNS)


ORDERS = {"orders": bronze(SCHEMA)}
BOTH = {**ORDERS, "items": bronze("a INT, c STRING")}


def analyze(query: str, tables: Mapping[str, tuple[Column, ...]] = ORDERS) -> RowwiseQuery:
    return analyze_rowwise(query, tables)


def refused(query: str, tables: Mapping[str, tuple[Column, ...]] = ORDERS) -> QueryError:
    with pytest.raises(QueryError) as raised:
        analyze_rowwise(query, tables)
    return raised.value


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT a, x FROM orders", ("a", "x")),
        ("SELECT A, orders.X, `b` FROM Orders", ("a", "x", "b")),
        ("SELECT a AS Total, x Name FROM orders", ("Total", "Name")),
        ("SELECT st.P, st.p.q AS deep, o.st.P AS again FROM orders o", ("P", "deep", "again")),
        ("SELECT CAST(A AS STRING), (x::int), try_cast((o.b) AS INT) FROM orders o", ("a", "x", "b")),
        ("SELECT * FROM orders", VISIBLE),
        ("SELECT o.* EXCEPT (a, ns, st, M), 1 AS one FROM orders AS o", (*METADATA, "b", "x", "at", "one")),
        ("SELECT *, _error FROM orders", (*VISIBLE, "_error")),
        ("SELECT a AS c FROM orders UNION ALL SELECT b FROM orders", ("c",)),
    ],
)
def test_columns_are_named_as_written_and_plain_ones_as_declared(query: str, columns: tuple[str, ...]) -> None:
    assert analyze(query).output_columns == columns


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SELECT _partition, _offset, a FROM orders", ("_partition", "_offset")),
        ("SELECT * FROM orders", ("_partition", "_offset")),
        ("SELECT o._OFFSET, o._PARTITION FROM orders o", ("_partition", "_offset")),
        ("SELECT a FROM orders", ("__partition", "__offset")),
        ("SELECT _offset, a FROM orders", ("__partition", "__offset")),
        ("SELECT _partition AS p, _offset AS o FROM orders", ("__partition", "__offset")),
        ("SELECT _offset AS _partition, _partition AS _offset FROM orders", ("__partition", "__offset")),
        ("SELECT _partition, _offset + 1 AS _offset FROM orders", ("__partition", "__offset")),
        ("SELECT * FROM orders UNION ALL SELECT * FROM orders", ("__branch", "__partition", "__offset")),
    ],
)
def test_the_key_is_where_the_record_came_from_hidden_where_the_query_leaves_it_out(
    query: str, key: tuple[str, ...]
) -> None:
    assert analyze(query).key_columns == key


TABLE = parse_schema("id INT, code STRING, a INT")
IN_ONE = {"one": ("id",), "two": ("id",)}


@pytest.mark.parametrize(
    ("query", "keys", "merged_by"),
    [
        ("SELECT a FROM one UNION ALL SELECT a FROM two", IN_ONE, ("__branch", "__id")),
        ("SELECT id, a FROM one UNION ALL SELECT id, a FROM two", IN_ONE, ("__branch", "__id")),
        ("SELECT a FROM one", {"one": ("id",)}, ("__id",)),
        ("SELECT id, a FROM one", {"one": ("id",)}, ("id",)),
        ("SELECT a FROM one UNION ALL SELECT a FROM two", {"one": ("id",), "two": ("code",)}, ("a",)),
        ("SELECT a FROM one UNION ALL SELECT a FROM two", {"one": ("id",), "two": ()}, ("a",)),
        ("SELECT a FROM one", {"one": ()}, ("a",)),
        ("SELECT a FROM odd", {"odd": ("the id",)}, ("a",)),
        ("SELECT a FROM odd", {"odd": ("_id", "id")}, ("a",)),
    ],
)
def test_an_own_key_is_a_constraint_beside_where_a_row_came_from(
    query: str, keys: Mapping[str, tuple[str, ...]], merged_by: tuple[str, ...]
) -> None:
    odd = (*parse_schema("id INT, _id INT, a INT"), Column("the id", "INT"))
    tables = {name: odd if name == "odd" else TABLE for name in keys}
    analyzed = analyze_rowwise(query, tables, keys, ("a",))
    assert (analyzed.key_columns, reader_key(analyzed)) == (merged_by, ("a",))
    assert unique_keys(analyzed) == ((merged_by,) if merged_by == ("a",) else (merged_by, ("a",)))
    assert analyzed.branch_column == (merged_by[0] if merged_by[0] == "__branch" else "")


def test_an_own_key_that_includes_the_upstreams_key_needs_no_check() -> None:
    analyzed = analyze_rowwise("SELECT id, a FROM one", {"one": TABLE}, {"one": ("id",)}, ("a", "id"))
    assert (unique_keys(analyzed), reader_key(analyzed)) == ((("id",),), ("a", "id"))


def test_the_sql_keeps_the_users_text_reads_good_records_and_adds_the_hidden_key() -> None:
    (branch,) = analyze("SELECT a + 1 AS n -- next\nFROM orders AS o WHERE o.a > 1 -- more").branches
    assert branch.upstream == "orders"
    assert "a + 1 AS n, `o`._partition AS __partition, `o`._offset AS __offset" in branch.sql
    assert "FROM `orders` WHERE _error IS NULL) AS `o` WHERE o.a > 1)" in branch.sql
    assert branch.sql.endswith("AS __part(`n`, `__partition`, `__offset`)")


def test_a_union_has_one_branch_for_each_part_in_order_with_its_number() -> None:
    query = analyze("(SELECT a FROM orders) UNION ALL ((SELECT a FROM items) UNION ALL SELECT b FROM orders)", BOTH)
    assert [branch.upstream for branch in query.branches] == ["orders", "items", "orders"]
    assert query.upstreams == ("orders", "items")
    for number, branch in enumerate(query.branches):
        assert f"{number} AS __branch" in branch.sql
        assert branch.columns == BOTH[branch.upstream]


@pytest.mark.parametrize(
    "expression",
    [
        "transform(ns, n -> n + a)",
        "filter(ns, N -> n > 1)",
        "aggregate(ns, 0, (acc, n) -> acc + n)",
        "reduce(ns, 0, (acc, n) -> acc + n)",
        "exists(ns, n -> n > 1)",
        "map_filter(m, (k, v) -> v > a)",
        "CASE WHEN a > 1 THEN 'now' ELSE x END",
        "a::BIGINT",
        "try_cast(x AS INT)",
        "m['k']",
        "ns[0]",
        "st.P.q",
        "from_json(x, 'a INT').a",
        "named_struct('n', a)",
        "struct(a, b AS c)",
        "x LIKE ANY ('a', 'b')",
        "x RLIKE 'a{2}'",
        "extract(YEAR FROM at)",
        "timestampdiff(HOUR, at, at)",
        "at + INTERVAL 1 DAY",
        "unix_timestamp(at)",
        "a IS DISTINCT FROM b",
        "x = 'today'",
        "at < timestamp '2024-01-01'",
        "hex(aes_encrypt(x, unhex('00112233445566778899aabbccddeeff'), 'ecb', 'PKCS'))",
        "1L",
        "'it''s'",
    ],
)
def test_expressions_over_one_record_pass(expression: str) -> None:
    assert analyze(f"SELECT {expression} AS e FROM orders WHERE {expression} IS NOT NULL").output_columns == ("e",)


def test_a_name_given_further_left_can_be_used_but_not_in_where() -> None:
    assert analyze("SELECT a AS n, n + 1 AS m2 FROM orders").output_columns == ("n", "m2")
    assert refused("SELECT a AS n FROM orders WHERE n > 1").reason == "UNKNOWN_COLUMN"


def test_a_star_over_a_view_leaves_its_hidden_columns_out() -> None:
    columns = (Column("id", "BIGINT"), Column("n", "BIGINT"), Column("__count", "BIGINT"))
    query = analyze_rowwise("SELECT * FROM totals", {"totals": columns}, {"totals": ("id",)})
    assert (query.output_columns, query.key_columns) == (("id", "n"), ("id",))


TABLES = {name: (Column("id", "BIGINT"), Column("other", "BIGINT")) for name in ("one", "two")}
BOTH_PARTS = "SELECT id FROM one UNION ALL SELECT id FROM two"


def test_parts_whose_tables_have_different_keys_are_refused() -> None:
    with pytest.raises(QueryError, match=r"different keys: \(id\) and \(other\)") as raised:
        analyze_rowwise(BOTH_PARTS, TABLES, {"one": ("id",), "two": ("other",)})
    assert (raised.value.reason, "SELECT * FROM (…) AS rows" in raised.value.hint) == ("KEY_MISMATCH", True)


def test_nested_parts_are_distinguished_by_a_column_of_their_own() -> None:
    inner = (Column("id", "BIGINT"), Column("__branch", "INT"), Column("__id", "BIGINT"))
    key = ("__branch", "__id")
    query = analyze_rowwise(BOTH_PARTS, {"one": inner, "two": inner}, {"one": key, "two": key})
    assert query.key_columns == ("__branch_2", "__branch", "__id")


REFUSED = [
    ("SYNTAX", "SELECT a b c FROM orders"),
    ("SYNTAX", "SELECT 'a FROM orders"),
    ("SYNTAX", "SELECT FROM orders"),
    ("SYNTAX", "SELECT a, FROM orders"),
    ("FORM", "FROM orders SELECT a"),
    ("SYNTAX", "SELEC a FROM orders"),
    ("NOT_A_QUERY", ""),
    ("NOT_A_QUERY", " -- nothing"),
    ("NOT_A_QUERY", "DROP TABLE orders"),
    ("NOT_A_QUERY", "CREATE TABLE t AS SELECT a FROM orders"),
    ("NOT_A_QUERY", "INSERT INTO orders SELECT a FROM orders"),
    ("NOT_A_QUERY", "EXPLAIN SELECT a FROM orders"),
    ("NOT_A_QUERY", "SELECT a FROM orders; SELECT b FROM orders"),
    ("NOT_A_QUERY", "VALUES (1)"),
    ("UNKNOWN_UPSTREAM", "SELECT a FROM order"),
    ("UNKNOWN_UPSTREAM", "SELECT a FROM db.orders"),
    ("FORM", "SELECT 1 AS one"),
    ("FORM", "SELECT id AS i FROM range(3)"),
    ("UNKNOWN_COLUMN", "SELECT aa FROM orders"),
    ("UNKNOWN_COLUMN", "SELECT o.a FROM orders"),
    ("UNKNOWN_COLUMN", "SELECT orders.a FROM orders AS o"),
    ("UNKNOWN_COLUMN", "SELECT * EXCEPT (zz) FROM orders"),
    ("UNKNOWN_COLUMN", "SELECT a FROM orders WHERE zz = 1"),
    ("UNNAMED_COLUMN", "SELECT a + 1 FROM orders"),
    ("UNNAMED_COLUMN", "SELECT CAST(st.p AS STRING) FROM orders"),
    ("UNNAMED_COLUMN", "SELECT CAST(CAST(a AS INT) AS STRING) FROM orders"),
    ("COLUMN_NAME", "SELECT a AS __a FROM orders"),
    ("COLUMN_NAME", "SELECT a AS `a b` FROM orders"),
    ("COLUMN_NAME", "SELECT a AS _Change_Type FROM orders"),
    ("COLUMN_NAME", "SELECT a, a AS _commit_version, a AS _commit_timestamp FROM orders"),
    ("DUPLICATE_COLUMN", "SELECT a, b AS A FROM orders"),
    ("STAR", "SELECT st.* FROM orders"),
    ("STAR", "SELECT struct(*) AS s FROM orders"),
    ("STAR", "SELECT a FROM orders WHERE hash(*) % 2 = 0"),
    ("STAR", "SELECT a FROM orders UNION ALL SELECT a FROM orders WHERE struct(orders.*) IS NOT NULL"),
    ("AGGREGATE", "SELECT sum(a) AS s FROM orders"),
    ("AGGREGATE", "SELECT count(*) AS s FROM orders"),
    ("AGGREGATE", "SELECT Max_By(a, b) AS s FROM orders"),
    ("AGGREGATE", "SELECT any_value(a) AS s FROM orders"),
    ("AGGREGATE", "SELECT any(a > 1) AS s FROM orders"),
    ("AGGREGATE", "SELECT count_if (a > 1) AS s FROM orders"),
    ("AGGREGATE", "SELECT bool_and(a > 1) AS s FROM orders"),
    ("AGGREGATE", "SELECT percentile(a, 0.5) AS s FROM orders"),
    ("AGGREGATE", "SELECT `collect_list`(a) AS s FROM orders"),
    ("AGGREGATE", "SELECT builtin.sum(a) AS s FROM orders"),
    ("AGGREGATE", "SELECT a FROM orders PIVOT (sum(b) FOR x IN ('k'))"),
    ("GROUP_BY", "SELECT a FROM orders GROUP BY a"),
    ("HAVING", "SELECT a FROM orders HAVING a > 1"),
    ("JOIN", "SELECT a FROM orders JOIN items ON TRUE"),
    ("JOIN", "SELECT a FROM orders, items"),
    ("JOIN", "SELECT a FROM orders LATERAL VIEW explode(ns) AS n"),
    ("JOIN", "SELECT a FROM orders, LATERAL (SELECT 1)"),
    ("WINDOW", "SELECT row_number() OVER (ORDER BY a) AS r FROM orders"),
    ("WINDOW", "SELECT sum(a) OVER (PARTITION BY b) AS r FROM orders"),
    ("WINDOW", "SELECT a FROM orders WINDOW w AS (PARTITION BY a)"),
    ("DISTINCT", "SELECT DISTINCT a FROM orders"),
    ("DISTINCT", "SELECT a FROM orders UNION SELECT b FROM orders"),
    ("DISTINCT", "SELECT a FROM orders INTERSECT SELECT b FROM orders"),
    ("DISTINCT", "SELECT a FROM orders EXCEPT SELECT b FROM orders"),
    ("DISTINCT", "SELECT a FROM orders MINUS SELECT b FROM orders"),
    ("ORDER_LIMIT", "SELECT a FROM orders ORDER BY a"),
    ("ORDER_LIMIT", "SELECT a FROM orders SORT BY a"),
    ("ORDER_LIMIT", "SELECT a FROM orders CLUSTER BY a"),
    ("ORDER_LIMIT", "SELECT a FROM orders DISTRIBUTE BY a"),
    ("ORDER_LIMIT", "SELECT a FROM orders LIMIT 1"),
    ("ORDER_LIMIT", "SELECT a FROM orders OFFSET 1"),
    ("ORDER_LIMIT", "(SELECT a FROM orders) LIMIT 1"),
    ("ORDER_LIMIT", "SELECT a FROM orders UNION ALL SELECT b FROM orders ORDER BY a"),
    ("SUBQUERY", "SELECT a FROM (SELECT a FROM orders)"),
    ("SUBQUERY", "SELECT (SELECT 1) AS s FROM orders"),
    ("SUBQUERY", "SELECT a FROM orders WHERE a IN (SELECT b FROM orders)"),
    ("SUBQUERY", "SELECT a FROM orders WHERE EXISTS (SELECT 1)"),
    ("CTE", "WITH t AS (SELECT a FROM orders) SELECT a FROM t"),
    ("GENERATOR", "SELECT explode(ns) AS n FROM orders"),
    ("GENERATOR", "SELECT posexplode(ns) AS (p, n) FROM orders"),
    ("GENERATOR", "SELECT stack(2, a, b) AS n FROM orders"),
    ("GENERATOR", "SELECT json_tuple(x, 'a') AS n FROM orders"),
    ("GENERATOR", "SELECT window(at, '1 hour', '5 minutes') AS n FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT rand() AS r FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT system.builtin.rand(1) AS r FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT UUID() AS r FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT hex(aes_encrypt(x, x, ecb)) AS r FROM orders"),
    (
        "NOT_DETERMINISTIC",
        "SELECT aes_encrypt(x, x, 'ECB') AS s, aes_encrypt(x, x, concat('ECB', '')) AS r FROM orders",
    ),
    ("NOT_DETERMINISTIC", "SELECT a FROM orders WHERE at < now()"),
    ("NOT_DETERMINISTIC", "SELECT current_timestamp AS t FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT current_date() AS t FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT user AS u FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT unix_timestamp() AS u FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT shuffle(ns) AS n FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT monotonically_increasing_id() AS i FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT input_file_name() AS i FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT java_method('java.lang.Math', 'random') AS i FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT a FROM orders TABLESAMPLE (3 ROWS)"),
    ("NOT_DETERMINISTIC", "SELECT TIMESTAMP 'now' AS t FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT CAST(' Today' AS DATE) AS t FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT '12:30'::timestamp AS t FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT a FROM orders WHERE at < 'yesterday'"),
    ("NOT_DETERMINISTIC", "SELECT a FROM orders WHERE at = 'today'"),
    ("NOT_DETERMINISTIC", "SELECT a FROM orders WHERE at = 'to' 'day'"),
    ("NOT_DETERMINISTIC", "SELECT CAST(reverse('yadot') AS DATE) AS a FROM orders"),
    ("NOT_DETERMINISTIC", "SELECT a FROM orders WHERE at IN ('2024-01-01', 'now')"),
    ("NOT_DETERMINISTIC", "SELECT a FROM orders WHERE at BETWEEN 'yesterday' AND 'now'"),
    ("UNION_MISMATCH", "SELECT a FROM orders UNION ALL SELECT a, b FROM orders"),
    ("UNSUPPORTED", "SELECT a FROM orders UNION ALL BY NAME SELECT a FROM orders"),
    ("UNSUPPORTED", "SELECT a FROM orders VERSION AS OF 3"),
    ("UNSUPPORTED", "SELECT :p AS p FROM orders"),
    ("UNSUPPORTED", "SELECT identifier('a') AS r FROM orders"),
    ("UNSUPPORTED", "SELECT y AS a FROM orders AS o(y, z)"),
    ("UNSUPPORTED", "SELECT TRANSFORM(a) USING 'cat' FROM orders"),
]


@pytest.mark.parametrize(("reason", "query"), REFUSED)
def test_what_is_not_row_wise_is_refused_with_its_code_and_a_hint(reason: str, query: str) -> None:
    error = refused(query)
    assert error.reason == reason, error
    assert error.hint


def test_an_upstream_that_the_query_does_not_read_is_refused_by_name() -> None:
    error = refused("SELECT a FROM orders", BOTH)
    assert (error.reason, error.message) == ("UNUSED_UPSTREAM", "the query does not read 'items'")


def test_every_reason_has_a_case() -> None:
    elsewhere = {"ORDER_DEPENDENT", "ORDER_NOT_TOTAL", "UNKNOWN_FUNCTION"}
    assert {reason for reason, _ in REFUSED} | {"UNUSED_UPSTREAM", "KEY_MISMATCH"} == set(HINTS) - elsewhere


def test_a_wrong_name_comes_with_the_nearest_right_one() -> None:
    assert refused("SELECT ORDERS.ATT FROM orders").hint == "did you mean orders.at?"
    assert refused("SELECT _ofset FROM orders").hint == "did you mean _offset?"
    assert refused("SELECT a FROM oders").hint == "did you mean orders?"


@pytest.mark.parametrize(
    ("query", "place"),
    [("SELECT a\nFROM orders\nWHERE a >> b c", "line 3, column 14"), ("SELECT a,\n 'x FROM orders", "2:11")],
)
def test_a_syntax_error_names_line_and_column(query: str, place: str) -> None:
    assert place in refused(query).message


QUERIES = (
    "SELECT a, m['k'] AS Key, 'It''s /* not */ -- A comment' AS note, 1L + 2.5e3 AS n FROM orders WHERE a >= 1",
    "SELECT transform(ns, n -> n + a) AS t, x LIKE ANY ('A', \"b\") AS l FROM orders AS o WHERE NOT o.a <=> - b",
    "(SELECT st.P, a FROM orders) UNION ALL SELECT st.p AS other, CAST(x AS DECIMAL(12, 2)) FROM orders",
)
# Words whose case is part of the result: names after AS, and strings.
_PIECES = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|\d+L|[\w.]+|[<>=]+|->|\S""")
_KEPT = re.compile(r"""['"].*|Key|note|n|t|l|st\.[Pp]|P""")


@st.composite
def other_spellings(draw: st.DrawFn) -> tuple[str, str]:
    query = draw(st.sampled_from(QUERIES))
    gap = st.sampled_from([" ", "\n", "\t ", " -- a comment\n", " /* another */ ", "  "])
    cases: list[Callable[[str], str]] = [str.lower, str.upper, str]
    case = st.sampled_from(cases)
    words = [word if _KEPT.fullmatch(word) else draw(case)(word) for word in _PIECES.findall(query)]
    return query, "".join(word + draw(gap) for word in words)


@given(other_spellings())
def test_white_space_comments_and_case_do_not_change_the_text(spellings: tuple[str, str]) -> None:
    query, other = spellings
    assert analyze(other).text == analyze(query).text
    assert analyze(other).output_columns == analyze(query).output_columns


MEANINGS = (
    "SELECT a FROM orders",
    "SELECT b FROM orders",
    "SELECT a AS b FROM orders",
    "SELECT a AS B FROM orders",
    "SELECT a FROM orders WHERE x = 'k'",
    "SELECT a FROM orders WHERE x = 'K'",
    "SELECT a FROM orders WHERE x = 'k '",
    "SELECT a, 'it''s' AS t FROM orders",
    "SELECT a, 'it' 's' AS t FROM orders",
    "SELECT CAST(x AS INT) AS n FROM orders",
    "SELECT TRY_CAST(x AS INT) AS n FROM orders",
    "SELECT a - -b AS n FROM orders",
    "SELECT a + b AS n FROM orders",
    "SELECT st.P FROM orders",
    "SELECT st.p FROM orders",
    "SELECT struct(a) AS s FROM orders",
    "SELECT struct(A) AS s FROM orders",
    "SELECT 1 AS n FROM orders",
    "SELECT 1L AS n FROM orders",
    "SELECT a FROM orders UNION ALL SELECT b FROM orders",
    "SELECT b AS a FROM orders UNION ALL SELECT a FROM orders",
)


def test_what_changes_the_result_changes_the_text() -> None:
    assert len({analyze(query).text for query in MEANINGS}) == len(MEANINGS)


@pytest.mark.parametrize("query", [*QUERIES, *MEANINGS])
def test_the_text_is_a_query_of_the_same_meaning(query: str) -> None:
    again = analyze(analyze(query).text)
    assert (again.text, again.output_columns) == (analyze(query).text, analyze(query).output_columns)
