"""The 22 queries of TPC-H as views, in Spark SQL.

They are those of the TPC-H specification (revision 3), over the tables of `tpch_world`, with wider conditions and fewer first
rows, so that few rows meet them too. A view has no order: `ORDER BY` is there only beside `LIMIT`.
"""

from typing import Final

from tests.support.benchmark_queries import BenchmarkQueries

__all__ = ["COLUMNS", "KEYS", "QUERIES", "analyzed", "rule_of", "tables_of"]

COLUMNS: Final = {
    "region": "r_regionkey BIGINT, r_name STRING",
    "nation": "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT",
    "supplier": "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING, "
    "s_acctbal DECIMAL(12,2), s_comment STRING",
    "customer": "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING, "
    "c_acctbal DECIMAL(12,2), c_mktsegment STRING, c_comment STRING",
    "part": "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, p_container STRING",
    "partsupp": "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(12,2)",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(12,2), o_orderdate DATE, "
    "o_orderpriority STRING, o_shippriority INT, o_comment STRING",
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(12,2), "
    "l_extendedprice DECIMAL(12,2), l_discount DECIMAL(12,2), l_tax DECIMAL(12,2), l_returnflag STRING, "
    "l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING",
}
"""The tables with their columns."""

KEYS: Final = {"region": ("r_regionkey",), "nation": ("n_nationkey",)}
"""The keys of tables. The others have none: their rows may be there twice."""

_PRICE: Final = "l_extendedprice * (1 - l_discount)"

QUERIES: Final = {
    "q1": f"""SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
        sum({_PRICE}) AS sum_disc_price, sum({_PRICE} * (1 + l_tax)) AS sum_charge, avg(l_quantity) AS avg_qty,
        avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus""",
    "q2": """SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
        FROM part, supplier, partsupp, nation, region
        WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size < 40 AND p_type LIKE '%I%'
        AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name < 'MIDDLE'
        AND ps_supplycost = (SELECT min(ps_supplycost) FROM partsupp, supplier, nation, region
            WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
            AND n_regionkey = r_regionkey AND r_name < 'MIDDLE')
        ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 4""",
    "q3": f"""SELECT l_orderkey, sum({_PRICE}) AS revenue, o_orderdate, o_shippriority
        FROM customer, orders, lineitem
        WHERE c_mktsegment > 'B' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
        AND o_orderdate < DATE '1996-03-15' AND l_shipdate > DATE '1993-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 5""",
    "q4": """SELECT o_orderpriority, count(*) AS order_count FROM orders
        WHERE o_orderdate >= DATE '1993-07-01' AND EXISTS (SELECT * FROM lineitem
            WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority""",
    "q5": f"""SELECT n_name, sum({_PRICE}) AS revenue FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
        AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name < 'MIDDLE' AND o_orderdate >= DATE '1993-01-01'
        GROUP BY n_name""",
    "q6": """SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1993-01-01' AND l_discount BETWEEN 0.02 AND 0.07 AND l_quantity < 30""",
    "q7": f"""SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue
        FROM (SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, year(l_shipdate) AS l_year, {_PRICE} AS volume
            FROM supplier, lineitem, orders, customer, nation n1, nation n2
            WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
            AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey AND n1.n_name <> n2.n_name) AS shipping
        GROUP BY supp_nation, cust_nation, l_year""",
    "q8": f"""SELECT o_year, sum(CASE WHEN nation = 'NATION 1' THEN volume ELSE 0 END) / sum(volume) AS mkt_share
        FROM (SELECT year(o_orderdate) AS o_year, {_PRICE} AS volume, n2.n_name AS nation
            FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
            WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
            AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name < 'MIDDLE'
            AND s_nationkey = n2.n_nationkey AND p_type LIKE '%I%') AS all_nations
        GROUP BY o_year""",
    "q9": f"""SELECT nation, o_year, sum(amount) AS sum_profit
        FROM (SELECT n_name AS nation, year(o_orderdate) AS o_year, {_PRICE} - ps_supplycost * l_quantity AS amount
            FROM part, supplier, lineitem, partsupp, orders, nation
            WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
            AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%e%') AS profit
        GROUP BY nation, o_year""",
    "q10": f"""SELECT c_custkey, c_name, sum({_PRICE}) AS revenue, c_acctbal, n_name, c_address, c_phone, c_comment
        FROM customer, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R' AND c_nationkey = n_nationkey
        GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
        ORDER BY revenue DESC LIMIT 6""",
    "q11": """SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation
        WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name < 'NATION 3' GROUP BY ps_partkey
        HAVING sum(ps_supplycost * ps_availqty) > (SELECT sum(ps_supplycost * ps_availqty) * 0.1
            FROM partsupp, supplier, nation
            WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name < 'NATION 3')""",
    "q12": """SELECT l_shipmode, sum(CASE WHEN o_orderpriority = '1-URGENT' THEN 1 ELSE 0 END) AS high_line_count,
        sum(CASE WHEN o_orderpriority <> '1-URGENT' THEN 1 ELSE 0 END) AS low_line_count FROM orders, lineitem
        WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
        GROUP BY l_shipmode""",
    "q13": """SELECT c_count, count(*) AS custdist FROM (SELECT c_custkey, count(o_orderkey) AS c_count
            FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%'
            GROUP BY c_custkey) AS c_orders
        GROUP BY c_count""",
    "q14": f"""SELECT 100.00 * sum(CASE WHEN p_type LIKE 'P%' THEN {_PRICE} ELSE 0 END) / sum({_PRICE}) AS promo_revenue
        FROM lineitem, part WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1993-09-01'""",
    "q15": f"""WITH revenue AS (SELECT l_suppkey AS supplier_no, sum({_PRICE}) AS total_revenue FROM lineitem
            WHERE l_shipdate >= DATE '1993-01-01' GROUP BY l_suppkey)
        SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier, revenue
        WHERE s_suppkey = supplier_no AND total_revenue = (SELECT max(total_revenue) FROM revenue)""",
    "q16": """SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, part
        WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#1' AND p_size IN (1, 2, 3, 4, 5, 6, 7, 8) AND ps_suppkey NOT IN (
            SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Complaints%')
        GROUP BY p_brand, p_type, p_size""",
    "q17": """SELECT sum(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part
        WHERE p_partkey = l_partkey AND p_brand > 'Brand#1'
        AND l_quantity < (SELECT 0.8 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)""",
    "q18": """SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
        FROM customer, orders, lineitem
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 120)
        AND c_custkey = o_custkey AND o_orderkey = l_orderkey
        GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice ORDER BY o_totalprice DESC, o_orderdate LIMIT 4""",
    "q19": f"""SELECT sum({_PRICE}) AS revenue FROM lineitem, part
        WHERE (p_partkey = l_partkey AND p_brand = 'Brand#1' AND l_quantity < 20)
        OR (p_partkey = l_partkey AND p_brand = 'Brand#2' AND l_quantity BETWEEN 5 AND 40)""",
    "q20": """SELECT s_name, s_address FROM supplier, nation
        WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp
            WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE '%e%')
            AND ps_availqty > (SELECT 0.5 * sum(l_quantity) FROM lineitem
                WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND l_shipdate >= DATE '1993-01-01'))
        AND s_nationkey = n_nationkey AND n_name < 'NATION 4'""",
    "q21": """SELECT s_name, count(*) AS numwait FROM supplier, lineitem l1, orders, nation
        WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
        AND l1.l_receiptdate > l1.l_commitdate AND EXISTS (SELECT * FROM lineitem l2
            WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
        AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey
            AND l3.l_suppkey <> l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate)
        AND s_nationkey = n_nationkey AND n_name < 'NATION 4' GROUP BY s_name
        ORDER BY numwait DESC, s_name LIMIT 3""",
    "q22": """SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
        FROM (SELECT substring(c_phone, 1, 2) AS cntrycode, c_acctbal FROM customer
            WHERE substring(c_phone, 1, 2) IN ('11', '12', '13', '14')
            AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0.00)
            AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale
        GROUP BY cntrycode""",
}
"""The queries by their names."""

_OVER_TABLES: Final = BenchmarkQueries(columns=COLUMNS, keys=KEYS, naming=r"\b{0}\b")
tables_of, analyzed, rule_of = _OVER_TABLES.tables_of, _OVER_TABLES.analyzed, _OVER_TABLES.rule_of
