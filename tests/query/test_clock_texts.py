"""Which texts of a query Spark may read as the clock's date or time."""

import pytest

from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.query import analyze

T = parse_schema(
    "id INT, name STRING, at TIMESTAMP, day DATE, plain TIMESTAMP_NTZ, s STRUCT<a: INT, b: STRING>, "
    "nested STRUCT<name: TIMESTAMP>"
)

OF_THE_CLOCK = [
    "SELECT id, exists(array(at), z -> z > '12:30') AS c FROM t",
    "SELECT id, filter(array(at), z -> z <> 'today') AS c FROM t",
    "SELECT id, transform(array(at), z -> coalesce(z, 'now')) AS c FROM t",
    "SELECT id, transform(array(at), z -> filter(array(1), y -> z > '12:30')) AS c FROM t",
    "SELECT id, aggregate(array(at), timestamp'2020-01-01', (p, q) -> if(q > '12:30', p, q)) AS c FROM t",
    "SELECT id, to_char('12:30', 'HH') AS c FROM t WHERE to_char(at, 'HH:mm') > '12:30'",
    "SELECT id, dayname('today') AS c FROM t",
    "SELECT id FROM t WHERE at > '12:30'",
    "SELECT id FROM t WHERE at > '\\tnow'",
    "SELECT id FROM t WHERE at BETWEEN '12:30' AND '2024-01-01'",
    "SELECT id FROM t WHERE at IN (('T1:2'), '2024-01-01')",
    "SELECT id FROM t WHERE '9:05' <= at",
    "SELECT id, coalesce(at, '12:30') AS c FROM t",
    "SELECT id, greatest(at, '12:30') AS c FROM t",
    "SELECT id, CASE WHEN id = 1 THEN '12:30' ELSE at END AS c FROM t",
    "SELECT id, to_timestamp('12:30') AS c FROM t",
    "SELECT id, date_format('12:30', 'd') AS c FROM t",
    "SELECT id, date_trunc('DAY', '12:30') AS c FROM t",
    "SELECT id, timestampadd(HOUR, 1, '12:30') AS c FROM t",
    "SELECT id, IF(id = 1, lower('TODAY'), day) AS c FROM t",
    "SELECT id FROM t WHERE at = coalesce('12:30', name) OR at > nullif('12:30', name)",
    "SELECT id FROM t WHERE at > IF(id = 1, '12:30', '13:30')",
    "SELECT id, CAST(CASE id WHEN 1 THEN '12:30' ELSE name END AS TIMESTAMP) AS c FROM t",
    "SELECT id, at AS c FROM t UNION ALL SELECT id, IF(id = 1, '12:30', name) FROM u",
    "SELECT id FROM t WHERE at > 'T12'",
    "SELECT id, nvl2(id, at, '12:30') AS c FROM t",
    "SELECT id FROM t WHERE nvl2(id, '12:30', at) = at",
    "SELECT id, try_to_timestamp('12:30') AS c FROM t",
    "SELECT id, to_date('today') AS c FROM t",
    "SELECT id, map(day, 1)['today'] AS c FROM t",
    "SELECT id FROM t WHERE coalesce(NULL, 'today') = day",
    "SELECT id FROM t WHERE nvl('now', 'today') = day",
    "SELECT id FROM t WHERE CASE WHEN true THEN 'today' END = day OR if(true, 'today', 'x') = day",
    "SELECT id, date(translate('t0day', '0', 'o')) AS c FROM t",
    "SELECT id, date(regexp_replace('today1', '1', '')) AS c FROM t",
    "SELECT id, date(get_json_object('{\"a\": \"today\"}', '$.a')) AS c FROM t",
    "SELECT id, date(from_json('{\"a\": \"today\"}', 'a STRING').a) AS c FROM t",
    "SELECT id, from_json('{\"a\": \"12:30\"}', 'a TIMESTAMP') AS c FROM t",
    "SELECT id, from_csv('1,12:30', 'n INT, a TIMESTAMP').a AS c FROM t",
    "SELECT id, from_xml('<a><b>today</b></a>', 'b DATE') AS c FROM t",
    "SELECT id, variant_get(parse_json('\"12:30\"'), '$', 'timestamp') AS c FROM t",
    "SELECT id, CAST(map('a', '12:30') AS MAP<STRING, TIMESTAMP>) AS c FROM t",
    "SELECT id, CAST(array(struct('12:30')) AS ARRAY<STRUCT<a: TIMESTAMP>>) AS c FROM t",
    "SELECT id, date(overlay('xoday' PLACING 't' FROM 1)) AS c FROM t",
    "SELECT id, date(decode(X'746F646179', 'UTF-8')) AS c FROM t",
    "SELECT id, decode(id, 1, at, '12:30') AS c FROM t",
    "SELECT id, array(at, '12:30') AS c FROM t",
    "SELECT id, lag(at, 1, '12:30') OVER (ORDER BY id) AS c FROM t",
    "SELECT id, at - '12:30' AS c FROM t",
    "SELECT id FROM t WHERE at > array('12:30')[0] OR at > struct('12:30' AS a).a",
    "SELECT id, '12:30' AS c, at > c AS late FROM t",
    "SELECT name.id FROM t AS name JOIN u USING (id) WHERE name.at > '12:30'",
    "SELECT t.id FROM t JOIN u USING (id) WHERE t.nested.name > '12:30'",
    "WITH cuts AS (SELECT id, '12:30' AS c FROM u) SELECT id FROM t JOIN cuts USING (id) WHERE at > c",
    "SELECT id FROM t WHERE at IN (SELECT 'today' AS d FROM u)",
    "SELECT id FROM t WHERE at > (SELECT max('12:30') AS d FROM u) AND at > (SELECT '12:30')",
    "SELECT id FROM t WHERE at IN (SELECT name FROM u UNION ALL SELECT '12:30')",
    "SELECT id, at AS c FROM t UNION ALL (SELECT id, '12:30' AS c FROM u)",
    "SELECT id, day AS c FROM t UNION SELECT id, 'today' FROM u",
    "SELECT id FROM (SELECT id, at AS c FROM t) JOIN u USING (id) WHERE c < 'today'",
    "SELECT id FROM (SELECT id, IF(id = 1, at, name) AS c FROM t) JOIN u USING (id) WHERE c < '12:30'",
    "SELECT * FROM (SELECT id, at FROM t) PIVOT (max(id) FOR at IN ('today' AS now))",
    "SELECT * FROM (SELECT id, at FROM t) PIVOT (max(id) FOR at IN ('12:30' AS noon))",
    "SELECT * FROM (SELECT id, name, day FROM t) PIVOT (max(id) FOR (name, day) IN (('a', 'today') AS now))",
    "SELECT id, CAST((SELECT '12:30') AS TIMESTAMP) AS c FROM t JOIN u USING (id)",
    "SELECT id, CAST(x AS TIMESTAMP) AS c FROM t JOIN (SELECT 1 AS one, '12:30' AS y) AS s(z, x) ON id = z",
    "SELECT id, CAST(v.X AS TIMESTAMP) AS c FROM t JOIN (VALUES (1, '12:30')) AS v(k, x) ON id = k",
    "SELECT id FROM t JOIN VALUES ('12:30') AS v(x) ON at > x",
    "SELECT id FROM t JOIN VALUES (1, '12:30') ON at > col2",
    "SELECT id FROM t LATERAL VIEW explode(array('12:30')) e AS x WHERE at > x",
    "SELECT id FROM t, LATERAL explode(array('12:30')) AS e(x) WHERE at > x",
    "SELECT id FROM t JOIN explode(array('12:30')) ON at > col",
    "SELECT id, CAST(transform(array(1), x -> '12:30') AS ARRAY<TIMESTAMP>) AS c FROM t",
    "SELECT id, CAST(max('12:30') FILTER (WHERE id > 1) AS TIMESTAMP) AS c FROM t GROUP BY id HAVING id > 1",
    "SELECT id, CAST(max('12:30') OVER (PARTITION BY id) AS TIMESTAMP) AS c FROM t",
    "SELECT id, CAST(lag('12:30') IGNORE NULLS OVER (ORDER BY id) AS TIMESTAMP) AS c FROM t",
    "SELECT id, '12:30' + INTERVAL 1 DAY AS c FROM t",
    "SELECT id, 'now' - INTERVAL 1 DAY AS c FROM t",
    "SELECT id FROM t WHERE at > 'today' - INTERVAL 7 DAYS",
    "SELECT id, INTERVAL '1' HOUR + '12:30' AS c FROM t",
    "SELECT id, 'T12:30' - make_interval(0, 0, 0, 1) AS c FROM t",
    "SELECT id, try_add('12:30', INTERVAL 1 DAY) AS c FROM t",
    "SELECT id, try_subtract('today', INTERVAL 1 DAY) AS c FROM t",
    "SELECT window('12:30', '1 hour').start AS c, count(*) AS n FROM t GROUP BY 1",
    "SELECT session_window('12:30', '1 hour').end AS c, count(*) AS n FROM t GROUP BY 1",
    "SELECT id, CASE WHEN id = 1 THEN name ELSE nvl2(name, at, '12:30') END AS c FROM t",
    "SELECT id, CAST(x.Y AS TIMESTAMP) AS c FROM (SELECT id, struct('12:30' AS y) AS x FROM t) JOIN u USING (id)",
    "SELECT id, s.x.y > at AS c FROM (SELECT id, at, named_struct('y', '12:30') AS x FROM t) s JOIN u USING (id)",
    "SELECT id FROM t LATERAL VIEW inline(array(struct('12:30' AS y))) e WHERE at > y",
]
TEXTS = [
    "SELECT id FROM t WHERE nvl2(at, '12:30', 'x') = 'x' OR nvl2(day, name, 'today') = 'x'",
    "SELECT id, to_timestamp('12:30', 'HH:mm') AS c, to_date('12:30', 'HH:mm') AS d FROM t",
    "SELECT id FROM t WHERE to_time('12:30') < try_to_time('12:30:01', 'HH:mm:ss')",
    "SELECT id, to_unix_timestamp('12:30', 'HH:mm') AS c, try_to_timestamp('12:30', 'HH:mm') AS d FROM t",
    "SELECT id FROM t WHERE name > (SELECT max('12:30') AS a FROM u) AND s.b > '12:30'",
    "SELECT id FROM t WHERE to_char(at, 'HH:mm') >= '09:00' AND to_varchar(at, 'HH:mm') < '17:00'",
    "SELECT id FROM t WHERE format_string('%s', at) > '12:30' OR printf('%s', at) IN ('12:30') OR dayname(at) = 'now'",
    "SELECT id FROM t WHERE from_unixtime(id, 'HH:mm') BETWEEN '09:00' AND '17:00' OR monthname(at) = 'today'",
    "SELECT id FROM t WHERE to_json(struct(at)) > '12:30' OR to_csv(struct(at)) > '12:30'",
    "SELECT id FROM t WHERE name > '12:30'",
    "SELECT id, from_json('{\"a\": \"12:30\"}', 'a STRING') AS c, from_csv('12:30', 'a STRING') AS d FROM t",
    "SELECT id, from_json(name, 'a TIMESTAMP') AS c, parse_json('{\"a\": \"2024-01-01 12:30\"}') AS d FROM t",
    "SELECT id, CAST(map('a', '12:30') AS MAP<STRING, STRING>) AS c FROM t",
    "SELECT id, INTERVAL '12:30' HOUR TO MINUTE AS c, at + INTERVAL '12:30' MINUTE TO SECOND AS d FROM t",
    "SELECT id, x.y AS c FROM (SELECT id, struct('12:30' AS y) AS x FROM t) WHERE x.y < 'a'",
    "SELECT id, map(name, 1)['today'] AS c FROM t WHERE coalesce(NULL, 'today') = name",
    "SELECT id FROM t WHERE CASE WHEN true THEN 'today' END = name",
    "SELECT id FROM t WHERE name BETWEEN '12:30' AND '13:00'",
    "SELECT id FROM t WHERE name LIKE 'today%' AND name NOT ILIKE 'Now' AND name RLIKE 'now|today'",
    "SELECT id FROM t WHERE name LIKE ANY ('today%', '12:30')",
    "SELECT id FROM t WHERE lower(name) = 'today' OR substring(name, 1, 5) = '12:30'",
    "SELECT id FROM t WHERE startswith(name, 'now') OR contains(name, 'today') OR instr(name, 'today') > 1",
    "SELECT id, regexp_replace(name, 'today', '') AS c, split(name, 'now')[0] AS d, concat_ws('now', name, id) AS e FROM t",
    "SELECT id FROM t WHERE date_format(at, 'HH:mm') = '12:30' OR nullif(name, 'today') = 'x'",
    "SELECT id, coalesce(name, 'today') AS c, ('16:9') AS ratio, array('16:9') AS r, CAST('today' AS STRING) AS d FROM t",
    "SELECT id FROM (SELECT id, date_format(at, 'HH:mm') AS c FROM t) JOIN u USING (id) WHERE c < '12:30'",
    "SELECT id, name FROM t UNION ALL (SELECT id, 'today' FROM u)",
    "SELECT id FROM t WHERE name IN (SELECT 'today' FROM u)",
    "SELECT id FROM t WHERE s.b > '12:30' OR concat(name, ':00') = '12:30' OR split(name, ',')[0] < '12:30'",
    "SELECT id FROM t WHERE split_part(name, ',', 1) = '12:30' OR get_json_object(name, '$.a') = '12:30'",
    "SELECT id FROM t WHERE reverse(name) = '12:30' OR named_struct('a', name).a = '12:30' OR char(id) = '1:30'",
    "SELECT id FROM t WHERE exists(array(name), x -> name = '12:30') OR name IN ('T1000', '16:9')",
    "SELECT id, '12:30' AS c, name > c AS late FROM t",
    "SELECT t.id FROM t JOIN u USING (id) WHERE t.s.b > '12:30' AND u.name > '12:30'",
    "SELECT id FROM t WHERE plain = CAST('2024-01-01 12:30' AS TIMESTAMP_NTZ)",
    "SELECT id FROM t WHERE at + INTERVAL '12:30' HOUR TO MINUTE > TIMESTAMP '2024-01-01 09:00:00'",
    "SELECT * FROM (SELECT id, name FROM t) PIVOT (max(id) FOR name IN ('today' AS now, '12:30' AS noon))",
    "SELECT id, (SELECT '12:30') AS c, max('12:30') OVER (PARTITION BY id) AS d FROM t",
    "SELECT id, transform(array(1), x -> '12:30') AS c FROM t",
    "SELECT id FROM t JOIN VALUES (TIMESTAMP '2024-01-01 09:00:00', '12:30') AS v(x, y) ON at > x AND name > y",
    "SELECT id FROM t JOIN (SELECT '12:30' AS y) AS s(x) ON name > x",
    "SELECT id, x FROM t LATERAL VIEW explode(array('12:30')) e AS x WHERE name > x",
    "SELECT * FROM (SELECT id, name FROM t) PIVOT (max('12:30') AS most FOR id IN (1 AS one))",
]


def analyzed(query: str) -> None:
    names = ["t", "u"] if " u" in query else ["t"]
    analyze(query, dict.fromkeys(names, T), dict.fromkeys(names, ("id",)))


@pytest.mark.parametrize("query", OF_THE_CLOCK)
def test_texts_that_may_become_times_are_refused(query: str) -> None:
    with pytest.raises(QueryError) as caught:
        analyzed(query)
    assert (caught.value.reason, "CAST(x AS STRING)" in caught.value.hint) == ("NOT_DETERMINISTIC", True)


@pytest.mark.parametrize("query", TEXTS)
def test_texts_that_stay_texts_are_not(query: str) -> None:
    analyzed(query)
