"""Why a query is not row-wise: one stable reason code each, with what the user can do about it."""

from collections.abc import Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

from backfill_assets.errors import QueryError

__all__ = ["HINTS", "nearest", "refusal"]

_ROW_BY_ROW: Final = "a row-wise view computes each row from one record alone"

HINTS: Final = MappingProxyType({
    "AGGREGATE": f"{_ROW_BY_ROW}; aggregate when reading the view",
    "COLUMN_NAME": "name the column with AS, using letters, digits and underscores, and no `__` in front",
    "CTE": "write the query without WITH: SELECT expressions FROM one upstream WHERE conditions",
    "DISTINCT": f"{_ROW_BY_ROW}; use UNION ALL, and remove duplicates when reading the view",
    "DUPLICATE_COLUMN": "give each column its own name with AS; Spark does not tell names apart by case",
    "GENERATOR": f"{_ROW_BY_ROW}, exactly one; keep the array or map, and explode it when reading the view",
    "GROUP_BY": f"{_ROW_BY_ROW}; group when reading the view",
    "HAVING": f"{_ROW_BY_ROW}; use WHERE for conditions on a record",
    "JOIN": f"{_ROW_BY_ROW}; name one upstream in FROM, and join when reading the view",
    "KEY_MISMATCH": "give the tables the same primary_key",
    "NOT_A_QUERY": "write one query: SELECT expressions FROM an upstream",
    "NOT_DETERMINISTIC": "the same record must always give the same row; use the record's own columns, "
    "such as _timestamp, _partition and _offset",
    "ORDER_LIMIT": "a table has no order; sort and limit when reading the view",
    "STAR": "name the fields one by one",
    "SUBQUERY": f"{_ROW_BY_ROW}; name one upstream in FROM and use plain expressions",
    "SYNTAX": "write Spark SQL: SELECT expressions FROM an upstream WHERE conditions",
    "UNION_MISMATCH": "give each part of UNION ALL the same number of columns, in the same order",
    "UNKNOWN_COLUMN": "use a column of the upstream",
    "UNKNOWN_UPSTREAM": "name one of the view's upstreams",
    "UNNAMED_COLUMN": "give it a name with AS",
    "UNSUPPORTED": "leave it out: SELECT expressions FROM one upstream WHERE conditions, and UNION ALL of such parts",
    "UNUSED_UPSTREAM": "read it in the query, or take it out of upstreams",
    "WINDOW": f"{_ROW_BY_ROW}; use window functions when reading the view",
})
"""Reason code -> what to do."""


def refusal(reason: str, message: str, *, hint: str = "") -> QueryError:
    """The error that refuses a query, with the reason's own hint unless a better one is given."""
    return QueryError(message, reason=reason, hint=hint or HINTS[reason])


def nearest(name: str, known: Sequence[str], longer: Sequence[str] = ()) -> str:
    """A hint that suggests one of `known` or `longer` for `name`, or says what is known; empty if nothing is."""
    by_small = {each.lower(): each for each in (*longer, *known)}
    close = get_close_matches(name.lower(), by_small, n=1)
    if close:
        return f"did you mean {by_small[close[0]]}?"
    return f"there is {', '.join(known)}" if known else ""
