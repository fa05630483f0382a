"""Texts that Spark reads as the clock's date or time: `'today'` and the like, and times of day, which it takes for today's.

It does so wherever such a text becomes a date or a timestamp, also where it is only compared with one. A text that comes
from a row is the row's own: whether it is a time of day is not known here.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from backfill_assets.query.nodes import all_of

__all__ = ["CLOCK_NODES", "holds_times", "may_be_time", "reads_clock"]

_WORD: Final = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_TIME_OF_DAY: Final = re.compile(r"\s*(T\d{1,2}(\D|$)|\d{1,2}:\d{1,2})")
CLOCK_NODES: Final = (exp.Literal, exp.RawString, exp.Concat, exp.DPipe, exp.Cast)
"""Strings that may mean the clock's time."""
_MAKES_TEXT: Final = (
    *(exp.Bracket, exp.Case, exp.Coalesce, exp.Concat, exp.DPipe, exp.HexString, exp.If, exp.Lower, exp.Replace),
    *(exp.Reverse, exp.Substring, exp.Trim, exp.Unhex, exp.Upper, exp.Anonymous),
    *(exp.Decode, exp.Dot, exp.JSONExtract, exp.JSONExtractScalar, exp.Overlay, exp.RegexpReplace, exp.Translate),
)
_WITH_ZONE: Final = (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ, exp.DataType.Type.TIMESTAMP)
"""What sqlglot calls Spark's TIMESTAMP and TIMESTAMP_LTZ, and the type of `to_timestamp`."""
_TEXTS: Final = (
    *(exp.Concat, exp.ConcatWs, exp.DPipe, exp.Hex, exp.Initcap, exp.Left, exp.Lower, exp.MD5, exp.Pad),
    *(exp.RegexpExtract, exp.RegexpReplace, exp.Repeat, exp.Replace, exp.Right, exp.SHA2, exp.Substring),
    *(exp.SubstringIndex, exp.TimeToStr, exp.Translate, exp.Trim, exp.Upper),
)
"""Functions that return a string, or a list of them."""
_TAKES_TEXT: Final = (
    *_TEXTS,
    *(exp.Contains, exp.EndsWith, exp.Length, exp.RegexpSplit, exp.Split, exp.StartsWith, exp.StrPosition),
)
"""Functions with parameters of text; those of `date_format` are a time and a pattern."""
_WRITTEN: Final = (exp.Dayname, exp.Format, exp.JSONFormat, exp.Monthname, exp.ToChar, exp.UnixToStr)
"""Others that return a string, of what may be times."""
_WRITTEN_NAMES: Final = frozenset({"printf", "to_csv", "to_varchar"})
"""Those that sqlglot does not know."""
_READ_BY_PATTERN: Final = frozenset({"to_timestamp_ltz", "to_timestamp_ntz", "try_to_date", "try_to_timestamp"})
"""Functions that sqlglot does not know, and that read a text as a time: by the pattern after it, if there is one."""
_READ_AS_TIME: Final = frozenset({"to_time", "try_to_time"})
"""Functions that read a text as a time of day, which is no day's."""
_TAKES_APART: Final = frozenset({"from_csv", "from_json", "from_xml", "parse_json", "try_parse_json"})
"""Functions that read several values from a text, each by a type of its own."""
_ENDS_PARTS: Final = re.compile(r"""[][{}<>"',;|]""")
_PATTERNS: Final = (exp.Like, exp.ILike, exp.RegexpLike, exp.SimilarTo)
_NEVER_TIMES: Final = (
    *_TEXTS,
    *_WRITTEN,
    *(exp.Literal, exp.RawString, exp.Null, exp.Boolean, exp.Predicate, exp.Connector, exp.Not),
)
_GIVES_ITS_VALUE: Final = (exp.Filter, exp.IgnoreNulls, exp.Lambda, exp.RespectNulls, exp.Window)
"""What stands around a call or an expression, and has its value."""
_COMPARES: Final = (
    *(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In),
    *(exp.Add, exp.Interval, exp.SafeAdd, exp.SafeSubtract, exp.Sub),
)
"""Where what stands beside a text says what it is read as."""
_MOVES: Final = (exp.Add, exp.SafeAdd, exp.SafeSubtract, exp.Sub)
"""What adds an interval to a time. Such a text is no number, to which it could add another."""
_OF_TIMES: Final = re.compile(
    r"date|day|^extract|hour|minute|month|quarter|second|time|trunc|ts_or_ds|unix|week|window|year"
)
"""What the name of a function has in it that takes dates or times."""

_TIMES: Final = re.compile(r"\b(DATE|TIME|TIMESTAMP\w*|VARIANT)\b", re.IGNORECASE)

NoTime = Callable[[exp.Column], bool]
"""Says which columns hold no dates or times for certain."""


def reads_clock(node: exp.Expr, no_time: NoTime) -> bool:
    """Whether Spark may read a string, one of `CLOCK_NODES`, as the clock's date or time: not if it stays a string, or is
    compared with what is no time."""
    if isinstance(node, exp.Cast):
        return _casts_computed_text(node)
    text = _constant_text(node) or ""
    if _is_taken_apart(node) and any(_WORD.match(each) or _TIME_OF_DAY.match(each) for each in _ENDS_PARTS.split(text)):
        return True
    is_word = _WORD.match(text) is not None
    return (is_word or _TIME_OF_DAY.match(text) is not None) and _Place(no_time, is_word).becomes_time(node)


def holds_times(kind: str) -> bool:
    """Whether values of a type, as Spark writes it, are dates or times, or have such in them.

    Example:
        >>> holds_times("STRUCT<a: INT, at: TIMESTAMP>"), holds_times("STRING")
        (True, False)
    """
    return _TIMES.search(kind) is not None


def may_be_time(node: exp.Expr, no_time: NoTime) -> bool:
    """Whether an expression may be a date or a time."""
    inner = node.unnest()
    match inner:
        case exp.Column():
            return not no_time(inner)
        case exp.Cast():
            return inner.is_type(*exp.DataType.TEMPORAL_TYPES)
        case exp.Identifier():
            return _is_parameter(inner)
        case exp.If() | exp.Case() | exp.Nvl2():
            return any(may_be_time(each, no_time) for each in _branches(inner))
    if isinstance(inner, _NEVER_TIMES) or (isinstance(inner, exp.Anonymous) and _name(inner) in _WRITTEN_NAMES):
        return False
    is_named = isinstance(inner, exp.Func) and _OF_TIMES.search(_name(inner)) is not None
    return is_named or any(may_be_time(each, no_time) for each in inner.iter_expressions())


def _is_parameter(name: exp.Identifier) -> bool:
    """Whether a name is that of a parameter of a function around it, of which nothing is known."""
    around = name.find_ancestor(exp.Lambda)
    while around is not None:
        if any(each.name.lower() == name.name.lower() for each in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


@dataclass(frozen=True)
class _Place:
    """Where a string is: one of the words, or a time of day. `seen` are the columns by whose names it was followed."""

    no_time: NoTime
    is_word: bool
    seen: frozenset[str] = frozenset()

    def becomes_time(self, node: exp.Expr) -> bool:
        """Whether what has the string's value may become a time."""
        if not self.is_word and (names := _columns_of(node)):
            return any(self._is_time_by_name(node.root(), name) for name in names)
        parent = node.parent
        while isinstance(parent, exp.Paren | exp.Tuple | exp.Any | exp.All | exp.PivotAlias):
            node, parent = parent, parent.parent
        if isinstance(parent, exp.Alias | exp.Select):
            return self._in_list(node)
        if isinstance(parent, exp.If | exp.Case | exp.Nvl2):
            return self._in_branch(node, parent)
        if isinstance(parent, _GIVES_ITS_VALUE) and not self.is_word:
            return parent.this is node and self.becomes_time(parent)
        if isinstance(parent, _COMPARES):
            return self._beside(node, parent)
        return self._as_argument(node, parent)

    def _beside(self, node: exp.Expr, parent: exp.Expr) -> bool:
        if isinstance(parent, _MOVES):
            return True
        if isinstance(parent, exp.Interval):  # as sqlglot reads what is added to one
            return parent.args.get("unit") is None
        return any(may_be_time(each, self.no_time) for each in parent.iter_expressions() if each is not node)

    def _as_argument(self, node: exp.Expr, parent: exp.Expr | None) -> bool:
        """Of functions that are not known here, a word may be a time. A time of day may be one beside times, or where the
        result is one."""
        if isinstance(parent, exp.Cast):
            kinds = exp.DataType.TEMPORAL_TYPES if self.is_word else _WITH_ZONE
            return any(each.is_type(*kinds) for each in all_of(parent.to, exp.DataType))
        if isinstance(parent, exp.TimeToStr | exp.ToChar):
            return parent.this is node
        if _is_read_without_clock(node, parent):
            return False
        is_pattern = isinstance(parent, _PATTERNS) or (isinstance(parent, _TAKES_TEXT) and parent.find(exp.Column))
        if is_pattern or self.is_word:
            return not is_pattern and self._is_word_of_time(node, parent)
        if not isinstance(parent, exp.Func | exp.Bracket | exp.Dot | exp.PropertyEQ):
            return False
        field = parent.this.name.lower() if isinstance(parent, exp.PropertyEQ) else ""
        is_named = isinstance(parent, exp.Func) and _OF_TIMES.search(_name(parent)) is not None
        by_name = is_named or self._is_time_by_name(node.root(), field)
        return by_name or self._beside(node, parent) or self.becomes_time(parent)

    def _is_word_of_time(self, node: exp.Expr, parent: exp.Expr | None) -> bool:
        if isinstance(parent, exp.Coalesce | exp.Nullif):
            return self._beside(node, parent) or self._is_constant_time(parent)
        if isinstance(parent, exp.Bracket):
            return node is not parent.this and may_be_time(parent.this, self.no_time)
        return not isinstance(parent, exp.Concat | exp.DPipe)

    def _is_constant_time(self, node: exp.Expr) -> bool:
        """Whether what has the string's value is computed without columns, and becomes a time."""
        return not node.find(exp.Column) and self.becomes_time(node)

    def _in_list(self, item: exp.Expr) -> bool:
        """Whether it may become a time beside what other parts of a set operation have in its place, where the query is
        compared with a time, or where its name is."""
        item = item.parent if isinstance(item.parent, exp.Alias) else item
        select = item.parent
        if not isinstance(select, exp.Select):
            return False
        query = _whole_query(select)
        lists = [each.expressions for each in _selects(query) if each is not select]
        at = next((at for at, each in enumerate(select.expressions) if each is item), len(select.expressions))
        is_known = not any(each.is_star for several in (select.expressions, *lists) for each in several)
        others = [each for several in lists for each in several[at : at + 1]] if is_known else []
        if any(may_be_time(each.unalias(), self.no_time) for each in others):
            return True
        if (isinstance(query.parent, _COMPARES) or not self.is_word) and self.becomes_time(query):
            return True
        renamed = query.parent.alias_column_names if isinstance(query.parent, exp.Subquery) else []
        name = renamed[at] if is_known and at < len(renamed) else item.alias_or_name
        return not self.is_word and self._is_time_by_name(item.root(), name.lower())

    def _is_time_by_name(self, root: exp.Expr, name: str) -> bool:
        """Whether a column of this name, which has the string's value, becomes a time anywhere in a query."""
        if not name or name in self.seen:
            return False
        inside = replace(self, seen=self.seen | {name})
        return any(inside.becomes_time(each) for each in all_of(root, exp.Column) if each.name.lower() == name)

    def _in_branch(self, node: exp.Expr, parent: exp.If | exp.Case | exp.Nvl2) -> bool:
        if parent.this is node:  # IF('today', …) is none, CASE x WHEN 'today' is compared with x
            subject = parent.parent.this if isinstance(parent.parent, exp.Case) else None
            return subject is None or may_be_time(subject, self.no_time)
        if any(may_be_time(each, self.no_time) for each in _branches(parent)):
            return True
        whole = parent.parent if isinstance(parent, exp.If) and isinstance(parent.parent, exp.Case) else parent
        return self._is_constant_time(whole) if self.is_word else self.becomes_time(whole)


def _columns_of(node: exp.Expr) -> list[str]:
    """The columns of FROM that have a node's value: one of a row of VALUES, or those of a function; none for other nodes."""
    item = node.parent if isinstance(node.parent, exp.Alias) else node
    source = item.parent
    if isinstance(source, exp.Tuple) and isinstance(source.parent, exp.Values):
        at = next(at for at, each in enumerate(source.expressions) if each is item)
        names = source.parent.alias_column_names or [f"col{number + 1}" for number in range(at + 1)]
        return [name.lower() for name in names[at : at + 1]]
    if isinstance(source, exp.Lateral | exp.Table) and source.this is node:
        return [name.lower() for name in source.alias_column_names] or ["col", "key", "value"]
    return []


def _is_taken_apart(text: exp.Expr) -> bool:
    """Whether a function reads values from a text that may be times, as its second argument does not say otherwise."""
    call = text.parent
    if not isinstance(call, exp.Func) or _name(call) not in _TAKES_APART:
        return False
    first, *others = call.iter_expressions()
    schema = _constant_text(others[0]) if others else None
    return first is text and (schema is None or holds_times(schema))


def _is_read_without_clock(text: exp.Expr, call: exp.Expr | None) -> bool:
    """Whether a text becomes a time by a pattern that the call has for it, or a time of day: what that leaves out is not the
    clock's."""
    if isinstance(call, exp.Anonymous):
        has_pattern = len(call.expressions) > 1 and _name(call) in _READ_BY_PATTERN
        return (has_pattern or _name(call) in _READ_AS_TIME) and call.expressions[0] is text
    if not isinstance(call, exp.StrToTime | exp.StrToUnix | exp.TsOrDsToDate):
        return False
    return call.args.get("format") is not None and call.this is text


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


def _name(call: exp.Func) -> str:
    return (call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower()


def _branches(node: exp.Expr) -> Iterator[exp.Expr]:
    """The branches of a condition: IF, nvl2, or CASE with its WHENs. All of them get one type."""
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
