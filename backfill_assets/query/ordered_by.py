"""Which column of a query's result a term of its ORDER BY is.

Spark looks a name up in the result first, then in what the SELECT reads. Expressions are compared by their words, as sqlglot
reads some that differ as one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlglot import Token, TokenType, exp

from backfill_assets.query.nodes import all_of
from backfill_assets.query.parsing import items_of, with_depth
from backfill_assets.query.resolved import joins_of, merges, sources_of
from backfill_assets.query.select_list import bounds_of_list
from backfill_assets.query.spelling import TEXTS

__all__ = ["Result"]

_QUANTIFIERS: Final = frozenset({TokenType.ALL, TokenType.DISTINCT})


class _Word(NamedTuple):
    """A word of an expression, with the table that is named before it; `is_text` for a constant, whose case counts."""

    table: str
    text: str
    is_text: bool = False


@dataclass(frozen=True)
class Result:
    """The columns of a query's result: their `names`, and the words of their `items` in the SELECT list, if it lists them.
    `tables` may be named before a column; none may where joins make one column of several, which has a value of its own."""

    names: tuple[str, ...]
    items: tuple[tuple[_Word, ...], ...]
    tables: frozenset[str]
    is_all: bool

    @classmethod
    def of(cls, tokens: Sequence[Token], root: exp.Query, names: Sequence[str]) -> "Result":
        """The result of a query, whose columns have these names.

        Example:
            >>> from backfill_assets.query.parsing import parse, tokenize
            >>> text = "SELECT lower(s) AS l, count(*) AS n FROM t GROUP BY 1 ORDER BY count(*)"
            >>> root = parse(text, tokenize(text))
            >>> result = Result.of(tokenize(text), root, ["l", "n"])
            >>> result.place(root.args["order"].expressions[0].this, tokenize("COUNT(*)"))
            1
        """
        lower = tuple(name.lower() for name in names)
        if not isinstance(root, exp.Select):
            return cls(lower, (), frozenset(), is_all=False)
        sources = [*sources_of(root), *(root.args.get("laterals") or [])]
        named = () if any(map(merges, joins_of(root))) else (each.alias_or_name.lower() for each in sources)
        tables = frozenset(named) - {""}
        is_all = len(sources) == 1 and len(root.expressions) == 1 and isinstance(root.expressions[0], exp.Star)
        begin, end = bounds_of_list(tokens)
        begin += begin < end and tokens[begin].token_type in _QUANTIFIERS
        listed = items_of(tokens[begin:end])
        if root.is_star or not len(listed) == len(root.expressions) == len(names):
            return cls(lower, (), tables, is_all=is_all)
        values = map(_without_alias, listed, root.expressions)
        return cls(lower, tuple(_words(each, tables) for each in values), tables, is_all=False)

    def place(self, term: exp.Expr, written: Sequence[Token]) -> int | None:
        """The place, from 0, of the column that a term is, with the words in which it is written; None if it is none."""
        value = term.unnest()
        if isinstance(value, exp.Literal):
            number = int(value.name) - 1 if value.name.isdecimal() and not value.is_string else -1
            return number if 0 <= number < len(self.names) else None
        words = _words(written, self.tables)
        is_name = isinstance(value, exp.Column) and len(words) == 1 and words[0].text in self.names
        if is_name and (not words[0].table or (self.is_all and words[0].table not in self.names)):
            return self.names.index(words[0].text)
        if value.find(exp.Query) or any(map(self._is_other, all_of(value, exp.Column))):
            return None
        return next((at for at, each in enumerate(self.items) if _are_same(each, words)), None)

    def _is_other(self, column: exp.Column) -> bool:
        """Whether what a column is called is the name of another value in the result."""
        name = column.parts[0].name.lower()
        if name not in self.names:
            return False
        return not self.items or not _are_same(self.items[self.names.index(name)], (_Word("", name),))


def _without_alias(item: Sequence[Token], read: exp.Expr) -> Sequence[Token]:
    """An expression of the SELECT list without the name that it gets, with AS or without."""
    if not isinstance(read, exp.Alias):
        return item
    return item[:-2] if item[-2].token_type == TokenType.ALIAS else item[:-1]


def _words(tokens: Sequence[Token], tables: Collection[str]) -> tuple[_Word, ...]:
    """The words of an expression without brackets around all of it."""
    while len(tokens) > 2 and tokens[0].token_type == TokenType.L_PAREN and _is_within(tokens):
        tokens = tokens[1:-1]
    words = list[_Word]()
    table = ""
    for at, token in enumerate(tokens):
        before, after = (tokens[each].token_type if 0 <= each < len(tokens) else None for each in (at - 1, at + 1))
        if after == TokenType.DOT and before != TokenType.DOT and token.text.lower() in tables:
            table = token.text.lower()
        elif not (token.token_type == TokenType.DOT and table):
            is_text = token.token_type in TEXTS
            words.append(_Word(table, token.text if is_text else token.text.lower(), is_text))
            table = ""
    return tuple(words)


def _is_within(tokens: Sequence[Token]) -> bool:
    """Whether the first bracket ends with the last token."""
    return all(depth > 0 for depth, _ in list(with_depth(tokens))[1:-1])


def _are_same(one: Sequence[_Word], other: Sequence[_Word]) -> bool:
    """Whether expressions are one: a column without its table is that of the table that has one of this name."""
    return len(one) == len(other) and all(
        a[1:] == b[1:] and (a.table == b.table or not (a.table and b.table)) for a, b in zip(one, other, strict=True)
    )
