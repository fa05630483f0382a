"""Functions of the clock, such as `now()`: where a query calls them, and the query with a time in their places.

A view that is always computed in full may call them: each epoch computes its query for one time, which is part of its plan.
So it is the query with that time that is read, computed and proved.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from sqlglot import Token, TokenType, exp

from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import Column
from backfill_assets.query.functions import CLOCK_FUNCTIONS, CLOCK_WORDS
from backfill_assets.query.nodes import all_of
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.refusals import refusal

__all__ = ["ANY_TIME", "at_time", "calls_clock"]

ANY_TIME: Final = 0
"""A time for a query of which only the names and types matter."""

_AFTER_NAMES: Final = ([TokenType.L_PAREN], [TokenType.DOT])
_BEGIN: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class _Place:
    """A call of a function of the clock in the query's text, from `start` to before `end`; or a word that calls it."""

    function: str
    start: int
    end: int
    is_word: bool


@lru_cache(maxsize=1024)
def calls_clock(query: str) -> bool:
    """Whether a query calls functions of the clock, as far as it can be read.

    Example:
        >>> calls_clock("SELECT a FROM t WHERE at > now()"), calls_clock("SELECT t.current_date AS d FROM t")
        (True, False)
    """
    try:
        return any(_places(tokenize(query)))
    except QueryError:
        return False


def at_time(query: str, instant: int, tables: Mapping[str, Sequence[Column]] | None = None) -> str:
    """The query's text with a time in the place of each call of a function of the clock.

    `instant` is in microseconds since 1970, UTC; `tables` are the columns of each upstream, if they are known. Nothing else
    of the text is changed. Errors: `QueryError` for a word that may also be a column.

    Example:
        >>> at_time("SELECT a, current_date AS d FROM t WHERE at < now()", 1_500_000)
        "SELECT a, (DATE '1970-01-01') AS d FROM t WHERE at < (TIMESTAMP_LTZ '1970-01-01 00:00:01.500000Z')"
    """
    tokens = tokenize(query)
    places = list(_places(tokens))
    words = {each.function for each in places if each.is_word}
    if words:
        _check_words(words, tokens, parse(query, tokens), tables or {})
    for each in reversed(places):
        query = f"{query[: each.start]}({_literal(CLOCK_FUNCTIONS[each.function], instant)}){query[each.end :]}"
    return query


def _places(tokens: Sequence[Token]) -> Iterator[_Place]:
    for at, token in enumerate(tokens):
        name = token.text.lower()
        is_name = name in CLOCK_FUNCTIONS and not _is_text(token)
        if not is_name or (at and tokens[at - 1].token_type == TokenType.DOT):
            continue
        after = [each.token_type for each in tokens[at + 1 : at + 3]]
        if after == [TokenType.L_PAREN, TokenType.R_PAREN]:
            yield _Place(name, token.start, tokens[at + 2].end + 1, is_word=False)
        elif name in CLOCK_WORDS and token.token_type != TokenType.IDENTIFIER and after[:1] not in _AFTER_NAMES:
            yield _Place(name, token.start, token.end + 1, is_word=True)


def _is_text(token: Token) -> bool:
    return token.token_type.name.endswith("STRING")


def _check_words(
    words: set[str], tokens: Sequence[Token], root: exp.Expr, tables: Mapping[str, Sequence[Column]]
) -> None:
    """Refuse words that are also names: Spark takes them for columns wherever there are columns of that name."""
    columns = [f"{each.name} {each.type}".lower() for some in tables.values() for each in some]
    texts = [token.text.lower() for token in tokens if _is_text(token)]
    names = [each.name.lower() for each in all_of(root, exp.Identifier)]
    for word in sorted(words):
        if any(word in each for each in (*columns, *texts, *names)):
            raise refusal(
                "NOT_DETERMINISTIC",
                f"the query has {word}, which may be the clock's or a column of that name",
                hint=f"write {word}() for the clock's; if a column is meant, name its table: t.{word}",
            )


def _literal(kind: str, instant: int) -> str:
    moment = _BEGIN + timedelta(microseconds=instant)
    time = moment.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    match kind:
        case "DATE":
            return f"DATE '{moment.date().isoformat()}'"
        case "SECONDS":
            return f"{instant // 1_000_000}L"
        case "TIMESTAMP_NTZ":
            return f"TIMESTAMP_NTZ '{time}'"
        case _:
            return f"TIMESTAMP_LTZ '{time}Z'"
