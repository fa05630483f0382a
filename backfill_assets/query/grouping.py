"""Finds groups and aggregates in the words of a query, and rewrites its SELECT list over them.

As everywhere, the user's text is kept and cut: `round(sum(a), 2) AS r` becomes `round(__call_0, 2)`. A group expression
is found where its words are, if they are one operand there: `a + b` does not occur in `2 * a + b`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import Token, TokenType, exp

from backfill_assets.errors import QueryError
from backfill_assets.query.determinism import refused_calls
from backfill_assets.query.expressions import Output, Scope, lambda_parameters, name_parts
from backfill_assets.query.nodes import all_of
from backfill_assets.query.parsing import Part, parse, tokenize
from backfill_assets.query.refusals import place_of, refusal
from backfill_assets.query.spelling import Word, backquoted, words_of

__all__ = ["FUNCTIONS", "Call", "GroupedText", "Selected", "aggregates_in", "groups_of"]

FUNCTIONS: Final = frozenset({"count", "sum", "avg", "min", "max"})
"""The aggregates that are maintained."""
_MAPS: Final = frozenset({"MAP", "VARIANT"})
_OPENS: Final = frozenset("([{")
_CLOSES: Final = frozenset(")]}")


@dataclass(frozen=True)
class Call:
    """One aggregate: `argument` is the number of its argument expression; none for `count(*)`."""

    function: str
    argument: int | None


def aggregates_in(tokens: tuple[Token, ...]) -> Iterator[str]:
    """The aggregate functions that are called, maintained or not."""
    return (name for name, reason in refused_calls(tokens) if reason == "AGGREGATE")


class GroupedText:
    """The query's words, in which a column of the upstream is the same word however it is written."""

    def __init__(self, query: str, part: Part, scope: Scope) -> None:
        self.query = query
        self.part = part
        self.columns = dict(_column_words(part.select, scope))
        self._keys = set(_keys_of_maps(part.select, scope))

    def words(self, tokens: tuple[Token, ...]) -> list[Word]:
        words: list[Word] = []
        for word in words_of(self.query, tokens, self._keys):
            if not words or word.start > words[-1].end:
                words.append(self.columns.get(word.start, word))
        return words

    def items(self, items: list[tuple[Token, ...]], expressions: list[exp.Expr]) -> list[list[Word]]:
        """The words of each item without its name."""
        if len(items) != len(expressions):
            raise refusal("SYNTAX", "a list cannot be split at its commas", hint="write CAST(x AS type) for x::type")
        return [self.words(_unnamed(item, node)) for item, node in zip(items, expressions, strict=True)]

    def of(self, words: list[Word]) -> str:
        """The text as the user wrote it."""
        return self.query[words[0].start : words[-1].end + 1]

    def is_column(self, word: Word) -> bool:
        return self.columns.get(word.start) == word

    def is_whole(self, item: list[Word], first: int, last: int) -> bool:
        """Whether the words from `first` to `last` are one operand in the item: parentheses around them change nothing."""
        before = self.query[item[0].start : item[first].start]
        after = self.query[item[last].end + 1 : item[-1].end + 1]
        return _bare(self.of(item)) == _bare(f"{before}({self.of(item[first : last + 1])}){after}")


def _column_words(select: exp.Select, scope: Scope) -> Iterator[tuple[int, Word]]:
    for column in all_of(select, exp.Column):
        parts = name_parts(column)
        found = scope.resolve(parts)
        if found is None or parts[0].lower() in lambda_parameters(column):
            continue
        first, last = column.parts[0], column.parts[len(parts) - len(found[1]) - 1]
        if "start" in first.meta and "end" in last.meta:
            start = first.meta["start"]
            yield start, Word(backquoted(found[0].name.lower()), start, last.meta["end"])


def _keys_of_maps(select: exp.Select, scope: Scope) -> Iterator[int]:
    """Where names begin that may be keys of a map, whose case counts."""
    for column in all_of(select, exp.Column):
        found = scope.resolve(name_parts(column))
        if found is not None and _MAPS.intersection(re.findall(r"\w+", found[0].type.upper())):
            yield from (each.meta.get("start", -1) for each in column.parts[len(column.parts) - len(found[1]) :])


def _unnamed(item: tuple[Token, ...], node: exp.Expr) -> tuple[Token, ...]:
    if not isinstance(node, exp.Alias):
        return item
    return item[:-2] if item[-2].token_type == TokenType.ALIAS else item[:-1]


def _bare(text: str) -> exp.Expr:
    query = f"SELECT {text}"
    tree = parse(query, tokenize(query))
    for bracket in all_of(tree, exp.Paren):
        bracket.replace(bracket.this)
    return tree


def groups_of(text: GroupedText, items: list[list[Word]], given: list[list[Output]]) -> list[list[Word]]:
    """The group expressions, each once; a name or number of the SELECT list stands for its expression."""
    names = [output.name.lower() for (output,) in given]
    groups: dict[tuple[str, ...], list[Word]] = {}
    nodes = text.part.select.args["group"].expressions
    for words, node in zip(text.items(text.part.group_items(), nodes), nodes, strict=True):
        group = words
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal():
            group = _at(items, int(node.this))
        elif (
            isinstance(node, exp.Column)
            and len(words) == 1
            and not text.is_column(words[0])
            and node.name.lower() in names
        ):
            group = items[names.index(node.name.lower())]
        if any(_call_end(group, index) for index in range(len(group))):
            raise refusal("AGGREGATE_PLACE", f"the query groups by {text.of(words)!r}, which is an aggregate")
        groups.setdefault(_spelling(group), group)
    return list(groups.values())


def _at(items: list[list[Word]], position: int) -> list[Word]:
    if not 1 <= position <= len(items):
        raise refusal(
            "GROUP_POSITION", f"GROUP BY {position} names none of the {len(items)} columns of the SELECT list"
        )
    return items[position - 1]


def _spelling(words: list[Word]) -> tuple[str, ...]:
    return tuple(word.text for word in words)


def _call_end(words: list[Word], index: int) -> int:
    """Where the parentheses of an aggregate that is called at `index` end; 0 if there is no such call."""
    called = words[index].text.strip("`") in FUNCTIONS and index + 1 < len(words) and words[index + 1].text == "("
    if not called:
        return 0
    depth = 0
    for end in range(index + 1, len(words)):
        depth += (words[end].text in _OPENS) - (words[end].text in _CLOSES)
        if depth == 0:
            return end
    return 0


class Selected:
    """Rewrites the SELECT list over groups and calls, and collects the calls and their arguments."""

    def __init__(self, text: GroupedText, groups: list[list[Word]]) -> None:
        self.text = text
        self.calls: list[Call] = []
        self.arguments: dict[tuple[str, ...], list[Word]] = {}
        self._groups = [_spelling(group) for group in groups]
        # A constant is only replaced if it is the whole item, because some functions require a constant.
        computed = [number for number, group in enumerate(groups) if any(map(text.is_column, group))]
        self._inner = sorted(computed, key=lambda number: -len(self._groups[number]))

    def rewritten(self, item: list[Word]) -> str:
        if _spelling(item) in self._groups:
            return f"__group_{self._groups.index(_spelling(item))}"
        pieces: list[str] = []
        index, written = 0, item[0].start
        while index < len(item):
            found = self._call(item, index) or self._group(item, index)
            if found:
                name, last = found
                pieces += [self.text.query[written : item[index].start], name]
                index, written = last, item[last].end + 1
            elif self.text.is_column(item[index]):
                raise self._ungrouped(item, item[index])
            index += 1
        return "".join([*pieces, self.text.query[written : item[-1].end + 1]])

    def _ungrouped(self, item: list[Word], word: Word) -> QueryError:
        """An expression of a column that is in a group expression may be that one, written in another way."""
        column, where = word.text, place_of(self.text.query, word.start)
        reason = "GROUP_FORM" if any(column in group for group in self._groups) else "UNGROUPED_COLUMN"
        return refusal(reason, f"the query's column {self.text.of(item)!r} uses {column}{where}, which is not grouped")

    def _call(self, item: list[Word], index: int) -> tuple[str, int] | None:
        end = _call_end(item, index)
        if not end:
            return None
        function, argument = item[index].text.strip("`"), item[index + 2 : end]
        self._check_argument(function, argument, qualified=index > 0 and item[index - 1].text == ".")
        call = Call(function, None)
        if _spelling(argument) != ("*",):
            spelling = _spelling(argument)
            self.arguments.setdefault(spelling, argument)
            call = Call(function, list(self.arguments).index(spelling))
        if call not in self.calls:
            self.calls.append(call)
        return f"__call_{self.calls.index(call)}", end

    def _check_argument(self, function: str, argument: list[Word], *, qualified: bool) -> None:
        depths = [(word.text in _OPENS) - (word.text in _CLOSES) for word in argument]
        several = any(word.text == "," and sum(depths[:at]) == 0 for at, word in enumerate(argument))
        star = _spelling(argument) == ("*",) and function != "count"
        if qualified or several or star or not argument or argument[0].text == "all":
            raise refusal("AGGREGATE_FUNCTION", f"the query calls {function}() in a form that is not maintained")
        inside = tuple(
            token for token in self.text.part.projection if argument[0].start <= token.start <= argument[-1].end
        )
        for name in aggregates_in(inside):
            raise refusal("AGGREGATE_NESTED", f"the query calls {name}() inside {function}()")

    def _group(self, item: list[Word], index: int) -> tuple[str, int] | None:
        for number in self._inner:
            spelling = self._groups[number]
            last = index + len(spelling) - 1
            if _spelling(item[index : last + 1]) != spelling:
                continue
            if index == last or self.text.is_whole(item, index, last):
                return f"__group_{number}", last
        return None
