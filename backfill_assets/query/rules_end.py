"""Where the rules for single rows and for groups of one upstream end, as far as a query's text shows."""

from functools import lru_cache
from typing import Final

from sqlglot import Token, exp

from backfill_assets.errors import QueryError
from backfill_assets.query.aggregate import check_forms, check_groups, is_aggregate
from backfill_assets.query.determinism import refused_calls
from backfill_assets.query.expressions import check_stars
from backfill_assets.query.parsing import parse_parts, tokenize
from backfill_assets.query.refusals import refusal

__all__ = ["RULES_END", "is_relational"]

RULES_END: Final = frozenset({
    "AGGREGATE",
    "AGGREGATE_DISTINCT",
    "AGGREGATE_FILTER",
    "AGGREGATE_FUNCTION",
    "AGGREGATE_NESTED",
    "AGGREGATE_PLACE",
    "AGGREGATE_UNION",
    "CTE",
    "DISTINCT",
    "FORM",
    "GENERATOR",
    "GROUP_BY",
    "GROUP_FORM",
    "GROUPING_SETS",
    "HAVING",
    "JOIN",
    "NO_GROUP_BY",
    "ORDER_LIMIT",
    "STAR",
    "SUBQUERY",
    "UNSUPPORTED",
    "WINDOW",
})
"""Reasons for which the rules for rows and for groups do not apply to a query, although it may be valid."""


@lru_cache(maxsize=1024)
def is_relational(query: str) -> bool:
    """Whether neither the rules for rows nor those for groups apply to a query, as far as its text shows.

    Example:
        >>> is_relational("SELECT a FROM t"), is_relational("SELECT a FROM t JOIN u USING (id)")
        (False, True)
    """
    try:
        tokens = tokenize(query)
        if is_aggregate(query):
            check_forms(query, check_groups(query, tokens))
        else:
            _check_rows(query, tokens)
    except QueryError as error:
        return error.reason in RULES_END
    return False


def _check_rows(query: str, tokens: list[Token]) -> None:
    """Refuse clauses to which the rules for single rows do not apply, as far as the text shows."""
    for part in parse_parts(query, tokens):
        if part.select.find(exp.Window):
            raise refusal("WINDOW", "the query has a window function (OVER)")
        for name, reason in refused_calls(part.tokens):
            raise refusal(reason, f"the query calls {name}()")
        check_stars(part)
