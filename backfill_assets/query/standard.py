"""A query in standard words: without what Spark alone has words for, so that all rules for queries apply to it.

Only these words are replaced; the rest of the text stays as it is, and so does a text without them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from sqlglot import Token, TokenType

from backfill_assets.query.parsing import tokenize
from backfill_assets.query.pipes import SET_OPERATIONS, without_pipe

__all__ = ["standard"]

_BEFORE_QUERIES: Final = frozenset({
    *(TokenType.ALL, TokenType.ANY, TokenType.DISTINCT, TokenType.EXISTS, TokenType.IN, TokenType.L_PAREN),
    *(TokenType.R_PAREN, TokenType.SOME, TokenType.LATERAL, *SET_OPERATIONS),
})
"""A query may begin after one of these."""
_CALL_OF_A_TEXT: Final = (TokenType.VAR, TokenType.L_PAREN, TokenType.STRING, TokenType.R_PAREN)
_AFTER_TABLES: Final = frozenset({
    *(TokenType.R_PAREN, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, *SET_OPERATIONS),
})
_NAMES: Final = frozenset({TokenType.IDENTIFIER, TokenType.VAR})
_PART: Final = re.compile(r"([A-Za-z_]\w*)|`((?:[^`]|``)+)`", re.ASCII)
"""A name, or one of a path of names."""
_PATH: Final = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*", re.ASCII)
_BYTES: Final = re.compile(r"\bx\s+'", re.IGNORECASE)
_COMPARED: Final = {TokenType.GT: "<=", TokenType.LT: ">="}


class _Edit(NamedTuple):
    """The text from `start` to before `end` gives way to `text`."""

    start: int
    end: int
    text: str


@lru_cache(maxsize=1024)
def standard(query: str) -> str:
    """The query with SELECT in the places of the pipe operator, and of `TABLE t`, with `<=` for `!>`, with the names that
    `IDENTIFIER` is called with, and without the blank in `X 'F0'`.

    Errors: `QueryError` for a text that cannot be cut into words, and for pipes that have no other words.

    Example:
        >>> standard("FROM t |> WHERE a !> 3 |> SELECT a")
        'SELECT a FROM t WHERE (a <= 3)'
        >>> standard("TABLE t")
        'SELECT * FROM t'
        >>> standard("SELECT IDENTIFIER('t.a') FROM IDENTIFIER('t')")
        'SELECT `t`.`a` FROM `t`'
    """
    text = _edited(query, _identifiers) if "identifier" in query.lower() else query
    text = _edited(text, _bytes) if _BYTES.search(text) else text
    text = _edited(text, _compared) if "!>" in text or "!<" in text else text
    while "|>" in text and (less := without_pipe(text, tokenize(text))) is not None:
        text = less
    return _edited(text, _tables) if "table" in text.lower() else text


def _edited(text: str, edits: Callable[[Sequence[Token]], Iterator[_Edit]]) -> str:
    for start, end, new in sorted(edits(tokenize(text)), reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _compared(tokens: Sequence[Token]) -> Iterator[_Edit]:
    """`!>` means `<=`, and `!<` means `>=`."""
    for sign, compared in pairwise(tokens):
        is_one = sign.token_type == TokenType.NOT and sign.text == "!" and sign.end + 1 == compared.start
        if is_one and compared.token_type in _COMPARED:
            yield _Edit(sign.start, compared.end + 1, _COMPARED[compared.token_type])


def _identifiers(tokens: Sequence[Token]) -> Iterator[_Edit]:
    """`IDENTIFIER('t.a')` is the name `t.a`, be it of a table, a column or a function."""
    for at, token in enumerate(tokens[:-3]):
        opening, text, closing = tokens[at + 1 : at + 4]
        kinds = (token.token_type, opening.token_type, text.token_type, closing.token_type)
        if kinds != _CALL_OF_A_TEXT or token.text.lower() != "identifier":
            continue
        if name := _name(text.text):
            yield _Edit(token.start, closing.end + 1, name)


def _bytes(tokens: Sequence[Token]) -> Iterator[_Edit]:
    """`X 'F0'` are the same bytes as `X'F0'`."""
    for word, text in pairwise(tokens):
        if word.token_type == TokenType.VAR and word.text.lower() == "x" and text.token_type == TokenType.STRING:
            yield _Edit(word.end + 1, text.start, "")


def _name(text: str) -> str:
    """A name, or a path of names, in quotes; empty if the text is none."""
    return ".".join(f"`{each[1] or each[2]}`" for each in _PART.finditer(text)) if _PATH.fullmatch(text) else ""


def _tables(tokens: Sequence[Token]) -> Iterator[_Edit]:
    """`TABLE t` is a query for all of a table; an argument of a function, or a column that is called so, is none."""
    for at, token in enumerate(tokens[:-1]):
        if token.token_type == TokenType.TABLE and _may_begin(tokens, at) and _is_named(tokens, at + 1):
            yield _Edit(token.start, token.end + 1, "SELECT * FROM")


def _may_begin(tokens: Sequence[Token], at: int) -> bool:
    """Whether a query may begin at a token."""
    before = [each.token_type for each in tokens[max(at - 2, 0) : at]]
    if not before:
        return True
    return before[-1] in _BEFORE_QUERIES and not (before[-1] == TokenType.L_PAREN and before[0] in _NAMES)


def _is_named(tokens: Sequence[Token], at: int) -> bool:
    """Whether just the name of a table is there, and then the query ends, or goes on behind it."""
    while tokens[at].token_type in _NAMES:
        if at + 1 == len(tokens) or tokens[at + 1].token_type in _AFTER_TABLES:
            return True
        if tokens[at + 1].token_type != TokenType.DOT or at + 2 == len(tokens):
            return False
        at += 2
    return False
