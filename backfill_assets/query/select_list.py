"""The SELECT list of a query, apart from the rest of its text: a query that only gives more columns has a longer list."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from sqlglot import Token, TokenType

from backfill_assets.errors import QueryError
from backfill_assets.query.parsing import items_of, tokenize, with_depth

__all__ = ["SelectList", "bounds_of_list", "select_list"]

_LOOKS_AT_ALL_COLUMNS: Final = frozenset({
    *(TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT),
    *(TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH),
})
"""What makes rows of a query depend on how many columns it gives, besides `SELECT DISTINCT`."""


@dataclass(frozen=True, kw_only=True)
class SelectList:
    """The expressions of a SELECT list, and the text of the query around it."""

    items: tuple[str, ...]
    around: tuple[str, str]

    def first(self, count: int) -> "SelectList":
        """The same query with the first `count` expressions alone."""
        return SelectList(items=self.items[:count], around=self.around)


@lru_cache(maxsize=2048)  # for each table, in each tick of a sensor
def select_list(query: str) -> SelectList | None:
    """The SELECT list of a query. None where a longer one may give other rows: set operations, `DISTINCT`, `LIMIT`, `GROUP BY
    ALL`; or where the list is not between `SELECT` and `FROM`.

    Example:
        >>> select_list("select a, b + 1 from t where a > 0")
        SelectList(items=('a', 'b + 1'), around=('select', 'from t where a > 0'))
        >>> select_list("select distinct a from t") is None
        True
    """
    try:
        tokens = tokenize(query)
    except QueryError:
        return None
    kinds = [token.token_type for depth, token in with_depth(tokens) if depth == 0]
    if kinds.count(TokenType.SELECT) != 1 or _LOOKS_AT_ALL_COLUMNS & {*kinds}:
        return None
    begin, end = bounds_of_list(tokens)
    is_empty = begin >= end or end == len(tokens)
    if (
        is_empty
        or tokens[begin].token_type == TokenType.DISTINCT
        or (TokenType.GROUP_BY, TokenType.ALL) in pairwise(kinds)
    ):
        return None
    first, last = tokens[begin - 1].end + 1, tokens[end].start
    items = items_of(tokens[begin:end])
    written = tuple(query[each[0].start : each[-1].end + 1] if each else "" for each in items)
    return SelectList(items=written, around=(query[:first].strip(), query[last:].strip()))


def bounds_of_list(tokens: Sequence[Token]) -> tuple[int, int]:
    """Where the words of the first SELECT list that is in no brackets begin, and where FROM, or the query, ends them.

    Example:
        >>> bounds_of_list(tokenize("SELECT a IS DISTINCT FROM b AS c FROM t"))
        (1, 8)
    """
    outer = [at for at, (depth, _) in enumerate(with_depth(tokens)) if depth == 0]
    begin = next((at + 1 for at in outer if tokens[at].token_type == TokenType.SELECT), len(tokens))
    froms = (at for at in outer if at >= begin and tokens[at].token_type == TokenType.FROM)
    return begin, next((at for at in froms if tokens[at - 1].token_type != TokenType.DISTINCT), len(tokens))
