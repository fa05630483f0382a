"""Why a query cannot be maintained: one stable reason code each, with what the user can do about it."""

from collections.abc import Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

from sqlglot import Token, exp

from backfill_assets.errors import QueryError
from backfill_assets.query.functions import CLOCK_FUNCTIONS

__all__ = [
    "AGGREGATE_HINTS",
    "HINTS",
    "nearest",
    "not_total",
    "place",
    "place_of",
    "refusal",
    "refused_by_spark",
    "refused_call",
    "refused_clock",
    "refused_text",
    "refused_word",
]

_ROW_BY_ROW: Final = "a row-wise view computes each row from one record alone"

HINTS: Final = MappingProxyType({
    "AGGREGATE": f"{_ROW_BY_ROW}; aggregate when reading the view",
    "COLUMN_NAME": "give the column another name with AS: letters, digits and underscores, and no `__` in front",
    "CTE": "write the query without WITH: SELECT expressions FROM one upstream WHERE conditions",
    "DISTINCT": f"{_ROW_BY_ROW}; use UNION ALL, and remove duplicates when reading the view",
    "DUPLICATE_COLUMN": "give each column its own name with AS; Spark does not tell names apart by case",
    "FORM": "write SELECT expressions FROM an upstream WHERE conditions",
    "GENERATOR": f"{_ROW_BY_ROW}, exactly one; keep the array or map, and explode it when reading the view",
    "GROUP_BY": f"{_ROW_BY_ROW}; group when reading the view",
    "HAVING": f"{_ROW_BY_ROW}; use WHERE for conditions on a record",
    "JOIN": f"{_ROW_BY_ROW}; name one upstream in FROM, and join when reading the view",
    "KEY_MISMATCH": "give the tables the same primary_key",
    "NOT_A_QUERY": "write one query: SELECT expressions FROM upstreams",
    "NOT_DETERMINISTIC": "the same rows must always give the same result: use values that columns hold, such as a time or "
    "an id (those of Kafka records hold also _timestamp, _partition and _offset)",
    "ORDER_DEPENDENT": "order what is collected, as in array_sort(collect_list(x)) or listagg(x) WITHIN GROUP "
    "(ORDER BY x); order rows by what is taken, too, as in max_by(x, struct(time, x)); or take min, max, count or sum",
    "ORDER_NOT_TOTAL": "order the rows by columns that tell them apart",
    "ORDER_LIMIT": "a table has no order; sort and limit when reading the view",
    "STAR": "name the fields one by one",
    "SUBQUERY": f"{_ROW_BY_ROW}; name one upstream in FROM and use plain expressions",
    "SYNTAX": "write Spark SQL: SELECT expressions FROM an upstream WHERE conditions",
    "UNION_MISMATCH": "give each part of UNION ALL the same number of columns, in the same order",
    "UNKNOWN_COLUMN": "use a column of the upstream",
    "UNKNOWN_FUNCTION": "write what the function computes in the query: of one in a catalog nobody can tell what it reads, "
    "and whether it gives the same again",
    "UNKNOWN_UPSTREAM": "name one of the view's upstreams",
    "UNNAMED_COLUMN": "give it a name with AS",
    "UNSUPPORTED": "leave it out: write the names themselves, and clauses from SELECT to LIMIT",
    "UNUSED_UPSTREAM": "read it in the query, or take it out of upstreams",
    "WINDOW": f"{_ROW_BY_ROW}; use window functions when reading the view",
})
"""Reason code -> what to do, for every query."""

AGGREGATE_HINTS: Final = MappingProxyType({
    "AGGREGATE_DISTINCT": "leave DISTINCT out, or group by the expression too and aggregate when reading the view",
    "AGGREGATE_FILTER": "put the condition into the argument: sum(IF(condition, x, NULL)), count(IF(condition, 1, NULL))",
    "AGGREGATE_FUNCTION": "use count(*), count(x), sum(x), avg(x), min(x) and max(x), each with one argument",
    "AGGREGATE_NESTED": "aggregate once here, and again in a view over this view",
    "AGGREGATE_PLACE": "aggregates belong into the SELECT list; make a row-wise view over this view for more",
    "AGGREGATE_TYPE": "cast the argument to a type that Spark adds up, such as BIGINT, DECIMAL(28,6) or DOUBLE",
    "AGGREGATE_UNION": "make a row-wise view with the UNION ALL, and aggregate in a view over it",
    "GROUPING_SETS": "make one view for each set of group expressions",
    "GROUP_FORM": "write the group expression as GROUP BY has it",
    "GROUP_POSITION": "name the group expressions, or count the SELECT list from 1",
    "NO_GROUP_BY": "add GROUP BY; for one row over everything group by a constant, such as GROUP BY 'all'",
    "UNGROUPED_COLUMN": "add the column to GROUP BY, write the group expression as GROUP BY has it, or aggregate the column",
})
"""Reason code -> what to do, for queries that aggregate."""


def refusal(reason: str, message: str, *, hint: str = "") -> QueryError:
    """The error that refuses a query, with the reason's own hint unless a better one is given."""
    return QueryError(message, reason=reason, hint=hint or HINTS.get(reason) or AGGREGATE_HINTS[reason])


def place(at: Token | exp.Expr) -> str:
    """Where a token or a part of a query begins, as words that follow what is said of it; empty if that is not known.

    Example:
        >>> from sqlglot.dialects.spark import Spark
        >>> place(Spark.Tokenizer().tokenize("SELECT a,\\n  b")[3])
        ' in line 2, column 3'
    """
    if isinstance(at, Token):
        return f" in line {at.line}, column {at.col - (at.end - at.start)}"
    first = min(
        (each.meta for each in at.walk() if "start" in each.meta), key=lambda meta: int(meta["start"]), default=None
    )
    return "" if first is None else f" in line {first['line']}, column {first['col'] - (first['end'] - first['start'])}"


def place_of(query: str, start: int) -> str:
    """The same words for a character of a query, which are counted from 0.

    Example:
        >>> place_of("SELECT a,\\n  b", 12)
        ' in line 2, column 3'
    """
    line = query.count("\n", 0, start) + 1
    return f" in line {line}, column {start - query.rfind(chr(10), 0, start)}"


def refused_call(reason: str, name: str, where: str = "") -> QueryError:
    """The error that refuses a call of a function; `where` it is (`place`)."""
    is_clock = name in CLOCK_FUNCTIONS and reason == "NOT_DETERMINISTIC"
    said = f"calls {name}(){where}"
    return refused_clock(said) if is_clock else refusal(reason, f"the query {said}")


def refused_word(word: str, where: str = "", *, hint: str = "") -> QueryError:
    """The error that refuses a word that calls a function of the clock or the session; `where` it is (`place`)."""
    if word.lower().removesuffix("()") in CLOCK_FUNCTIONS:
        return refused_clock(f"has {word}{where}")
    return refusal("NOT_DETERMINISTIC", f"the query has {word}{where}, which is not the same every time", hint=hint)


def refused_clock(what: str) -> QueryError:
    """The error that refuses the clock's time: `what` the query does to have it."""
    hint = (
        'with refresh_mode="full" each refresh computes the whole view for one time, and current_date, now() and the like '
        "may be called; otherwise use the record's own columns, such as _timestamp"
    )
    return refusal("NOT_DETERMINISTIC", f"the query {what}, which is not the same every time", hint=hint)


def refused_text(text: str, where: str = "") -> QueryError:
    """The error that refuses a string, as SQL, that Spark may read as the clock's date or time; `where` it is (`place`)."""
    hint = (
        'name the date and the time in full, or call current_date or now() with refresh_mode="full"; if it is to be a text, '
        "compare it with texts alone, as with CAST(x AS STRING)"
    )
    return refusal(
        "NOT_DETERMINISTIC",
        f"the query has the text {text}{where}, which Spark may read as the time of the clock",
        hint=hint,
    )


def refused_by_spark(said: str, fragment: str = "", where: str = "") -> QueryError:
    """The error for a query that Spark's own analysis refuses: what it `said`, the `fragment` of the text that it named, and
    `where` that is."""
    return QueryError(
        f"Spark refuses {fragment or 'the query'}{where}: {said}",
        reason="SPARK",
        hint="correct the query's names, types and functions",
        fragment=fragment,
        said=said,
    )


def not_total(message: str, hint: str) -> QueryError:
    """The error that refuses a query in which chance says which rows come first, and the order cannot be completed."""
    return refusal("ORDER_NOT_TOTAL", f"{message}, so the result would depend on chance", hint=hint)


def nearest(name: str, known: Sequence[str], longer: Sequence[str] = ()) -> str:
    """A hint that suggests one of `known` or `longer` for `name`, or says what is known; empty if nothing is."""
    by_small = {each.lower(): each for each in (*longer, *known)}
    close = get_close_matches(name.lower(), by_small, n=1)
    if close:
        return f"did you mean {by_small[close[0]]}?"
    return f"there is {', '.join(known)}" if known else ""
