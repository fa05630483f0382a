"""The SELECT list of a query, apart from the rest of its text: a query that only gives more columns has a longer list."""

from dataclasses import dataclass
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
        tokens = [(depth, token) for depth, token in with_depth(tokenize(query)) if depth == 0]
    except QueryError:
        return None
    kinds = [token.token_type for _, token in tokens]
    if kinds.count(TokenType.SELECT) != 1 or _LOOKS_AT_ALL_COLUMNS & {*kinds} or TokenType.FROM not in kinds:
        return None
    begin, end = kinds.index(TokenType.SELECT), kinds.index(TokenType.FROM)
    grouped = kinds.index(TokenType.GROUP_BY) + 1 if TokenType.GROUP_BY in kinds else 0
    if not begin + 1 < end or kinds[begin + 1] == TokenType.DISTINCT:
        return None
    if grouped and kinds[grouped : grouped + 1] == [TokenType.ALL]:
        return None
    first, last = tokens[begin][1].end + 1, tokens[end][1].start
    inside = [token for token in tokenize(query) if first <= token.start and token.end < last]
    items = [query[each[0].start : each[-1].end + 1] if each else "" for each in items_of(inside)]
    return SelectList(items=tuple(items), around=(query[:first].strip(), query[last:].strip()))
