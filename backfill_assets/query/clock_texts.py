"""Texts that Spark reads as the clock's date or time: `'today'` and the like, and times of day, which it takes for today's.

It does so wherever such a text becomes a date or a timestamp, also where it is only compared with one. A text that comes
from a row is the row's own: whether it is a time of day is not known here.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from sqlglot import exp

__all__ = ["CLOCK_NODES", "is_text", "reads_clock"]

_WORD: Final = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_TIME_OF_DAY: Final = re.compile(r"\s*T?\d{1,2}:\d{1,2}")
CLOCK_NODES: Final = (exp.Literal, exp.RawString, exp.Concat, exp.DPipe, exp.Cast)
"""Strings that may mean the clock's time."""
_MAKES_TEXT: Final = (
    *(exp.Bracket, exp.Case, exp.Coalesce, exp.Concat, exp.DPipe, exp.HexString, exp.If, exp.Lower, exp.Replace),
    *(exp.Reverse, exp.Substring, exp.Trim, exp.Unhex, exp.Upper, exp.Anonymous),
)
_WITH_ZONE: Final = (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ, exp.DataType.Type.TIMESTAMP)
"""What sqlglot calls Spark's TIMESTAMP and TIMESTAMP_LTZ, and the type of `to_timestamp`."""
_ALWAYS_TEXT: Final = (
    *(exp.ConcatWs, exp.DPipe, exp.Hex, exp.Initcap, exp.Left, exp.Lower, exp.MD5, exp.Pad, exp.RegexpExtract),
    *(
        exp.RegexpReplace,
        exp.Repeat,
        exp.Replace,
        exp.Right,
        exp.SHA2,
        exp.Substring,
        exp.SubstringIndex,
        exp.TimeToStr,
    ),
    *(exp.Translate, exp.Trim, exp.Upper),
)
_TAKES_TEXT: Final = (
    *_ALWAYS_TEXT,
    *(exp.Contains, exp.EndsWith, exp.Length, exp.RegexpSplit, exp.Split, exp.StartsWith, exp.StrPosition),
)
"""Functions with parameters of text; those of `date_format` are a time and a pattern."""
_PATTERNS: Final = (exp.Like, exp.ILike, exp.RegexpLike, exp.SimilarTo)
_KEEPS: Final = (exp.Concat, exp.DPipe, exp.Bracket)
_COMPARES: Final = (
    *(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In),
    *(exp.Nullif,),
)
_ALIKE: Final = (exp.Coalesce, exp.Greatest, exp.Least)
"""Functions whose arguments and result have one type."""
_OF_TIMES: Final = re.compile(r"date|day|extract|hour|minute|month|quarter|second|time|trunc|ts_or_ds|unix|week|year")
"""What the name of a function has in it that takes dates or times."""

IsText = Callable[[exp.Column], bool]


def reads_clock(node: exp.Expr, of_text: IsText) -> bool:
    """Whether Spark may read a string, one of `CLOCK_NODES`, as the clock's date or time: not if it stays a string, or is
    compared with strings. `of_text` says which columns are strings for certain."""
    if isinstance(node, exp.Cast):
        return _casts_computed_text(node)
    text = _constant_text(node) or ""
    is_word = _WORD.match(text) is not None
    return (is_word or _TIME_OF_DAY.match(text) is not None) and _becomes_time(node, of_text, is_word=is_word)


def is_text(node: exp.Expr, of_text: IsText) -> bool:
    """Whether an expression is a string for certain."""
    match node.unnest():
        case exp.Column() as column:
            return of_text(column)
        case exp.Cast() as cast:
            return cast.is_type(*exp.DataType.TEXT_TYPES)
        case exp.If() | exp.Case() as inner:
            return all(isinstance(each.unnest(), exp.Null) or is_text(each, of_text) for each in _branches(inner))
        case exp.Coalesce() as first:
            return all(is_text(each, of_text) for each in (first.this, *first.expressions))
        case other:
            return _constant_text(other) is not None or isinstance(other, _ALWAYS_TEXT)


def _becomes_time(node: exp.Expr, of_text: IsText, *, is_word: bool) -> bool:
    """Whether a string may become a time where it is."""
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.Tuple | exp.Any | exp.All):
        node, parent = parent, parent.parent
    if isinstance(parent, exp.Alias | exp.Select):
        return _in_list(node, of_text, is_word=is_word)
    if isinstance(parent, exp.If | exp.Case):
        return _in_branch(node, parent, of_text)
    if isinstance(parent, (*_COMPARES, *_ALIKE)):
        beside = all(is_text(each, of_text) for each in parent.iter_expressions() if each is not node)
        return not beside or (isinstance(parent, _ALIKE) and _becomes_time(parent, of_text, is_word=is_word))
    return _is_argument_of_time(node, parent, is_word=is_word)


def _is_argument_of_time(node: exp.Expr, parent: exp.Expr | None, *, is_word: bool) -> bool:
    """The same of arguments. For a function that is not known here, a word may be a time, and a time of day if its name
    tells of times."""
    if isinstance(parent, exp.Cast):
        return parent.is_type(*(exp.DataType.TEMPORAL_TYPES if is_word else _WITH_ZONE))
    if isinstance(parent, exp.TimeToStr):
        return parent.this is node
    if isinstance(parent, (*_PATTERNS, *_KEEPS)) or (isinstance(parent, _TAKES_TEXT) and parent.find(exp.Column)):
        return False
    return is_word or (isinstance(parent, exp.Func) and _OF_TIMES.search(_name(parent)) is not None)


def _in_list(item: exp.Expr, of_text: IsText, *, is_word: bool) -> bool:
    """Whether a string of a SELECT list may become a time beside what other parts of a set operation have in its place, or
    where the query is compared with a time."""
    item = item.parent if isinstance(item.parent, exp.Alias) else item
    select = item.parent
    if not isinstance(select, exp.Select):
        return False
    query = _whole_query(select)
    lists = [each.expressions for each in _selects(query) if each is not select]
    if any(each.is_star for several in (select.expressions, *lists) for each in several):
        return False
    at = next((at for at, each in enumerate(select.expressions) if each is item), len(select.expressions))
    if any(not is_text(each.unalias(), of_text) for several in lists for each in several[at : at + 1]):
        return True
    return isinstance(query.parent, _COMPARES) and _becomes_time(query, of_text, is_word=is_word)


def _whole_query(select: exp.Expr) -> exp.Expr:
    """The set operation that a SELECT is a part of, with the parentheses around it."""
    around = select.parent
    is_same = isinstance(around, exp.SetOperation) or (isinstance(around, exp.Subquery) and not around.alias)
    return _whole_query(around) if around is not None and is_same else select


def _selects(query: exp.Expr) -> Iterator[exp.Select]:
    """The parts of a set operation."""
    match query:
        case exp.Select():
            yield query
        case exp.SetOperation():
            yield from _selects(query.this)
            yield from _selects(query.expression)
        case exp.Subquery():
            yield from _selects(query.this)


def _in_branch(node: exp.Expr, parent: exp.If | exp.Case, of_text: IsText) -> bool:
    if parent.this is not node:
        others = (each.unnest() for each in _branches(parent))
        return any(not isinstance(each, exp.Null) and not is_text(each, of_text) for each in others)
    subject = parent.parent.this if isinstance(parent.parent, exp.Case) else None  # CASE x WHEN 'today'
    return subject is None or not is_text(subject, of_text)


def _name(call: exp.Func) -> str:
    return (call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower()


def _branches(node: exp.Expr) -> Iterator[exp.Expr]:
    """The branches of a condition: IF, or CASE with its WHENs. All of them get one type."""
    whole = node.parent if isinstance(node, exp.If) and isinstance(node.parent, exp.Case) else node
    ifs = whole.args.get("ifs") or [whole]
    others = (whole.args.get(name) for name in ("false", "default"))
    yield from (each for each in [*(one.args.get("true") for one in ifs), *others] if each is not None)


def _constant_text(node: exp.Expr | None) -> str | None:
    """The string that is written in the query, in one or several pieces; None for anything else."""
    match node:
        case exp.Literal() if node.is_string:
            return str(node.this)
        case exp.RawString():
            return str(node.this)
        case exp.Paren():
            return _constant_text(node.this)
        case exp.Concat() | exp.DPipe():
            parts = node.expressions or [node.this, node.expression]
            texts = [_constant_text(each) for each in parts]
            return None if None in texts else "".join(map(str, texts))
    return None


def _casts_computed_text(cast: exp.Cast) -> bool:
    """Whether a string that is computed without columns becomes a date or a time: Spark computes it first, and then
    replaces it."""
    text = cast.this.unnest()
    makes_text = isinstance(text, _MAKES_TEXT) or (
        isinstance(text, exp.Cast) and text.is_type(*exp.DataType.TEXT_TYPES)
    )
    is_computed = makes_text and _constant_text(text) is None and not text.find(exp.Column)
    return is_computed and cast.is_type(*exp.DataType.TEMPORAL_TYPES)
