"""The SELECT list of a query, apart from the rest of its text: a query that only gives more columns has a longer list."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from sqlglot import TokenType

from backfill_assets.errors import QueryError
from backfill_assets.query.parsing import items_of, tokenize, with_depth

__all__ = ["SelectList", "select_list"]

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
    outer = [token for depth, token in with_depth(tokens) if depth == 0]
    kinds = [token.token_type for token in outer]
    if kinds.count(TokenType.SELECT) != 1 or _LOOKS_AT_ALL_COLUMNS & {*kinds}:
        return None
    pairs = [*pairwise(kinds)]
    begin = kinds.index(TokenType.SELECT)
    froms = (at for at, kind in enumerate(kinds) if at > begin and kind == TokenType.FROM)
    end = next((at for at in froms if kinds[at - 1] != TokenType.DISTINCT), -1)  # IS DISTINCT FROM compares
    if end <= begin + 1 or kinds[begin + 1] == TokenType.DISTINCT or (TokenType.GROUP_BY, TokenType.ALL) in pairs:
        return None
    first, last = outer[begin].end + 1, outer[end].start
    items = items_of([token for token in tokens if first <= token.start < last])
    written = tuple(query[each[0].start : each[-1].end + 1] if each else "" for each in items)
    return SelectList(items=written, around=(query[:first].strip(), query[last:].strip()))
