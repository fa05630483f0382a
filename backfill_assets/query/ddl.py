"""Column lists as Spark writes them: read, checked and brought to one canonical text.

Owns what a source's schema may hold. Two lists that mean the same give equal columns, so their text can be compared and
hashed. Spark is not needed: sqlglot's tokens are read by the small grammar below, which is stricter than sqlglot's own.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, NoReturn

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from backfill_assets.errors import DeclarationError

__all__ = ["Column", "ddl", "invalid_name_characters", "parse_schema", "quoted"]

_SIMPLE: Final = {
    "BOOLEAN": "BOOLEAN",
    "BYTE": "TINYINT",
    "TINYINT": "TINYINT",
    "SHORT": "SMALLINT",
    "SMALLINT": "SMALLINT",
    "INT": "INT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "REAL": "FLOAT",
    "DOUBLE": "DOUBLE",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ",
    "STRING": "STRING",
    "BINARY": "BINARY",
}
_DECIMALS: Final = frozenset({"DECIMAL", "DEC", "NUMERIC"})
_NESTED: Final = frozenset({"ARRAY", "MAP", "STRUCT"})
# Known here or elsewhere, but not what a Delta table or a JSON record can hold: the hint says what to use.
_REFUSED: Final = {
    "CHAR": "use STRING",
    "TEXT": "use STRING",
    "DATETIME": "use TIMESTAMP",
    "CHARACTER": "use STRING",
    "VARCHAR": "use STRING",
    "VARIANT": "use STRING; from_json and parse_json in a view take it apart",
    "INTERVAL": "use BIGINT for a number of seconds, or STRING",
    "VOID": "give the column the type that its values will have",
    "TIME": "use STRING",
    "GEOMETRY": "use BINARY or STRING",
    "GEOGRAPHY": "use BINARY or STRING",
}
_MAX_PRECISION: Final = 38
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXAMPLE: Final = 'write names and types, such as "order_id LONG, at TIMESTAMP"'
# Delta refuses these in a column's name unless the table maps columns, which other readers may not understand.
_NOT_IN_NAMES: Final = frozenset(" ,;{}()\n\t=")
_NOT_A_NAME: Final = frozenset({TokenType.STRING, TokenType.NUMBER})
_NOT_A_TYPE: Final = _NOT_A_NAME | {TokenType.IDENTIFIER}
_ENDS: Final = frozenset({",", ">", ")"})


@dataclass(frozen=True)
class Column:
    """A named column; `type` is Spark's text of its type, canonical where `parse_schema` made it."""

    name: str
    type: str


def parse_schema(text: str) -> tuple[Column, ...]:
    """The columns of a Spark column list such as `"order_id LONG, tags ARRAY<STRUCT<a: INT>>"`.

    Types come back in capitals under Spark's own names (`LONG` is `BIGINT`), so equal schemas give equal columns.
    All columns are nullable.

    Errors: `DeclarationError` for a syntax error, an unknown type or one that Delta or JSON cannot hold, a name that is
    there twice (names are compared without case, as Spark does) or that Delta refuses, a constraint, and no columns.
    """
    try:
        tokens = Spark.Tokenizer().tokenize(text)
    except SqlglotError:
        raise DeclarationError(f"the column list {text!r} cannot be read", hint=_EXAMPLE) from None
    return _Reader(text, tokens).columns()


def ddl(columns: Iterable[Column]) -> str:
    """The column list as one text that Spark's own parser takes."""
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in columns)


def quoted(name: str) -> str:
    """The name as it is written in Spark SQL; in backquotes where it needs them."""
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def invalid_name_characters(name: str) -> str:
    """The characters of a column name that Delta does not take; empty for a good name."""
    return "".join(sorted(_NOT_IN_NAMES.intersection(name)))


class _Reader:
    """Reads one column list from left to right; `path` in messages names the column or field being read."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0

    def columns(self) -> tuple[Column, ...]:
        if not self._tokens:
            raise DeclarationError("the column list has no columns", hint=_EXAMPLE)
        columns = self._fields(end="", inside="")
        if self._at < len(self._tokens):
            self._unexpected()
        return columns

    def _fields(self, *, end: str, inside: str) -> tuple[Column, ...]:
        """Names and types up to `end`, which is left unread; `inside` is the struct they belong to."""
        fields: list[Column] = []
        while True:
            name = self._name()
            path = f"{inside}.{name}" if inside else name
            self._check_name(name, path, fields)
            self._skip(":")
            fields.append(Column(name, self._type(path)))
            if self._next() not in _ENDS | {""}:
                self._constraint(path)
            if not self._skip(",") or self._next() == end:
                break
        if self._tokens[self._at - 1].text == ",":
            self._unexpected()
        return tuple(fields)

    def _name(self) -> str:
        token = self._token()
        # Multi-word tokens such as PRIMARY KEY are keywords, never a name with a space in it.
        is_word = token.text[:1].isalpha() or token.text.startswith("_")
        if token.token_type != TokenType.IDENTIFIER and (
            token.token_type in _NOT_A_NAME or not is_word or " " in token.text
        ):
            self._unexpected()
        self._at += 1
        return token.text

    def _check_name(self, name: str, path: str, before: list[Column]) -> None:
        if any(name.lower() == other.name.lower() for other in before):
            raise DeclarationError(
                f"column {path!r} is there twice", hint="rename one of them; Spark does not tell names apart by case"
            )
        if not name or (wrong := invalid_name_characters(name)):
            raise DeclarationError(
                f"column {path!r} has characters in its name that Delta does not take: {wrong if name else 'none'!r}",
                hint="use letters, digits and underscores",
            )

    def _type(self, path: str) -> str:
        word = self._token().text.upper()
        if self._token().token_type in _NOT_A_TYPE:
            self._unexpected()
        self._at += 1
        if word in _DECIMALS:
            return self._decimal(path)
        if word in _NESTED:
            return self._nested(word, path)
        if word in _SIMPLE:
            return _SIMPLE[word]
        raise _unknown_type(word, path)

    def _decimal(self, path: str) -> str:
        numbers: list[int] = []
        if self._skip("("):
            numbers.append(self._number())
            if self._skip(","):
                numbers.append(self._number())
            self._expect(")")
        precision, scale = (numbers or [10])[0], (numbers[1:] or [0])[0]
        if not (1 <= precision <= _MAX_PRECISION and scale <= precision):
            raise DeclarationError(
                f"column {path!r} has type DECIMAL({precision}, {scale}), which does not exist",
                hint=f"the precision is 1 to {_MAX_PRECISION}, the scale at most the precision",
            )
        return f"DECIMAL({precision},{scale})"

    def _nested(self, word: str, path: str) -> str:
        self._expect("<")
        match word:
            case "ARRAY":
                text = self._type(f"{path}[]")
            case "MAP":
                text = self._map(path)
            case _:
                fields = self._fields(end=">", inside=path)
                text = ", ".join(f"{quoted(field.name)}: {field.type}" for field in fields)
        if self._next() not in _ENDS:
            self._constraint(path)
        self._expect(">")
        return f"{word}<{text}>"

    def _map(self, path: str) -> str:
        key = self._type(f"{path} (key)")
        if key != "STRING":
            raise DeclarationError(
                f"column {path!r} is a MAP with keys of type {key}", hint="the keys of a JSON object are STRING"
            )
        self._expect(",")
        return f"{key}, {self._type(f'{path} (value)')}"

    def _number(self) -> int:
        text = self._token().text
        if not text.isdecimal():
            self._unexpected()
        self._at += 1
        return int(text)

    def _next(self) -> str:
        """The text of the next token; empty at the end. Quoted names and strings have none that a rule could match."""
        if self._at == len(self._tokens):
            return ""
        token = self._tokens[self._at]
        return repr(token.text) if token.token_type in {TokenType.IDENTIFIER, TokenType.STRING} else token.text

    def _skip(self, text: str) -> bool:
        found = self._next() == text
        self._at += found
        return found

    def _expect(self, text: str) -> None:
        if not self._skip(text):
            self._unexpected()

    def _token(self) -> Token:
        if self._at == len(self._tokens):
            self._unexpected()
        return self._tokens[self._at]

    def _constraint(self, path: str) -> NoReturn:
        if not self._next()[:1].isalpha():
            self._unexpected()
        found = re.split(r"[,>]", self._text[self._tokens[self._at].start :])[0].strip()
        raise DeclarationError(
            f"column {path!r} has more than a name and a type: {found!r}",
            hint="leave it out: JSON may leave a field out, so columns are nullable and have no constraints",
        )

    def _unexpected(self) -> NoReturn:
        if self._at >= len(self._tokens):
            raise DeclarationError(f"the column list {self._text!r} ends too early", hint=_EXAMPLE)
        token = self._tokens[self._at]
        raise DeclarationError(
            f"the column list {self._text!r} has {token.text!r} where it does not belong (character {token.start + 1})",
            hint=_EXAMPLE,
        )


def _unknown_type(word: str, path: str) -> DeclarationError:
    if word in _REFUSED:
        return DeclarationError(f"column {path!r} has type {word}, which a source cannot hold", hint=_REFUSED[word])
    known = sorted({*_SIMPLE, *_NESTED, "DECIMAL"})
    close = get_close_matches(word, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"use one of {', '.join(known)}"
    return DeclarationError(f"column {path!r} has the unknown type {word}", hint=hint)
