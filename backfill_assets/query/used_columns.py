"""Which columns of its tables a query may use, told by its words alone: a change of any other column changes nothing."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from sqlglot import Token, TokenType

__all__ = ["used_columns", "words_of"]

_PLAIN: Final = re.compile(r"[A-Za-z0-9_]+")
_OF_ALL: Final = frozenset({
    TokenType.NATURAL,
    TokenType.PIVOT,
    TokenType.TABLE,
    TokenType.UNPIVOT,
})
"""Words that take columns which they do not name."""

_VALUES: Final = frozenset({
    TokenType.IDENTIFIER,
    TokenType.NUMBER,
    TokenType.R_BRACKET,
    TokenType.R_PAREN,
    TokenType.VAR,
})
"""After one of these a star multiplies."""


def used_columns(tokens: Sequence[Token], columns: Iterable[str]) -> frozenset[str]:
    """Those of the columns of a table that a query may use.

    Args:
        tokens: The query's tokens.
        columns: All columns of the table that the query can see.

    Returns:
        Never less than the query uses: all of them for `*` or NATURAL, and each whose name is a word of the query, whatever
        that means there.

    Example:
        >>> from backfill_assets.query.parsing import tokenize
        >>> sorted(used_columns(tokenize("SELECT a * 2 AS b, count(*) FROM t GROUP BY a"), ["a", "b", "c"]))
        ['a', 'b']
        >>> sorted(used_columns(tokenize("SELECT t.* FROM t"), ["a", "b"]))
        ['a', 'b']
    """
    every = frozenset(columns)
    if _may_take_all(tokens):
        return every
    words = words_of(tokens)
    return frozenset(each for each in every if not _PLAIN.fullmatch(each) or each.lower() in words)


def words_of(tokens: Iterable[Token]) -> frozenset[str]:
    """Whatever may be a name in a query, in small letters: its tokens, and the words of those that have several."""
    texts = [token.text.lower() for token in tokens]
    return frozenset([*texts, *(word for text in texts for word in text.split())])


def _may_take_all(tokens: Sequence[Token]) -> bool:
    """Whether a query may use columns without their names; a name in backquotes may be a pattern of names."""
    if any(
        token.token_type in _OF_ALL or (token.token_type == TokenType.IDENTIFIER and not _PLAIN.fullmatch(token.text))
        for token in tokens
    ):
        return True
    return any(
        star.token_type == TokenType.STAR and before.token_type not in _VALUES and not _counts(tokens, at)
        for at, (before, star) in enumerate(pairwise(tokens))
    )


def _counts(tokens: Sequence[Token], before: int) -> bool:
    """Whether the star after the token at a place is that of `count(*)`."""
    around = tokens[before - 1 : before + 3] if before else []
    texts = [token.text.lower() for token in around]
    return texts == ["count", "(", "*", ")"]
