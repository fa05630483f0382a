"""The queries of Nexmark as views, in Spark SQL: those of the benchmark, and those that the tests of RisingWave add (101 to
107, and rewrites).

They are written anew over the tables of `nexmark_world`, with wider conditions, so that few rows meet them too. Windows of
time are computed in subqueries, so that the rules see columns. Where the benchmark means the time at which a row is
processed, the time of the event is taken: a view says the same whenever it is computed.
"""

from typing import Final

from tests.support.benchmark_queries import BenchmarkQueries

__all__ = ["COLUMNS", "KEYS", "QUERIES", "REFUSED", "analyzed", "rule_of", "tables_of"]

COLUMNS: Final = {
    "person": "id BIGINT, name STRING, email_address STRING, credit_card STRING, city STRING, state STRING, "
    "date_time TIMESTAMP, extra STRING",
    "auction": "id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, date_time TIMESTAMP, "
    "expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING",
    "bid": "number BIGINT, auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP, "
    "extra STRING",
    "side_input": "key BIGINT, value STRING",
}
"""The tables, with the columns of the benchmark, and a number for each bid."""

KEYS: Final = {"bid": ("number",)}
"""The keys of tables. The others have none: producers that send a record again make rows that are there twice."""

_TUMBLING: Final = "window(date_time, '10 seconds')"
_HOPPING: Final = """(SELECT auction, starttime, count(*) AS num FROM (
        SELECT auction, window(date_time, '10 seconds', '2 seconds').start AS starttime FROM bid)
    GROUP BY auction, starttime)"""
_IN_TIME: Final = "a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires"
_RANKS: Final = ("price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")
_CHANNEL_ID: Final = "nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')"
_CHANNELS: Final = "'apple', 'google', 'facebook', 'baidu'"


def _by_rank(call: str, name: str) -> str:
    """An aggregate over all rows, and over those of each range of prices."""
    ranks = (f"{call} FILTER (WHERE {rank}) AS rank{number}_{name}" for number, rank in enumerate(_RANKS, 1))
    return ", ".join((f"{call} AS total_{name}", *ranks))


_COUNTS: Final = ", ".join(
    _by_rank(f"count({counted})", name)
    for counted, name in (("*", "bids"), ("DISTINCT bidder", "bidders"), ("DISTINCT auction", "auctions"))
)

_WINNING: Final = f"""(SELECT a.id, a.seller, b.price AS final, b.date_time,
        row_number() OVER (PARTITION BY a.id, a.seller ORDER BY b.price DESC) AS place
    FROM auction a, bid b WHERE {_IN_TIME})"""

QUERIES: Final = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 3 = 0",
    "q3": """SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q4": f"""SELECT category, avg(final) AS price FROM (
            SELECT max(b.price) AS final, a.category FROM auction a, bid b WHERE {_IN_TIME} GROUP BY a.id, a.category)
        GROUP BY category""",
    "q5": f"""SELECT bids.auction, bids.num, bids.starttime FROM {_HOPPING} AS bids
        JOIN (SELECT starttime, max(num) AS most FROM {_HOPPING} GROUP BY starttime) AS hottest
        ON bids.starttime = hottest.starttime AND bids.num >= hottest.most""",
    "q6": f"""SELECT seller, final, avg(final) OVER (
            PARTITION BY seller ORDER BY date_time ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS price
        FROM {_WINNING} WHERE place = 1""",
    "q7": f"""SELECT b.auction, b.price, b.bidder, b.date_time FROM bid b
        JOIN (SELECT max(price) AS most, ends FROM (SELECT price, {_TUMBLING}.end AS ends FROM bid) GROUP BY ends) AS best
        ON b.price = best.most AND b.date_time >= best.ends - INTERVAL '10' SECOND AND b.date_time < best.ends""",
    "q8": f"""SELECT p.id, p.name, p.starttime
        FROM (SELECT id, name, starttime FROM (SELECT id, name, {_TUMBLING}.start AS starttime FROM person)
            GROUP BY id, name, starttime) AS p
        JOIN (SELECT seller, starttime FROM (SELECT seller, {_TUMBLING}.start AS starttime FROM auction)
            GROUP BY seller, starttime) AS a
        ON p.id = a.seller AND p.starttime = a.starttime""",
    "q9": f"""SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category,
            bidder, price, bid_time
        FROM (SELECT a.*, b.bidder, b.price, b.date_time AS bid_time,
                row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS place
            FROM auction a, bid b WHERE {_IN_TIME})
        WHERE place = 1""",
    "q10": """SELECT auction, bidder, price, date_time, extra, date_format(date_time, 'yyyy-MM-dd') AS day,
        date_format(date_time, 'HH:mm') AS minute FROM bid""",
    # Sessions end after ten seconds without a bid.
    "q11": """SELECT bidder, session_window(date_time, '10 seconds').start AS starttime,
            session_window(date_time, '10 seconds').end AS endtime, count(*) AS bids
        FROM bid GROUP BY bidder, session_window(date_time, '10 seconds')""",
    # The benchmark takes the time of processing here.
    "q12": f"""SELECT bidder, starttime, endtime, count(*) AS bids
        FROM (SELECT bidder, {_TUMBLING}.start AS starttime, {_TUMBLING}.end AS endtime FROM bid)
        GROUP BY bidder, starttime, endtime""",
    # The benchmark joins the side input as it is when a bid is processed; a view joins it as it is now.
    "q13": """SELECT b.auction, b.bidder, b.price, b.date_time, s.value
        FROM bid b JOIN side_input s ON b.auction % 4 = s.key""",
    "q14": """SELECT auction, bidder, 0.908 * price AS price,
            CASE WHEN hour(date_time) BETWEEN 8 AND 18 THEN 'day' WHEN hour(date_time) BETWEEN 7 AND 19 THEN 'other'
                ELSE 'night' END AS part_of_day,
            date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
        FROM bid WHERE 0.908 * price > 4000 AND 0.908 * price < 20000000""",
    "q15": f"""SELECT day, {_COUNTS} FROM (SELECT *, date_format(date_time, 'yyyy-MM-dd') AS day FROM bid) GROUP BY day""",
    "q16": f"""SELECT channel, day, max(minute) AS minute, {_COUNTS}
        FROM (SELECT *, date_format(date_time, 'yyyy-MM-dd') AS day, date_format(date_time, 'HH:mm') AS minute FROM bid)
        GROUP BY channel, day""",
    "q17": f"""SELECT auction, day, {_by_rank("count(*)", "bids")}, min(price) AS min_price, max(price) AS max_price,
            avg(price) AS avg_price, sum(price) AS sum_price
        FROM (SELECT *, date_format(date_time, 'yyyy-MM-dd') AS day FROM bid) GROUP BY auction, day""",
    "q18": """SELECT auction, bidder, price, channel, url, date_time, extra
        FROM (SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place FROM bid)
        WHERE place = 1""",
    "q19": """SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid)
        WHERE place <= 3""",
    "q20": """SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time AS bid_time, a.item_name, a.description,
            a.initial_bid, a.reserve, a.date_time AS auction_time, a.expires, a.seller, a.category
        FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10""",
    "q21": f"""SELECT auction, bidder, price, channel,
            CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
                ELSE {_CHANNEL_ID} END AS channel_id
        FROM bid WHERE {_CHANNEL_ID} IS NOT NULL OR lower(channel) IN ({_CHANNELS})""",
    "q22": """SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
        split_part(url, '/', 6) AS dir3 FROM bid""",
    "q5_rewrite": f"""SELECT auction, num, starttime
        FROM (SELECT *, rank() OVER (PARTITION BY starttime ORDER BY num DESC) AS place FROM {_HOPPING}) WHERE place = 1""",
    "q7_rewrite": f"""SELECT auction, price, bidder, date_time
        FROM (SELECT *, rank() OVER (PARTITION BY ends ORDER BY price DESC) AS place
            FROM (SELECT *, {_TUMBLING}.end AS ends FROM bid))
        WHERE place = 1""",
    "q19_rewrite": """SELECT auction, bidder, price, date_time,
            row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS place
        FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS inner_place FROM bid)
        WHERE inner_place <= 3""",
    "q101": """SELECT a.id, a.item_name, b.most FROM auction a
        LEFT JOIN (SELECT auction, max(price) AS most FROM bid GROUP BY auction) AS b ON a.id = b.auction""",
    "q102": """SELECT a.id, a.item_name, count(b.auction) AS bids FROM auction a JOIN bid b ON a.id = b.auction
        GROUP BY a.id, a.item_name HAVING count(b.auction) >= (SELECT count(*) / count(DISTINCT auction) FROM bid)""",
    "q103": """SELECT a.id, a.item_name FROM auction a
        WHERE a.id IN (SELECT b.auction FROM bid b GROUP BY b.auction HAVING count(*) >= 8)""",
    "q104": """SELECT a.id, a.item_name FROM auction a
        WHERE a.id NOT IN (SELECT b.auction FROM bid b GROUP BY b.auction HAVING count(*) < 8)""",
    "q105": """SELECT a.id, a.item_name, count(b.auction) AS bids FROM auction a JOIN bid b ON a.id = b.auction
        GROUP BY a.id, a.item_name ORDER BY bids DESC LIMIT 5""",
    "q106": f"""SELECT min(final) AS least FROM (
        SELECT a.id, max(b.price) AS final FROM auction a, bid b WHERE {_IN_TIME} GROUP BY a.id)""",
    "q107": """SELECT percentile(price, 0.01) AS p01, percentile(price, 0.1) AS p10, percentile(price, 0.5) AS p50,
        percentile(price, 0.9) AS p90, percentile(price, 0.99) AS p99 FROM bid""",
}
"""The queries by their names."""

REFUSED: Final = {
    "q12": (
        "NOT_DETERMINISTIC",
        "SELECT bidder, count(*) AS bids FROM bid GROUP BY bidder, window(now(), '10 seconds')",
    ),
    "q107": ("ORDER_DEPENDENT", "SELECT approx_percentile(price, 0.5) AS p50 FROM bid"),
}
"""Queries as the benchmark has them that are refused, each with its reason: a window of the time of processing, and
percentiles that depend on the order of rows."""

_OVER_TABLES: Final = BenchmarkQueries(columns=COLUMNS, keys=KEYS, naming=r"(FROM|JOIN) {0}\b|, {0} [a-z]\b")
tables_of, analyzed, rule_of = _OVER_TABLES.tables_of, _OVER_TABLES.analyzed, _OVER_TABLES.rule_of
