"""Keys that a query computes: `GROUP BY date(at)` compares days, which are no column of a table.

An expression may be a key like a column if its value follows from the columns of one source alone, its type is known, and it
never raises an error: it is then evaluated for all rows of a table, those too that the query's conditions leave out.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import Token, TokenType, exp

from backfill_assets.query.kinds import TIMES, kind_of
from backfill_assets.query.nodes import all_of
from backfill_assets.query.resolved import alias_of, sources_of, spelled_node, unwrapped

__all__ = ["FORMS", "ComputedKeys", "Hops", "hops_of", "is_computed", "may_be_key", "note_constants"]

_TEXT: Final = frozenset({"STRING"})
_WHOLE: Final = frozenset({"INTEGER"})
FORMS: Final[Mapping[type[exp.Expr], tuple[frozenset[str], str]]] = {
    **dict.fromkeys(
        (exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear),
        (TIMES, "INTEGER"),
    ),
    **dict.fromkeys((exp.Hour, exp.Minute, exp.Second), (TIMES, "INTEGER")),
    **dict.fromkeys((exp.TsOrDsToDate, exp.LastDay, exp.DateTrunc), (TIMES, "DATE")),
    exp.TimestampTrunc: (TIMES, "TIMESTAMP"),
    exp.TimeToStr: (TIMES, "STRING"),
    **dict.fromkeys((exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.Left), (_TEXT, "STRING")),
    **dict.fromkeys((exp.Mod, exp.IntDiv), (_WHOLE, "INTEGER")),
}
"""The functions of one value and of constants: the kinds of the value, and the kind of the result."""

_CASTS: Final = {
    "DATE": TIMES,
    "INTEGER": _WHOLE,
    "STRING": TIMES | _TEXT | _WHOLE,
    "TIMESTAMP": TIMES,
}
"""Which kinds are converted to a kind without an error."""

_ABBREVIATED: Final = frozenset({"D", "H", "M", "MS", "NS", "Q", "S", "US", "W", "Y"})
"""Units of time that sqlglot writes in full. Spark does not know them: what it cuts by them is null."""
_OTHER_UNIT: Final = "other_unit"

_FORMAT: Final = re.compile(r"(yyyy|MM|dd|HH|mm|ss|[-/:. T])+")
"""The patterns of times that mean the same wherever they are written."""


_ESCAPED: Final = "escaped"
"""The entry in the `meta` of a constant that may be written with a backslash, which sqlglot and Spark read in two ways."""

_DURATION: Final = re.compile(r"(\d{1,6}) (second|minute|hour|day|week)s?", re.IGNORECASE)
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}


@dataclass(frozen=True)
class Hops:
    """How a moment is in several windows of time, each of which lies within `count` tiles that follow one another: SQL for
    the start of the `tile` of a row; how many microseconds after a window's value, its start or end, the `first` of its
    tiles begins, and how long `each` of them is.

    A row is in one tile, so rows are found by tiles as by any other key, and none of them twice.
    """

    tile: str
    first: int
    each: int
    count: int

    def tiles(self, value: str) -> str:
        """SQL for the starts of the tiles of a window."""
        first = f"unix_micros({value}) + {self.first}L"
        return f"transform(sequence(0, {self.count - 1}), n -> timestamp_micros({first} + n * {self.each}L))"


def note_constants(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    """Note in a tree which calls may have another unit of time than the query's text has, as one is abbreviated there; and
    which texts may be others to Spark."""
    strings = [token for token in tokens if token.token_type == TokenType.STRING]
    escaped = {token.text for token in strings if token.end - token.start - 1 != len(token.text)}
    for literal in all_of(tree, exp.Literal):
        if literal.is_string and (literal.name in escaped or "'" in literal.name):
            literal.meta[_ESCAPED] = True
    if any(token.text.upper() in _ABBREVIATED for token in strings):
        for call in all_of(tree, exp.DateTrunc, exp.TimestampTrunc):
            call.meta[_OTHER_UNIT] = True


def is_computed(node: exp.Expr) -> bool:
    """Whether an expression of a tree (`resolved`) whose types are known (`kinds.are_typed`) may be a key.

    Example:
        >>> from backfill_assets.query.ddl import parse_schema
        >>> from backfill_assets.query.kinds import are_typed
        >>> from backfill_assets.query.occurrences import occurrences
        >>> from backfill_assets.query.parsing import parse, tokenize
        >>> from backfill_assets.query.resolved import resolved
        >>> text = "SELECT date(at) AS a, k % 2 AS b, k + 1 AS c FROM t"
        >>> root = parse(text, tokenize(text))
        >>> tree = resolved(root, occurrences(root, ["t"]), {"t": parse_schema("at TIMESTAMP, k INT")})
        >>> are_typed(tree, [{"at": "TIMESTAMP", "k": "INT"}])
        True
        >>> [is_computed(each) for each in tree.expressions]
        [True, True, False]
    """
    value = node.unalias()
    return not isinstance(value, exp.Column) and _is_key(value)


def may_be_key(node: exp.Expr) -> bool:
    """Whether an expression of such a tree is a column, a `coalesce` of columns, or computed as a key may be."""
    return isinstance(node.unalias(), exp.Column | exp.Coalesce) or is_computed(node) or hops_of(node) is not None


def hops_of(node: exp.Expr) -> Hops | None:
    """How a row has several values of an expression of such a tree: the starts, or the ends, of the windows that a moment is
    in, if these overlap."""
    value = node.unalias()
    bound = value.this if isinstance(value, exp.Cast) and kind_of(value) == "TIMESTAMP" else None
    call = bound.this if isinstance(bound, exp.Dot) else None
    if not isinstance(call, exp.Anonymous) or call.name.lower() != "window" or len(call.expressions) != 3:
        return None
    at, *durations = call.expressions
    length, step = map(_micros, durations)
    if not isinstance(at, exp.Column) or kind_of(at) != "TIMESTAMP" or not 0 < step < length:
        return None
    column = exp.column(exp.to_identifier(at.name, quoted=True)).sql("spark")
    tile = f"CAST(window({column}, '{durations[1].name}').start AS TIMESTAMP)"
    first = -length if value.this.expression.name.lower() == "end" else 0
    return Hops(tile, first, each=step, count=-(-length // step))


def _micros(duration: exp.Expr) -> int:
    """How long a duration is, in microseconds; 0 where that is not known."""
    found = _DURATION.fullmatch(duration.name) if isinstance(duration, exp.Literal) and duration.is_string else None
    return int(found[1]) * _SECONDS[found[2].lower()] * 1_000_000 if found else 0


def _is_key(node: exp.Expr) -> bool:
    match node:
        case exp.Column():
            return True
        case exp.Paren():
            return _is_key(node.this)
        case exp.Cast():
            return _is_converted(node)
        case exp.Coalesce():
            filled = _are_of_kind(kind_of(node), node.expressions) and kind_of(node.this) == kind_of(node)
            return filled and _is_key(node.this) and len(_aliases(node)) == 1
        case exp.Case():
            return _is_chosen(node)
        case _:
            taken, given = FORMS.get(type(node), (frozenset[str](), ""))
            return given != "" and _is_called(node, taken) and _kind(node) == given


def _are_of_kind(kind: str, values: Sequence[exp.Expr]) -> bool:
    """Whether values are texts, or whole numbers, as `kind` says: columns and constants."""
    return kind in _TEXT | _WHOLE and all(
        isinstance(each, exp.Null) or (kind_of(each) == kind and _is_plain(each)) for each in values
    )


def _is_plain(value: exp.Expr) -> bool:
    """Whether a value is a column, or a constant that is written in one way."""
    return isinstance(value, exp.Column) or (isinstance(value, exp.Literal) and _ESCAPED not in value.meta)


def _is_chosen(case: exp.Case) -> bool:
    """Whether conditions on columns of one source choose one of several constants or columns."""
    branches = [each for each in case.args.get("ifs") or [] if isinstance(each, exp.If)]
    given = [*(each.args["true"] for each in branches), *filter(None, [case.args.get("default")])]
    if case.this is not None:
        compared = [exp.EQ(this=case.this, expression=each.this) for each in branches]
    else:
        compared = [each.this for each in branches]
    return len(_aliases(case)) == 1 and _are_of_kind(kind_of(case), given) and all(map(_is_asked, compared))


def _is_asked(condition: exp.Expr) -> bool:
    """Whether a condition compares columns with values of their kind, which raises no error."""
    match condition:
        case exp.Paren() | exp.Not():
            return _is_asked(condition.this)
        case exp.And() | exp.Or():
            return _is_asked(condition.left) and _is_asked(condition.right)
        case exp.Is():
            return isinstance(condition.this, exp.Column) and isinstance(condition.expression, exp.Null)
        case exp.In():
            values = [condition.this, *condition.expressions]
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            values = [condition.left, condition.right]
        case _:
            return False
    # Spark pads what is compared with a CHAR, where it knows that it is one.
    plain = all(_is_plain(each) and not (isinstance(each, exp.Column) and each.is_type("char")) for each in values)
    kinds = {"NUMBER" if each.is_type(*exp.DataType.NUMERIC_TYPES) else kind_of(each) for each in values}
    return plain and len(values) > 1 and kinds in ({"NUMBER"}, {"STRING"})


def _is_converted(node: exp.Cast) -> bool:
    if _is_window_bound(node.this):
        return kind_of(node) in TIMES
    to = node.args["to"]
    # Integers are converted to the widest type alone: others may be too small.
    fits = kind_of(node) != "INTEGER" or to.this == exp.DataType.Type.BIGINT
    plain = not any(node.args.get(name) for name in ("format", "default", "action"))
    return fits and plain and _is_key(node.this) and _kind(node.this) in _CASTS.get(kind_of(node), ())


def _kind(node: exp.Expr) -> str:
    """The kind of a value. Of times that are cut it is told by a cast around the call (`are_typed`)."""
    return FORMS[type(node)][1] if isinstance(node, exp.DateTrunc | exp.TimestampTrunc) else kind_of(node)


def _is_window_bound(node: exp.Expr) -> bool:
    """Whether this is the start or the end of the only window of time that a moment is in."""
    call = node.this
    if not isinstance(node, exp.Dot) or not isinstance(call, exp.Anonymous) or call.name.lower() != "window":
        return False
    match call.expressions:
        case [exp.Column() as at, exp.Literal(is_string=True)]:
            return kind_of(at) in TIMES
        case _:
            return False


def _is_called(node: exp.Expr, taken: frozenset[str]) -> bool:
    """Whether a function is called with a key of one of the kinds `taken` and constants that it accepts."""
    others = [each for each in node.iter_expressions() if each is not node.this]
    # A time that is formatted has a conversion around it, which changes nothing but texts.
    value = node.this.this if isinstance(node.this, exp.TimeStrToTime) else node.this
    if kind_of(value) not in taken or not _is_key(value) or _OTHER_UNIT in node.meta:
        return False
    if not all(isinstance(each, exp.Var) or (isinstance(each, exp.Literal) and _is_plain(each)) for each in others):
        return False
    if isinstance(node, exp.TimeToStr):
        return _FORMAT.fullmatch(node.sql("spark").rpartition(", ")[2].strip("')")) is not None
    if isinstance(node, exp.Mod | exp.IntDiv):
        return not others[0].is_string and others[0].name.isdecimal() and int(others[0].name) > 0
    return not isinstance(node, exp.TsOrDsToDate) or not others


def _aliases(node: exp.Expr) -> set[str]:
    return {column.table for column in all_of(node, exp.Column)}


@dataclass(frozen=True)
class ComputedKeys:
    """The expressions by which parts of a tree compare rows: the node of each spelling; the `inner` spelling of those
    over a subquery's columns, over the columns of its sources; and how rows have several values of some (`hops`)."""

    nodes: Mapping[str, exp.Expr] = field(default_factory=dict)
    inner: Mapping[str, str] = field(default_factory=dict)
    hops: Mapping[str, Hops] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: exp.Expr, *, several: bool = False) -> "ComputedKeys":
        """Those of a tree whose types are known; also those of which rows have `several` values."""

        def fits(node: exp.Expr) -> bool:
            return is_computed(node) or (several and hops_of(node) is not None)

        subqueries = {
            source.alias_or_name: unwrapped(source.this)
            for select in all_of(tree, exp.Select)
            for source in sources_of(select)
            if isinstance(source, exp.Subquery)
        }
        left = {spelled_node(each): each.unalias() for each in _compared(tree) if fits(each)}
        nodes: dict[str, exp.Expr] = {}
        inner: dict[str, str] = {}
        while left:
            spelled, node = left.popitem()
            nodes[spelled] = node
            (alias,) = _aliases(node)
            within = _within(node, subqueries.get(alias))
            if within is not None and fits(within):
                inner[spelled] = spelled_node(within)
                if inner[spelled] not in nodes:
                    left[inner[spelled]] = within
        hops = {spelled: hops_of(node) for spelled, node in nodes.items()} if several else {}
        return cls(nodes, inner, {spelled: each for spelled, each in hops.items() if each is not None})

    def alias(self, spelled: str) -> str:
        """The alias of the source of a column or expression, spelled as before its columns."""
        if spelled not in self.nodes:
            return spelled.rpartition(".")[0]
        return next(spelled_node(column).rpartition(".")[0] for column in all_of(self.nodes[spelled], exp.Column))

    def over_rows(self, spelled: str) -> str:
        """SQL for an expression over the rows of its source."""
        return _named(self.nodes[spelled], lambda column: exp.column(exp.to_identifier(column.name, quoted=True)))

    def as_written(self, spelled: str) -> str:
        """SQL for an expression with the user's own names of sources."""

        def column(node: exp.Column) -> exp.Column:
            alias, _ = alias_of(f"{node.table}.")
            return exp.column(exp.to_identifier(node.name, quoted=True), exp.to_identifier(alias, quoted=True))

        return _named(self.nodes[spelled], column)

    def outer(self, alias: str, carriers: frozenset[str]) -> frozenset[str]:
        """The expressions over a subquery's columns whose inner spelling is a carrier of what it gives."""
        return frozenset(each for each, inner in self.inner.items() if inner in carriers and self.alias(each) == alias)

    def of_one_value(self, carriers: frozenset[str]) -> frozenset[str]:
        """The carriers of which each row has one value."""
        return carriers - self.hops.keys()

    def kept(self, carriers: Iterable[str], equal: Mapping[str, exp.Expr]) -> frozenset[str]:
        """The carriers of which rows have one value that are `equal` in these expressions, by their spelling."""
        return frozenset(
            each for each in carriers if each in equal or (each in self.nodes and _follows(self.nodes[each], equal))
        )


def _follows(node: exp.Expr, equal: Mapping[str, exp.Expr]) -> bool:
    """Whether an expression has one value where others are equal."""
    if spelled_node(node) in equal:
        return True
    if isinstance(node, exp.Column):
        return False
    return all(_follows(each, equal) for each in node.iter_expressions() if each.find(exp.Column))


def _compared(tree: exp.Expr) -> Iterator[exp.Expr]:
    """What a query compares rows by, or gives to one that does."""
    for select in all_of(tree, exp.Select):
        yield from select.expressions
        yield from (select.args.get("group") or exp.Group()).expressions
    for window in all_of(tree, exp.Window):
        yield from window.args.get("partition_by") or []
    for equal in all_of(tree, exp.EQ, exp.NullSafeEQ):
        yield from (equal.left.unnest(), equal.right.unnest())
    for among in all_of(tree, exp.In):
        yield among.this


def _within(node: exp.Expr, query: exp.Expr | None) -> exp.Expr | None:
    """An expression over the columns of a subquery, over the columns of its sources."""
    if not isinstance(query, exp.Select):
        return None
    given = {each.alias_or_name: each.unalias() for each in query.expressions}
    if not all(column.name in given for column in all_of(node, exp.Column)):
        return None

    def inner(each: exp.Expr) -> exp.Expr:
        if not isinstance(each, exp.Column):
            return each
        found = given[each.name]
        if isinstance(found, exp.Column):
            return found.copy()
        around = exp.Paren(this=found.copy())
        around.type = found.type
        return around

    return node.transform(inner)


def _named(node: exp.Expr, name: Callable[[exp.Column], exp.Expr]) -> str:
    return node.transform(lambda each: name(each) if isinstance(each, exp.Column) else each).sql("spark")
