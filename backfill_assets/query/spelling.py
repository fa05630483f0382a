"""One spelling for a query's text: the words of its tokens, and pieces that are cut from it.

It uses tokens and not sqlglot's rendering, which may change from version to version.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sqlglot import Token, TokenType, exp

from backfill_assets.query.nodes import all_of
from backfill_assets.query.parsing import Part

__all__ = ["TEXTS", "Word", "backquoted", "canonical_text", "joined_words", "sliced", "words_of"]

_TIGHT_BEFORE: Final = frozenset({",", ")", ".", "[", "]", "::"})
TEXTS: Final = frozenset(kind for kind in TokenType if kind.name.endswith("STRING"))
"""The kinds of tokens that are constant texts, whose case counts."""
_NESTED: Final = frozenset({TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT})
_OF_PATHS: Final = frozenset({TokenType.DOT, TokenType.L_BRACKET, TokenType.NUMBER, TokenType.R_BRACKET, *TEXTS})
_TIGHT_AFTER: Final = frozenset({"(", ".", "[", "::"})


@dataclass(frozen=True)
class Word:
    """A word of the query in one spelling; `start` and `end` are its first and last character in the query."""

    text: str
    start: int
    end: int


def words_of(query: str, tokens: Sequence[Token], kept: Collection[int] = ()) -> list[Word]:
    """The tokens' words, in lower case except for strings, for tokens that start at one of `kept`, and for paths into a
    VARIANT, as in `v:Name.First`, whose case counts."""
    words: list[Word] = []
    end, paths = -1, _in_paths(tokens)
    for token in tokens:
        text = query[token.start : token.end + 1]
        if token.start <= end:
            # A literal such as 1L is several tokens at the same position: its text is used once.
            continue
        if token.token_type not in TEXTS and token.start not in kept and token.start not in paths:
            # Two words may be one token, such as GROUP BY, with any white space between them.
            text = text.lower() if text.startswith("`") else " ".join(text.lower().split())
        if token.token_type in TEXTS and words and token.start == end + 1 and words[-1].text[-1] == text[0]:
            # 'it''s' is two tokens, and differs from 'it' 's'.
            words[-1] = Word(words[-1].text + text, words[-1].start, token.end)
        else:
            words.append(Word(text, token.start, token.end))
        end = token.end
    return words


def _in_paths(tokens: Sequence[Token]) -> set[int]:
    """Where the tokens of paths into a VARIANT start. A colon in the type of a struct begins none."""
    starts: set[int] = set()
    types, in_path = 0, False
    for before, token in pairwise(tokens):
        types += token.token_type == TokenType.LT and before.token_type in _NESTED
        types -= bool(types) and token.token_type == TokenType.GT
        begins = before.token_type == TokenType.COLON and not types
        in_path = begins or (in_path and (token.token_type in _OF_PATHS or before.token_type == TokenType.DOT))
        if in_path:
            starts.add(token.start)
    return starts


def canonical_text(query: str, tokens: Sequence[Token], parts: Sequence[Part]) -> str:
    """The query with one spelling: equal if only white space, comments and the case of other names differ."""
    # UNION ALL uses the names of its first part.
    kept = _name_givers(parts[0]).union(*map(_fields, parts))
    return joined_words(word.text for word in words_of(query, tokens, kept))


def backquoted(name: str) -> str:
    """The name in backquotes."""
    # Always, unlike ddl.quoted: a table's name may be a word that Spark reads as a keyword there, such as `left`.
    return "`" + name.replace("`", "``") + "`"


def sliced(query: str, tokens: Sequence[Token]) -> str:
    """The query's text from the first to the last token."""
    return query[tokens[0].start : tokens[-1].end + 1]


def _name_givers(part: Part) -> set[int]:
    """Where the part names columns and struct fields: the case of these names is part of the result."""
    starts: set[int] = set()
    for node in all_of(part.select, exp.Identifier):
        if isinstance(node.parent, exp.Alias | exp.PropertyEQ | exp.ColumnDef):
            starts.add(node.meta.get("start", -1))
    for item in part.select.expressions:
        last = item.expression if isinstance(item, exp.Dot) else item.this if _is_field(item) else None
        if isinstance(last, exp.Identifier):
            starts.add(last.meta.get("start", -1))
    return starts


def _fields(part: Part) -> set[int]:
    """Where the part names what is in a column: a field, or a key of a map, whose case counts."""
    names: list[exp.Expr] = [dot.expression for dot in all_of(part.select, exp.Dot)]
    for column in all_of(part.select, exp.Column):
        of_table = column.parts[0].name.lower() == part.qualifier.lower()
        names += column.parts[2 if of_table else 1 :]
    return {each.meta.get("start", -1) for each in names if isinstance(each, exp.Identifier)}


def _is_field(item: exp.Expr) -> bool:
    return isinstance(item, exp.Column) and len(item.parts) > 1


def joined_words(words: Iterable[str]) -> str:
    """The text of words, with a space between two words if it is needed."""
    every = list(words)
    text = every[0]
    for before, word in pairwise(every):
        tight = before in _TIGHT_AFTER or word in _TIGHT_BEFORE
        text += word if tight else f" {word}"
    return text
