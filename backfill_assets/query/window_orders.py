"""Makes the orders of windows total where a result depends on which of several equal rows comes first: `row_number()` and its
like, and frames of ROWS.

All columns of the rows are added to a window's `ORDER BY`; the expressions of GROUP BY, where its rows are groups. A window
that is named in the WINDOW clause is written out after OVER.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sqlglot import Token, TokenType, exp

from backfill_assets.query.group_order import order_of_groups
from backfill_assets.query.nodes import all_of
from backfill_assets.query.partition import has_aggregates
from backfill_assets.query.refusals import not_total, place
from backfill_assets.query.resolved import joins_of, merges
from backfill_assets.query.row_columns import RowColumns
from backfill_assets.query.used_columns import used_columns

__all__ = ["Edit", "begins_query", "inside_brackets", "listed", "makes_one_group", "orders_of_windows"]

_OF_FRAMES: Final = frozenset({"any_value", "first", "first_value", "last", "last_value", "nth_value"})
"""Window functions that give the value of one row of the frame."""
_FIRST: Final = frozenset({"any_value", "first", "first_value"})
_TAKES_ORDER: Final = _OF_FRAMES | {"lag", "lead", "ntile", "row_number"}
"""Window functions whose result depends on the order of rows that are equal by ORDER BY."""

_ALL_COLUMNS: Final = ", struct(*)"
_FRAMES: Final = frozenset({TokenType.ROWS, TokenType.RANGE})
_ORDERS: Final = frozenset({TokenType.ORDER_BY, TokenType.SORT_BY})
"""Words before the order of a window, which mean the same there."""
_BEFORE_COLUMNS: Final = _ORDERS | {TokenType.COMMA, TokenType.DOT}
_AFTER_OVER: Final = frozenset({TokenType.IDENTIFIER, TokenType.L_PAREN, TokenType.VAR})
_OPENS: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSES: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})
_ALL_ROWS: Final = "rows between unbounded preceding and unbounded following"


class Edit(NamedTuple):
    """New `text` for what is in a query from `start` to before `end`, also instead of the text `before` it that was put there
    while types were not known."""

    start: int
    end: int
    text: str
    before: str = ""


class _Window(NamedTuple):
    """A window: the function that is called over it, the place of OVER, how many tokens after that name it, if it is defined
    in the WINDOW clause, the tokens inside of its brackets, and how sqlglot has read it."""

    function: str
    over: int
    name: int
    inside: Sequence[int]
    node: exp.Window | None


def orders_of_windows(query: str, tokens: Sequence[Token], root: exp.Expr, rows: RowColumns | None) -> Iterator[Edit]:
    """What is added to the windows of a query. Without `rows`, the columns of its tables, those in QUALIFY stay as they are.

    Errors: `QueryError` where an order cannot be completed.
    """
    windows = [_window(tokens, root, at) for at in _windows(tokens)]
    ends = {window.over: _last_of_order(tokens, window.inside) for window in windows}
    used = _without(tokens, [last for last in ends.values() if last is not None])
    for window in windows:
        last, more = ends[window.over], ""
        if not _is_of_one_group(window.node) and _takes_order(tokens, window):
            if last is None or window.node is None:
                raise not_total(
                    f"the query calls {window.function}() over rows in no order{place(tokens[window.over])}",
                    "write the window after OVER, with ORDER BY",
                )
            more = _columns(query, tokens, window, used, rows)
        if more and last is not None:
            yield _edit(query, tokens, window, last, more)
        elif window.name and window.inside:
            yield _edit(query, tokens, window, window.inside[-1], "")


def _windows(tokens: Sequence[Token]) -> list[int]:
    """The places of OVER, where that is no name of a column."""
    return [
        at
        for at in range(1, len(tokens) - 1)
        if tokens[at].token_type == TokenType.OVER
        and (tokens[at - 1].token_type == TokenType.R_PAREN or tokens[at - 1].text.lower() == "nulls")
        and tokens[at + 1].token_type in _AFTER_OVER
    ]


def _window(tokens: Sequence[Token], root: exp.Expr, over: int) -> _Window:
    function, inside = _called(tokens, over), list(inside_brackets(tokens, over + 1))
    if len(inside) > 1:
        return _Window(function, over, 0, inside, _node(tokens, root, inside))
    at = inside[0] if inside else over + 1
    node = next((each for each in all_of(root, exp.Window) if _begins_at(each.args.get("alias"), tokens[at])), None)
    return _Window(function, over, 1 + 2 * len(inside), _defined(tokens, node), node)


def _takes_order(tokens: Sequence[Token], window: _Window) -> bool:
    """Whether the result depends on which of equal rows comes first.

    Errors: `QueryError` where it depends on rows that ORDER BY does not tell apart, and more columns would change the frame.
    """
    frame = " ".join(tokens[at].text.lower() for at in _frame(tokens, window.inside))
    if window.function in _OF_FRAMES and not frame.startswith("rows"):
        if _is_told_by_order(window.node):
            return False
        if window.function in _FIRST and not frame and not _looks_past_nulls(window.node):
            return True  # the first row of all: the frame's end has no part in it
        raise not_total(
            f"the query calls {window.function}(){place(tokens[window.over])} over a frame that ends with rows which are "
            "equal by ORDER BY",
            "write a frame of rows, such as ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        )
    return window.function in _TAKES_ORDER or (frame.startswith("rows") and frame != _ALL_ROWS)


def _is_of_one_group(node: exp.Window | None) -> bool:
    """Whether a window has one row: the group of a SELECT that aggregates without GROUP BY."""
    select = None if node is None else node.find_ancestor(exp.Select)
    return select is not None and not select.args.get("group") and makes_one_group(select)


def _is_told_by_order(node: exp.Window | None) -> bool:
    """Whether a function takes values that are the same in all rows which are equal by the window's ORDER BY; without one,
    all rows of a partition are equal."""
    if node is None:
        return False
    order = node.args.get("order")
    by = order.expressions if isinstance(order, exp.Order) else []
    same = [*(each.this for each in by), *listed(node.args.get("partition_by"))]
    called = node.this
    while isinstance(called, exp.IgnoreNulls | exp.RespectNulls):
        called = called.this
    return called.this in same


def _looks_past_nulls(node: exp.Window | None) -> bool:
    return node is None or node.find(exp.IgnoreNulls) is not None or len(list(node.this.iter_expressions())) > 1


def _frame(tokens: Sequence[Token], inside: Sequence[int]) -> Sequence[int]:
    """The tokens of a window's frame, at the end of it."""
    start = next((at for at, depth in _own(tokens, inside) if not depth and _begins_frame(tokens, at)), None)
    return [] if start is None else [at for at in inside if at >= start]


def _last_of_order(tokens: Sequence[Token], inside: Sequence[int]) -> int | None:
    """The last token of the ORDER BY of a window; None if it has none."""
    orders = (at for at, depth in _own(tokens, inside) if not depth and tokens[at].token_type in _ORDERS)
    frame = _frame(tokens, inside)
    return None if next(orders, None) is None else (frame[0] if frame else inside[-1] + 1) - 1


def _own(tokens: Sequence[Token], inside: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The tokens of a window, each with the number of brackets around it there."""
    depth = 0
    for at in inside:
        depth -= tokens[at].token_type in _CLOSES
        yield at, depth
        depth += tokens[at].token_type in _OPENS


def _defined(tokens: Sequence[Token], node: exp.Window | None) -> list[int]:
    """The tokens inside of the brackets of the window that is meant by a name, which may be that of another one; none if it
    is not found."""
    select = None if node is None else node.find_ancestor(exp.Select)
    named = {each.name: each for each in listed(select.args.get("windows"))} if select is not None else {}
    name = "" if node is None else node.args["alias"].name
    seen: set[str] = set()
    while name in named and name not in seen and isinstance(named[name].args.get("alias"), exp.Identifier):
        seen.add(name)
        name = named[name].args["alias"].name
    found = (at for at in range(len(tokens) - 2) if name in named and _begins_at(named[name].this, tokens[at]))
    return list(inside_brackets(tokens, next(found, len(tokens)) + 2))


def _begins_at(node: object, token: Token) -> bool:
    return isinstance(node, exp.Expr) and node.meta.get("start") == token.start


def _node(tokens: Sequence[Token], root: exp.Expr, inside: Sequence[int]) -> exp.Window | None:
    """The window as sqlglot has read it."""
    start, end = tokens[inside[0]].start, tokens[inside[-1]].end
    for node in all_of(root, exp.Window):
        parts = [part for name in ("partition_by", "order") for part in listed(node.args.get(name))]
        places = [int(each.meta["start"]) for part in parts for each in part.walk() if "start" in each.meta]
        if places and start <= min(places) and max(places) <= end:
            return node
    return None


def _columns(
    query: str, tokens: Sequence[Token], window: _Window, used: Sequence[Token], rows: RowColumns | None
) -> str:
    """What tells the rows of a window apart, as it is added to its ORDER BY; empty where that has to wait for `rows`."""
    select = None if window.node is None else window.node.find_ancestor(exp.Select)
    if window.node is None or select is None:
        raise not_total(
            f"the query calls {window.function}() in the ORDER BY of a set operation{place(tokens[window.over])}",
            "compute it in a subquery: SELECT …, row_number() OVER (…) AS n FROM (… UNION ALL …)",
        )
    seen = () if rows is None else rows.seen(select)
    if select.args.get("group"):
        return order_of_groups(query, tokens, window.over, None if rows is None else {each.name for each in seen})
    is_listed = window.node.find_ancestor(exp.Qualify, exp.Select) is select
    if is_listed and not any(each.is_unordered for each in seen) and not (seen and _merges(select)):
        return _ALL_COLUMNS
    if rows is not None and not seen:
        raise not_total(
            f"the columns of the rows of a window in QUALIFY{place(tokens[window.over])} are not known",
            "compute it over a subquery: SELECT … FROM (SELECT …, row_number() OVER (…) AS n FROM (…)) WHERE n = 1",
        )
    names = used_columns(used, [each.name for each in seen])
    return "".join(f", {each.in_order}" for each in seen if each.name in names)


def _merges(select: exp.Select) -> bool:
    """Whether `*` has one column for two by which tables are joined, whose values may differ: 1 and '01' are equal."""
    return any(map(merges, joins_of(select)))


def _without(tokens: Sequence[Token], ends: Sequence[int]) -> list[Token]:
    """The tokens without each `struct(*)` that ends at one of these."""
    added = {
        at
        for last in ends
        if [each.text.lower() for each in tokens[last - 3 : last + 1]] == ["struct", "(", "*", ")"]
        for at in range(last - 3, last + 1)
    }
    return [token for at, token in enumerate(tokens) if at not in added]


def _edit(query: str, tokens: Sequence[Token], window: _Window, last: int, more: str) -> Edit:
    """The window with more columns after a token; in brackets of its own, if it has only a name there."""
    if not window.name:
        return Edit(tokens[last].end + 1, tokens[last].end + 1, more, _ALL_COLUMNS)
    first, end = tokens[window.inside[0]].start, tokens[window.inside[-1]].end + 1
    at = tokens[last].end + 1
    written = f"({query[first:at]}{more}{query[at:end]})"
    return Edit(tokens[window.over + 1].start, tokens[window.over + window.name].end + 1, written)


def _begins_frame(tokens: Sequence[Token], at: int) -> bool:
    """Whether ROWS or RANGE is not the name of a column."""
    return tokens[at].token_type in _FRAMES and tokens[at - 1].token_type not in _BEFORE_COLUMNS


def makes_one_group(select: exp.Select) -> bool:
    """Whether a SELECT without GROUP BY aggregates, and so gives one row, which has only one order."""
    return bool(select.args.get("having")) or any(map(has_aggregates, select.expressions))


def listed(found: object) -> list[exp.Expr]:
    """The expressions that sqlglot has in an argument."""
    some = found if isinstance(found, list) else [found]
    return [each for each in some if isinstance(each, exp.Expr)]


def begins_query(tokens: Sequence[Token], at: int) -> bool:
    """Whether a query begins at a token, or an expression in brackets."""
    return tokens[at].token_type in {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN}


def inside_brackets(tokens: Sequence[Token], opening: int) -> Iterator[int]:
    """The tokens between a parenthesis and its partner; none if there is no parenthesis."""
    if opening >= len(tokens) or tokens[opening].token_type != TokenType.L_PAREN:
        return
    depth = 0
    for at in range(opening + 1, len(tokens)):
        if tokens[at].token_type in _CLOSES:
            if depth == 0:
                return
            depth -= 1
        yield at
        depth += tokens[at].token_type in _OPENS


def _called(tokens: Sequence[Token], over: int) -> str:
    """The function of a window: the word before the parentheses before OVER, ignoring FILTER."""
    at, depth = over - 1, 0
    while at >= 0 and tokens[at].token_type != TokenType.R_PAREN:
        at -= 1  # IGNORE NULLS
    while at > 0:
        depth += tokens[at].token_type in _CLOSES
        depth -= tokens[at].token_type in _OPENS
        if depth == 0 and tokens[at].token_type == TokenType.L_PAREN:
            name = tokens[at - 1].text.lower()
            if name != "filter":
                return name
            return _called(tokens, at - 1)
        at -= 1
    return ""
