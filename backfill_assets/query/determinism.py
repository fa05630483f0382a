"""Refuses expressions that return other rows when they are computed again: by the clock, random numbers, the session,
and the order of rows.

Whenever something is computed again, in any session and over any number of tasks, it must return the same multiset of
rows; every strategy, every repeated plan and every proof depends on this.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark

from backfill_assets.query.clock_texts import CLOCK_NODES, holds_times, may_be_time, reads_clock
from backfill_assets.query.current_words import called_words
from backfill_assets.query.ddl import Column
from backfill_assets.query.functions import REFUSED_FUNCTIONS, ZERO_ARGUMENT_CLOCKS
from backfill_assets.query.nodes import all_of, collated
from backfill_assets.query.parsing import items_of
from backfill_assets.query.refusals import place, refusal, refused_call, refused_text, refused_word

__all__ = ["CURRENT_NODES", "check_calls", "check_collations", "check_deterministic", "check_words", "refused_calls"]

_UNORDERED: Final = """
any_value approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine array_agg collect_list collect_set
count_min_sketch first histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double
kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float last listagg max_by measure min_by mode
percentile_approx schema_of_variant_agg string_agg theta_intersection_agg theta_sketch_agg theta_union_agg
tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer
tuple_union_agg_double tuple_union_agg_integer
"""
_ORDER_DEPENDENT: Final = frozenset(_UNORDERED.split())
"""Aggregates whose result depends on the order of rows, or on which of several equal ones comes first."""

_FIRST_OF_WINDOW: Final = frozenset({"any_value", "first", "first_value", "last", "last_value", "nth_value"})
"""Functions whose result depends on the order of rows, except in a window, whose order is completed."""
_OF_EQUAL_VALUES: Final = frozenset({"listagg", "mode", "string_agg"})
"""Functions whose result does not depend on the order of rows if these are ordered by just the values that it is made of."""
_BY_AN_ORDER: Final = frozenset({"max_by", "min_by"})
"""Functions that give a value of the row that comes first: the same one, if rows are ordered by that value in the end."""
_COLLECTS: Final = frozenset({"array_agg", "collect_list", "collect_set"})
_ORDERS: Final = frozenset({"array_max", "array_min", "array_size", "array_sort", "cardinality", "size", "sort_array"})
"""Functions that make the order of a collected array irrelevant, if the array is their only argument."""
_AFTER_CALL: Final = frozenset({"filter", "over"})
_EXACT_TYPES: Final = re.compile(
    r"(STRING|BINARY|BOOLEAN|DATE|TIMESTAMP\w*|TINYINT|SMALLINT|INT|BIGINT|DECIMAL.*)", re.IGNORECASE
)
_SMALL: Final = (
    r"TINYINT|BYTE|SMALLINT|SHORT|INT|INTEGER|FLOAT|REAL|DOUBLE|(DECIMAL|DEC|NUMERIC)(\((\d|1\d|2[0-8])(,.*)?\))?"
)
_DO_NOT_OVERFLOW: Final = {
    "try_avg": re.compile(rf"{_SMALL}|BIGINT|LONG", re.IGNORECASE),
    "try_sum": re.compile(_SMALL, re.IGNORECASE),
}
"""Functions that are null once a sum has overflowed, and the types of numbers whose sums never do. With others it depends on
the order of rows."""
_DIRECTIONS: Final = frozenset({"asc", "desc", "nulls"})
_OPENS: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSES: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})

_ENVIRONMENT: Final = frozenset({"collations", "python_worker_logs", "sql_keywords"})
_LIKES: Final = frozenset({TokenType.LIKE, TokenType.ILIKE})
_QUANTIFIERS: Final = frozenset({"any", "some"})
_COMPARISONS: Final = (exp.Predicate, exp.Contains, exp.EndsWith, exp.StartsWith)
_CALLS_UNHEX: Final = [(TokenType.VAR, "UNHEX"), (TokenType.L_PAREN, "(")]
_WRITTEN_BYTES: Final = frozenset({TokenType.HEX_STRING, TokenType.STRING})
CURRENT_NODES: Final = tuple(set(Spark.Parser.NO_PAREN_FUNCTIONS.values()))
"""sqlglot's types for words that call functions of the clock or the session without parentheses."""
_CLAUSES: Final = {
    "sample": ("NOT_DETERMINISTIC", "TABLESAMPLE"),
    "version": ("UNSUPPORTED", "a table version"),
}


def check_deterministic(
    root: exp.Expr, tokens: Sequence[Token], tables: Mapping[str, Sequence[Column]] | None = None
) -> None:
    """Refuse a query that would not return the same rows again.

    `tables`: the columns of each upstream; without them, some things cannot be checked. Errors: `QueryError`.
    """
    if tables is None:
        check_calls(tokens)
    else:
        small = {name: _of_types(kinds, root, tables) for name, kinds in _DO_NOT_OVERFLOW.items()}
        check_calls(tokens, _of_types(_EXACT_TYPES, root, tables), small)
    for name, (reason, clause) in _CLAUSES.items():
        for node in (each for each in root.walk() if each.args.get(name)):
            raise refusal(reason, f"the query has {clause}{place(node)}")
    check_parameters(root, tokens)
    check_collations(root)
    check_words(root, tokens)
    if tables is None:
        return
    for word in called_words(
        root, {name.lower(): [each.name.lower() for each in some] for name, some in tables.items()}
    ):
        at = next((each for each in tokens if each.text.lower() == word), root)
        raise refused_word(word, place(at), hint=f"if a column is meant, name its table: t.{word}")
    no_time = _is_one_of(_timeless(root, tables), root)
    for node in all_of(root, *CLOCK_NODES):
        if reads_clock(node, no_time):
            raise refused_text(node.sql("spark"), place(node))


def check_parameters(root: exp.Expr, tokens: Sequence[Token]) -> None:
    """Refuse parameters and variables, to which nobody gives a value, and rows that a script makes. Errors: `QueryError`."""
    for node in all_of(root, exp.QueryTransform):
        raise refusal("UNSUPPORTED", f"the query has {node.sql('spark')}{place(node)}, whose rows a script makes")
    if not any(all_of(root, exp.Placeholder, exp.Parameter)):
        return
    at = next((at for at in range(len(tokens)) if _begins_parameter(tokens, at)), None)
    named = "a parameter" if at is None else f"the parameter {_written_together(tokens, at)}{place(tokens[at])}"
    raise refusal("UNSUPPORTED", f"the query has {named}, to which nobody gives a value", hint="write the value itself")


def _begins_parameter(tokens: Sequence[Token], at: int) -> bool:
    """Whether `?`, `@x`, `${x}`, `{x}` or `:x` begins at a token; `v:x` is a field of a VARIANT."""
    if tokens[at].token_type is TokenType.COLON:
        return at == 0 or tokens[at - 1].end + 1 < tokens[at].start
    return tokens[at].token_type in {TokenType.PLACEHOLDER, TokenType.PARAMETER, TokenType.L_BRACE}


def _written_together(tokens: Sequence[Token], at: int) -> str:
    """A token with those that follow it without a space, up to a comma or a bracket."""
    text = tokens[at].text
    for before, token in pairwise(tokens[at:]):
        if token.start > before.end + 1 or token.token_type in {TokenType.COMMA, TokenType.R_PAREN}:
            break
        text += token.text
    return text


def check_words(root: exp.Expr, tokens: Sequence[Token]) -> None:
    """Refuse words that call functions of the clock or the session without parentheses. Errors: `QueryError`."""
    for node in all_of(root, *CURRENT_NODES):
        word = node.sql("spark").removesuffix("()").lower()
        raise refused_word(word, place(next((each for each in tokens if each.text.lower() == word), node)))


def check_collations(root: exp.Expr) -> None:
    """Refuse a query with a collation whose texts are more than compared: different ones are equal by it, so the choice made
    by groups, extremes and LIMIT would be arbitrary. Errors: `QueryError`."""
    for text in collated(root):
        if not _is_compared(text):
            raise refusal(
                "UNSUPPORTED",
                f"the query has a collation{place(text)}, by which different strings are equal",
                hint="only compare by it (name COLLATE UTF8_LCASE = 'x'), or take lower(...) or upper(...) of the strings",
            )


def _is_compared(text: exp.Expr) -> bool:
    """Whether nothing comes of a text but whether it is equal to others, before or after them, or like them."""
    above = text.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return isinstance(above, _COMPARISONS)


def _timeless(root: exp.Expr, tables: Mapping[str, Sequence[Column]]) -> set[str]:
    """The names that hold no dates or times wherever they are columns, or what the query defines by them."""
    columns = [each for some in tables.values() for each in some]
    given: dict[str, list[exp.Expr]] = {}
    for each in all_of(root, exp.Alias):
        given.setdefault(each.alias.lower(), []).append(each.this)
    others = {each.name.lower() for each in columns if holds_times(each.type)}
    others |= {each.name.lower() for alias in all_of(root, exp.TableAlias) for each in alias.columns}
    names = {each.name.lower() for each in columns} - others - given.keys()
    before = None
    while names != before:
        before = frozenset(names)
        no_time = _is_one_of(before, root)
        names |= {name for name in given.keys() - others if not any(may_be_time(each, no_time) for each in given[name])}
    return names


def _is_one_of(names: Collection[str], root: exp.Expr) -> Callable[[exp.Column], bool]:
    """Whether a column of a query has one of these names, or is a field of one that has."""
    tables = {each.alias_or_name.lower() for each in all_of(root, exp.Table, exp.Subquery, exp.CTE)}

    def is_one(column: exp.Column) -> bool:
        parts = [part.name.lower() for part in column.parts]
        return parts[1 if len(parts) > 1 and parts[0] in tables else 0] in names

    return is_one


def refused_calls(tokens: tuple[Token, ...]) -> Iterator[tuple[str, str]]:
    """The calls of functions that are refused, each with its reason."""
    # By token, not by sqlglot's functions: it knows fewer names than Spark, and reads some names as other functions.
    for index, token in enumerate(tokens[:-1]):
        name = token.text.lower()
        if tokens[index + 1].token_type != TokenType.L_PAREN or token.token_type == TokenType.STRING:
            continue
        if name in _QUANTIFIERS and index and tokens[index - 1].token_type in _LIKES:
            continue
        if name in REFUSED_FUNCTIONS and not _encrypts_repeatably(tokens, index):
            yield name, REFUSED_FUNCTIONS[name]
        if name in ZERO_ARGUMENT_CLOCKS and tokens[index + 2].token_type == TokenType.R_PAREN:
            yield name, "NOT_DETERMINISTIC"


def _encrypts_repeatably(tokens: Sequence[Token], at: int) -> bool:
    """Whether a call encrypts in mode ECB, which needs no initialization vector, or has one that is written in the query;
    for one that is empty Spark generates one at random."""
    if tokens[at].text.lower() != "aes_encrypt":
        return False
    arguments = items_of(tokens[at + 2 : _after_brackets(tokens, at + 1) - 1])
    mode, vector = (
        [(each.token_type, each.text.upper()) for part in arguments[n : n + 1] for each in part] for n in (2, 4)
    )
    if vector[:2] == _CALLS_UNHEX and vector[3:] == [(TokenType.R_PAREN, ")")]:
        vector = vector[2:3]
    is_written = len(vector) == 1 and vector[0][0] in _WRITTEN_BYTES and bool(vector[0][1])
    return mode == [(TokenType.STRING, "ECB")] or is_written


def check_calls(
    tokens: Sequence[Token],
    exact: Collection[str] | None = None,
    small: Mapping[str, Collection[str]] | None = None,
) -> None:
    """Refuse calls of functions that would not give the same again. Of the columns in `exact`, if they are known, values that
    are equal are the same; those in `small`, by function, are numbers whose sums do not overflow. Errors: `QueryError`."""
    for name, reason in refused_calls(tuple(tokens)):
        if reason in {"NOT_DETERMINISTIC", "UNSUPPORTED"} or name in _ENVIRONMENT:
            empty = name in ZERO_ARGUMENT_CLOCKS
            calls = (at for at, called in _calls(tokens) if called == name and not _encrypts_repeatably(tokens, at))
            at = next(at for at in calls if not empty or tokens[at + 2].token_type == TokenType.R_PAREN)
            raise refused_call(
                "UNSUPPORTED" if reason == "UNSUPPORTED" else "NOT_DETERMINISTIC", name, place(tokens[at])
            )
    for at, name in _calls(tokens):
        overflows = small is not None and name in small and not _is_of_small(tokens, at, name, small[name])
        if overflows or _has_chance(tokens, at, name, exact):
            raise refusal(
                "ORDER_DEPENDENT",
                f"the query calls {name}(){place(tokens[at])}, whose result depends on the order of rows",
                hint=f"it is null once a sum has overflowed: write {name}(CAST(x AS DECIMAL(28, s)))"
                if overflows
                else "",
            )


def _calls(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """The functions that are called, each with the position of its name."""
    for at, (token, following) in enumerate(pairwise(tokens)):
        if following.token_type == TokenType.L_PAREN and token.token_type != TokenType.STRING:
            yield at, token.text.lower()


def _has_chance(tokens: Sequence[Token], at: int, name: str, exact: Collection[str] | None) -> bool:
    """Whether the result of a call depends on the order of rows."""
    if name in _OF_EQUAL_VALUES and _is_of_equal_values(tokens, at, exact):
        return False
    if name in _BY_AN_ORDER:
        return not _is_ordered_by_value(tokens, at, exact)
    if name in _FIRST_OF_WINDOW:
        return "over" not in _words_after(tokens, at)[0]
    return name in _ORDER_DEPENDENT and not (name in _COLLECTS and _is_put_in_order(tokens, at))


def _is_of_small(tokens: Sequence[Token], at: int, name: str, small: Collection[str]) -> bool:
    """Whether a sum is that of a column of `small` numbers, or of values that are cast to such."""
    argument = tokens[at + 2 : _after_brackets(tokens, at + 1) - 1]
    argument = argument[1:] if argument and argument[0].token_type == TokenType.DISTINCT else argument
    value = _spelling(argument)
    if value[:2] == ("cast", "(") and "as" in value and _after_brackets(argument, 1) == len(argument):
        last = len(value) - 1 - value[::-1].index("as")
        return _DO_NOT_OVERFLOW[name].fullmatch("".join(value[last + 1 : -1])) is not None
    return not value or (value[-1] in small and all(each == "." for each in value[1::2]))


def _is_of_equal_values(tokens: Sequence[Token], at: int, exact: Collection[str] | None) -> bool:
    """Whether values are put in order by themselves, as in `listagg(x) WITHIN GROUP (ORDER BY x)` and `mode() WITHIN GROUP
    (ORDER BY x)`. And `mode(x, true)` gives the lowest of the most frequent ones. But 0.0 and -0.0 are equal, and not
    the same."""
    end = _after_brackets(tokens, at + 1)
    arguments = [_spelling(each) for each in items_of(tokens[at + 2 : end - 1])]
    values = arguments[0][1:] if arguments[0][:1] == ("distinct",) else arguments[0]
    ordered = _within_group(tokens, end)
    if ordered is None:
        is_lowest = tokens[at].text.lower() == "mode" and len(arguments) == 2 and arguments[1] == ("true",)
        return is_lowest and _is_exact(values, exact)
    return bool(ordered) and (not values or _spelling(ordered) == values) and _is_exact(_spelling(ordered), exact)


def _is_ordered_by_value(tokens: Sequence[Token], at: int, exact: Collection[str] | None) -> bool:
    """Whether `max_by(x, y)` orders rows by x, too, so that those that are first have the same: y is x, or a struct of it,
    as in `max_by(x, struct(time, x))`."""
    arguments = list(items_of(tokens[at + 2 : _after_brackets(tokens, at + 1) - 1]))
    if len(arguments) < 2:
        return False
    value, order = (_spelling(each) for each in arguments[:2])
    items = [order]
    if order[:2] == ("struct", "(") and _after_brackets(arguments[1], 1) == len(order):
        items = [_spelling(each) for each in items_of(arguments[1][2:-1])]
    return value in items and _is_exact(value, exact)


def _is_exact(value: tuple[str, ...], exact: Collection[str] | None) -> bool:
    """Whether equal values are the same: those of a column that is known, and texts."""
    if exact is None or value[-3:] == ("as", "string", ")"):
        return True
    return value[-1] in exact and all(each == "." for each in value[1::2])


def _of_types(kinds: re.Pattern[str], root: exp.Expr, tables: Mapping[str, Sequence[Column]]) -> set[str]:
    """The names that are columns of some types alone, wherever they are columns."""
    columns = [each for some in tables.values() for each in some]
    given = {each.alias.lower() for each in all_of(root, exp.Alias, exp.CTE, exp.Subquery)}
    given |= {each.name.lower() for alias in all_of(root, exp.TableAlias) for each in alias.columns}
    others = {each.name.lower() for each in columns if not kinds.fullmatch(each.type)}
    return {each.name.lower() for each in columns} - given - others


def _within_group(tokens: Sequence[Token], at: int) -> list[Token] | None:
    """What follows `WITHIN GROUP (ORDER BY` at a position, without the direction; None if that does not follow. Empty if rows
    are ordered by several values."""
    opening = next((each for each in (at, at + 1, at + 2) if tokens[each : each + 1] and _opens(tokens[each])), None)
    words = "" if opening is None else "".join(each.text.lower() for each in tokens[at:opening]).replace(" ", "")
    if opening is None or words != "withingroup" or tokens[opening + 1].token_type != TokenType.ORDER_BY:
        return None
    items = items_of(tokens[opening + 2 : _after_brackets(tokens, opening) - 1])
    ends = next((at for at, each in enumerate(items[0]) if each.text.lower() in _DIRECTIONS), len(items[0]))
    return list(items[0][:ends]) if len(items) == 1 else []


def _opens(token: Token) -> bool:
    return token.token_type == TokenType.L_PAREN


def _spelling(tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(token.text.lower() if token.token_type != TokenType.STRING else token.text for token in tokens)


def _is_put_in_order(tokens: Sequence[Token], at: int) -> bool:
    """Whether the argument is a whole collected array: not one of its elements, and not sorted by a comparison function
    of the user's own, for which different elements may be equal."""
    if at < 2 or tokens[at - 1].token_type != TokenType.L_PAREN:
        return False
    name, after = tokens[at - 2].text.lower(), tokens[_words_after(tokens, at)[1]].token_type
    if after == TokenType.COMMA:
        # The second argument of array_contains() is a value, and that of sort_array() is ascending or descending.
        return name in {"array_contains", "sort_array"}
    return after == TokenType.R_PAREN and name in _ORDERS


def _words_after(tokens: Sequence[Token], at: int) -> tuple[set[str], int]:
    """The FILTER and OVER that follow a call, and where the call ends with them and their parentheses."""
    words: set[str] = set()
    end = _after_brackets(tokens, at + 1)
    while end + 1 < len(tokens):
        word = "" if tokens[end].token_type == TokenType.IDENTIFIER else tokens[end].text.lower()
        if word in _AFTER_CALL:
            words.add(word)
            opens = tokens[end + 1].token_type == TokenType.L_PAREN
            end = _after_brackets(tokens, end + 1) if opens else end + 2
        elif word in {"ignore", "respect"} and tokens[end + 1].text.lower() == "nulls":
            end += 2
        else:
            break
    return words, min(end, len(tokens) - 1)


def _after_brackets(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (tokens[at].token_type in _OPENS) - (tokens[at].token_type in _CLOSES)
        if depth == 0:
            return at + 1
    return len(tokens)
