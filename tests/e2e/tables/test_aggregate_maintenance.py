"""Aggregate views on real Spark: after any history of changes, they have the same rows as Spark's own batch query."""

import math
import random
from collections import Counter
from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from backfill_assets.adapters.sql.apply_aggregate import SIGN, Reach, maintained, stored
from backfill_assets.errors import QueryError
from backfill_assets.query.aggregate import AggregateQuery, analyze_aggregate
from backfill_assets.query.ddl import ddl, parse_schema
from backfill_assets.query.working_columns import OPERATION
from tests.support.local_rows import local_rows
from tests.support.settings import one_in_gate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.e2e

COLUMNS = parse_schema(
    "g STRING, day DATE, d DOUBLE, l LONG, i INT, m DECIMAL(12,2), f DOUBLE, t STRING, _error STRING"
)
SIGNED = f"{ddl(COLUMNS)}, {SIGN} INT"
Row = tuple[Any, ...]

EXACT = (
    "SELECT g, count(*) AS n, count(i) AS ni, sum(l) AS sl, avg(i) AS ai, sum(m) AS sm, avg(m) AS am FROM t GROUP BY g"
)
QUERIES = {
    "visible keys": "SELECT g, day, count(*) AS n, count(i) AS ni, sum(l) AS sl, sum(i) AS si, avg(i) AS ai, sum(m) AS sm, "
    "avg(m) AS am, round(avg(m), 2) AS rm, sum(i) / count(*) AS per, upper(g) || 'x{2}' AS u, n * 2 AS twice "
    "FROM t WHERE l IS NULL OR l > -90 GROUP BY g, day",
    "extremes": "SELECT g AS k, min(l) AS a, max(l) AS b, min(m) AS c, max(m) AS d, min(f) AS e, max(f) AS f, min(t) AS h, "
    "max(t) AS i, min(day) AS j, max(day) AS k2, max(d + 1) AS l, max(struct(day, i)).i AS li, "
    "max(named_struct('y.z', i, 'größe', day)).`y.z` AS lz FROM t GROUP BY k",
    "floats": "SELECT d, sum(f) AS sf, avg(f) AS af, count(f) AS nf, sum(m) AS sm, max(i) AS mi FROM t GROUP BY 1",
    "hidden keys": "SELECT sum(f + l) AS s, max(abs(i)) AS x, count(*) AS n FROM t GROUP BY d, month(day), upper(t)",
    "intervals": "SELECT g, CAST(sum(day - DATE '2024-01-10') AS STRING) AS s, "
    "CAST(min(day - DATE '2024-01-10') AS STRING) AS l, CAST(avg(day - DATE '2024-01-10') AS STRING) AS a, "
    "CAST(max(make_ym_interval(1, i)) AS STRING) AS m, "
    "CAST(avg(make_ym_interval(i, 5)) AS STRING) AS y, CAST(avg(make_dt_interval(0, i, 0, m)) AS STRING) AS t, "
    "extract(SECOND FROM sum(make_dt_interval(0, 0, 0, m))) AS e, count(day - DATE '2024-01-10') AS n FROM t GROUP BY g",
    "one group": "SELECT count(*) AS n, sum(i) AS s FROM t GROUP BY 'all'",
}
IN_GATE = ("extremes", "intervals")


def analyze(query: str) -> AggregateQuery:
    return analyze_aggregate(query, {"t": COLUMNS})


def comparable(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def bag(rows: Iterable[Any], columns: Iterable[str]) -> "Counter[Row]":
    names = list(columns)
    return Counter(tuple(comparable(row[name]) for name in names) for row in rows)


class View:
    """The rows of an upstream, and the stored rows of a view that are maintained by changes alone."""

    def __init__(self, spark: "SparkSession", query: str, *, reach: Reach = Reach.FEW_GROUPS) -> None:
        self.spark, self.sql, self.query, self.reach = spark, query, analyze(query), reach
        self.rows: list[Row] = []
        groups = stored(self.query, self.upstream())
        self.schema, self.stored = groups.schema, groups.collect()

    def upstream(self) -> "DataFrame":
        return local_rows(self.spark, self.rows, ddl(COLUMNS))

    def old(self) -> "DataFrame":
        return local_rows(self.spark, self.stored, self.schema)

    def change(self, deleted: list[Row], inserted: list[Row], upstream: "DataFrame | None" = None) -> list[Any]:
        for row in inserted:
            self.rows.append(row)
        for row in deleted:
            self.rows.remove(row)
        return self.maintain(deleted, inserted, upstream if upstream is not None else self.upstream())

    def maintain(self, deleted: list[Row], inserted: list[Row], upstream: "DataFrame | None") -> list[Any]:
        signed = [*((*row, -1) for row in deleted), *((*row, 1) for row in inserted)]
        changes = local_rows(self.spark, signed, SIGNED)
        again = None if upstream is None else (lambda: upstream)
        result = maintained(self.query, changes, self.old(), again, reach=self.reach)
        assert result.schema.fieldNames() == [*self.schema.fieldNames(), OPERATION]
        given = result.collect()
        keys = bag(given, self.query.key_columns)
        assert set(keys.values()) <= {1}
        left = [row for row in self.stored if not bag([row], self.query.key_columns).keys() & keys.keys()]
        names = self.schema.fieldNames()
        self.stored = left + [tuple_of(row, names) for row in given if row[OPERATION] != "delete"]
        return given

    def check(self) -> None:
        self.upstream().where("_error IS NULL").createOrReplaceTempView("t")
        batch = self.spark.sql(self.sql)
        visible = self.query.output_columns
        assert [(each.name, each.dataType) for each in self.schema][: len(visible)] == [
            (name, each.dataType) for name, each in zip(visible, batch.schema, strict=True)
        ]
        expected = Counter(tuple(map(comparable, row)) for row in batch.collect())
        assert bag(self.stored, visible) == expected
        every = self.schema.fieldNames()
        assert bag(self.stored, every) == bag(stored(self.query, self.upstream()).collect(), every), "hidden columns"


def tuple_of(row: Any, names: list[str]) -> Any:
    from pyspark.sql import Row as SparkRow

    return SparkRow(*names)(*(row[name] for name in names))


def random_row(chance: random.Random) -> Row:
    def some(*values: Any) -> Any:
        return chance.choice([None, *values])

    special = [math.nan, math.inf, -math.inf] if chance.random() < 0.1 else [0.0, -0.0]
    return (
        some("a", "b", "B"),
        some(date(2024, 1, 1), date(2024, 1, 1) + timedelta(days=chance.randrange(40))),
        some(0.0, -0.0, math.nan, float("nan"), 1.5),
        some(chance.randrange(-99, 99), 2**55),
        some(chance.randrange(-9, 9)),
        some(Decimal(chance.randrange(-(10**6), 10**6)).scaleb(-2), Decimal("9999999999.99")),
        some(chance.randrange(-64, 64) / 8, *special),
        some("x", "X", "y", ""),
        chance.choice([None] * 9 + ["bad"]),
    )


def random_history(view: View, seed: int) -> None:
    chance = random.Random(seed)
    for share in (0.15, 0.0, 0.9, 0.2):
        inserted = [random_row(chance) for _ in range(chance.choice([3, 30]))]
        # Some rows are inserted and deleted in the same batch; once nearly all are deleted.
        known = [*view.rows, *inserted]
        deleted = chance.sample(known, int(len(known) * share))
        view.change(deleted, inserted)
        view.check()


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        *(pytest.param(name, 1, marks=[] if name in IN_GATE else pytest.mark.full) for name in QUERIES),
        *(pytest.param(name, 2, marks=pytest.mark.full) for name in ("extremes", "visible keys")),
    ],
)
def test_after_every_batch_of_a_random_history_the_view_is_the_batch_answer(
    spark: "SparkSession", name: str, seed: int
) -> None:
    print(f"query {name!r}, seed {seed}")  # noqa: T201 # shown where the test fails
    reach = [*Reach][([*QUERIES].index(name) // 2 + seed) % len(Reach)]
    random_history(View(spark, QUERIES[name], reach=reach), seed)


def row(g: str | None = "a", **values: Any) -> Row:
    return tuple({"g": g, **values}.get(column.name) for column in COLUMNS)


def never(spark: "SparkSession") -> "DataFrame":
    """An upstream that fails if any of its rows is computed."""
    columns = [f"CAST(raise_error('the upstream was read') AS {each.type}) AS {each.name}" for each in COLUMNS]
    return spark.range(3).selectExpr(*columns)


def test_vanished_groups_are_deleted_by_key_and_may_come_back_in_the_same_batch(spark: "SparkSession") -> None:
    view = View(spark, "SELECT g, sum(i) / count(*) AS per, max(f) AS m FROM t GROUP BY g")
    view.change([], [row("a", i=1, f=1.0), row("b", i=2), row(None, i=3)])
    given = view.change([row("a", i=1, f=1.0), row("b", i=2), row(None, i=3)], [row("b", i=4)], never(spark))
    assert {(each["g"], each["per"], each[OPERATION]) for each in given} == {
        ("a", None, "delete"),
        (None, None, "delete"),
        ("b", 4.0, "update"),
    }
    view.check()


@pytest.mark.parametrize("reach", Reach)
def test_groups_that_nothing_touches_do_not_come(spark: "SparkSession", reach: Reach) -> None:
    view = View(spark, EXACT, reach=reach)
    view.change([], [row("a", i=1), row("b", i=2), row(None, i=3)])
    assert [(each["g"], each[OPERATION]) for each in view.change([], [row("b", i=4)])] == [("b", "update")]
    view.check()


def test_a_group_that_is_inserted_and_deleted_in_one_batch_gives_no_row(spark: "SparkSession") -> None:
    view = View(spark, EXACT)
    assert view.change([row("a", i=1)], [row("a", i=1)], never(spark)) == []


def test_a_group_with_nothing_but_nulls_has_null_results(spark: "SparkSession") -> None:
    view = View(spark, "SELECT g, sum(i) AS s, avg(m) AS a, min(f) AS x, sum(f) AS sf, count(i) AS n FROM t GROUP BY g")
    one = row("a", i=1, m=Decimal(1), f=math.nan)
    view.change([], [one, row("a")])
    view.change([one], [])
    view.check()
    assert bag(view.stored, view.query.output_columns) == Counter([("a", None, None, None, None, 0)])
    by_arithmetic = View(spark, "SELECT g, sum(i) AS s, avg(i) AS a FROM t GROUP BY g")
    by_arithmetic.change([], [row("a", i=1), row("a")])
    by_arithmetic.change([row("a", i=1)], [], never(spark))
    by_arithmetic.check()
    assert bag(by_arithmetic.stored, by_arithmetic.query.output_columns) == Counter([("a", None, None)])


def test_the_upstream_is_not_read_where_arithmetic_is_enough(spark: "SparkSession") -> None:
    view = View(spark, "SELECT g, sum(i) AS s, avg(m) AS am, max(i) AS m, min(l) AS l, sum(f) AS f FROM t GROUP BY g")
    low = row("a", i=1, m=Decimal("1.25"), l=9)
    view.change([], [low, row("a", i=5, l=1, f=0.5), row("b", i=1)])
    view.change([low], [row("a", i=7, l=0, f=math.inf), row("c", i=1)], never(spark))
    view.check()


@pytest.mark.parametrize("gone", [row("a", i=5), row("a", i=1, f=0.5)])
def test_the_upstream_is_read_where_an_extreme_or_a_float_goes(spark: "SparkSession", gone: Row) -> None:
    view = View(spark, "SELECT g, max(i) AS m, sum(f) AS f FROM t GROUP BY g")
    view.change([], [row("a", i=5), row("a", i=1, f=0.5), row("a", i=3, f=2.5), row("b", i=1)])
    with pytest.raises(PySparkException, match="the upstream was read"):
        view.maintain([gone], [], never(spark))
    view.change([gone], [])
    view.check()


def test_an_append_only_upstream_is_not_needed_and_a_retraction_from_it_is_an_error(spark: "SparkSession") -> None:
    view = View(spark, "SELECT g, max(i) AS m, sum(f) AS f FROM t GROUP BY g")
    view.rows = [row("a", i=5, f=math.inf), row("a", i=6)]
    view.maintain([], view.rows, None)
    view.check()
    with pytest.raises(PySparkException, match="cannot be maintained"):
        view.maintain([row("a", i=6)], [], None)


def test_a_retraction_of_what_was_never_counted_is_an_error(spark: "SparkSession") -> None:
    view = View(spark, EXACT)
    view.change([], [row("a", i=1)])
    with pytest.raises(PySparkException, match="than it has"):
        view.maintain([row("a", i=1), row("a", i=1)], [], never(spark))


def test_a_sum_past_bigint_is_an_error_that_a_retraction_heals(spark: "SparkSession") -> None:
    view = View(spark, "SELECT g, sum(l) AS s FROM t GROUP BY g")
    most = row("a", l=2**63 - 1)
    view.change([], [most])
    with pytest.raises(PySparkException, match="OVERFLOW"):
        view.maintain([], [most], None)
    view.change([most], [row("a", l=-(2**63)), row("a", l=2)])
    view.check()


@pytest.mark.parametrize(
    "kind",
    [
        *("1,0", "28,10", "32,32", "33,2", "38,38"),
        *(pytest.param(each, marks=pytest.mark.full) for each in ("12,2", "18,18", "32,0", "34,0", "37,36", "38,18")),
    ],
)
def test_averages_of_decimals_are_exactly_those_of_spark(spark: "SparkSession", kind: str) -> None:
    precision, scale = map(int, kind.split(","))
    chance = random.Random(kind)
    columns = parse_schema(f"g INT, m DECIMAL({kind})")
    most = 10 ** min(precision, 34) - 1  # the type of longer averages has no room for more
    numbers = [(g, chance.randrange(-most, most + 1)) for g in range(40) for _ in range(g + 1)]
    numbers += [(40, -most + chance.randrange(2)) for _ in range(150)]  # for 32 digits, their sum has 35
    numbers += [(41, number) for number in (0, 1, -1, 1)]  # a fourth: a digit after those of the numbers
    texts = [(g, f"{number}E-{scale}") for g, number in numbers]
    rows = local_rows(spark, texts, "g INT, m STRING").selectExpr("g", f"CAST(m AS DECIMAL({kind})) AS m")
    rows.createOrReplaceTempView("decimals")
    text = "SELECT g, avg(m) AS a, sum(m) AS s FROM decimals GROUP BY g"
    ours = stored(analyze_aggregate(text, {"decimals": columns}), rows).select("g", "a", "s")
    batch = spark.sql(text)
    assert ours.dtypes == batch.dtypes
    assert Counter(map(tuple, ours.collect())) == Counter(map(tuple, batch.collect()))


@pytest.mark.parametrize("kind", one_in_gate("38,10", "34,2", "38,0", "38,38"))
def test_decimals_that_go_take_all_their_digits_with_them(spark: "SparkSession", kind: str) -> None:
    precision, scale = map(int, kind.split(","))
    columns = parse_schema(f"g INT, m DECIMAL({kind})")
    query = analyze_aggregate("SELECT g, sum(m) AS s FROM decimals GROUP BY g", {"decimals": columns})

    def rows(*digits: str) -> "DataFrame":
        texts = [(1, f"{sign}{each}E-{scale}") for each in digits for sign in ("", "-")]
        given = local_rows(spark, [*texts, (1, f"1E-{scale}")], "g INT, m STRING")
        return given.selectExpr("g", f"CAST(m AS DECIMAL({kind})) AS m")

    some, more = "123456789" * 4 + "12", "98765432109876543210987654321098765431"
    before, after = rows(some[:precision], more[:precision]), rows(more[:precision])
    gone = before.exceptAll(after).where("m > 0")
    changes, left = gone.selectExpr("*", f"-1 AS {SIGN}"), before.exceptAll(gone)
    found = maintained(query, changes, stored(query, before), lambda: left).select("s").first()
    assert found is not None
    assert Fraction(found["s"]) == sum(Fraction(each["m"]) for each in left.collect()) < 0


def test_sums_of_what_spark_does_not_add_are_refused(spark: "SparkSession") -> None:
    with pytest.raises(QueryError) as raised:
        View(spark, "SELECT g, sum(i > 1) AS s FROM t GROUP BY g")
    assert raised.value.reason == "AGGREGATE_TYPE"


def test_what_spark_refuses_is_refused_in_its_words(spark: "SparkSession") -> None:
    with pytest.raises(QueryError) as raised:
        View(spark, "SELECT g, no_such_function(sum(i)) AS s FROM t GROUP BY g")
    assert raised.value.reason == "SPARK"
