"""Makes the orders of windows total where a result depends on which of several equal rows comes first: `row_number()` and its
like, and frames of ROWS.

All columns of the rows are added to a window's `ORDER BY`; the expressions of GROUP BY, where its rows are groups. A window
that is named in the WINDOW clause is written out where such a function is called over it.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sqlglot import Token, TokenType, exp

from backfill_assets.query.group_order import order_of_groups
from backfill_assets.query.partition import has_aggregates
from backfill_assets.query.refusals import not_total, place
from backfill_assets.query.row_columns import RowColumns
from backfill_assets.query.used_columns import used_columns

__all__ = ["Edit", "begins_query", "inside_brackets", "listed", "makes_one_group", "orders_of_windows"]

_TAKES_ORDER: Final = frozenset({
    "any_value",
    "first",
    "first_value",
    "lag",
    "last",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "row_number",
})
"""Window functions whose result depends on the order of rows that are equal by ORDER BY."""

_ALL_COLUMNS: Final = ", struct(*)"
_FRAMES: Final = frozenset({TokenType.ROWS, TokenType.RANGE})
_BEFORE_COLUMNS: Final = frozenset({TokenType.ORDER_BY, TokenType.COMMA, TokenType.DOT})
_AFTER_OVER: Final = frozenset({TokenType.IDENTIFIER, TokenType.L_PAREN, TokenType.VAR})
_BEFORE_NAMES: Final = frozenset({TokenType.WINDOW, TokenType.COMMA})
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
    in the WINDOW clause, the tokens inside of its brackets, and whether the result depends on which of equal rows comes
    first."""

    function: str
    over: int
    name: int
    inside: Sequence[int]
    takes_order: bool


def orders_of_windows(query: str, tokens: Sequence[Token], root: exp.Expr, rows: RowColumns | None) -> Iterator[Edit]:
    """What is added to the windows of a query. Without `rows`, the columns of its tables, those in QUALIFY stay as they are.

    Errors: `QueryError` where an order cannot be completed.
    """
    for over in _windows(tokens):
        window = _window(tokens, over)
        if window.takes_order:
            last, more = _completion(query, tokens, root, window, rows)
            if more:
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


def _window(tokens: Sequence[Token], over: int) -> _Window:
    function, name = _called(tokens, over), 0
    inside = list(inside_brackets(tokens, over + 1))
    if len(inside) < 2:
        name = 1 + 2 * len(inside)
        inside = _defined(tokens, tokens[inside[0] if inside else over + 1].text)
    frame = [at for at in inside if _begins_frame(tokens, at)]
    words = " ".join(tokens[at].text.lower() for at in inside if frame and at >= frame[0])
    takes_order = function in _TAKES_ORDER or (words.startswith("rows") and words != _ALL_ROWS)
    return _Window(function, over, name, inside, takes_order)


def _completion(
    query: str, tokens: Sequence[Token], root: exp.Expr, window: _Window, rows: RowColumns | None
) -> tuple[int, str]:
    """The last token of a window's ORDER BY, and what is added after it."""
    last, node = _last_of_order(tokens, window.inside), _node(tokens, root, window)
    if last is None or node is None:
        raise not_total(
            f"the query calls {window.function}() over rows in no order{place(tokens[window.over])}",
            "write the window after OVER, with ORDER BY",
        )
    return last, _columns(query, tokens, window.over, node, rows)


def _last_of_order(tokens: Sequence[Token], inside: Sequence[int]) -> int | None:
    """The last token of the ORDER BY of a window; None if it has none."""
    start = next((at for at in inside if tokens[at].token_type == TokenType.ORDER_BY), None)
    if start is None:
        return None
    return next((at for at in inside if at > start and _begins_frame(tokens, at)), inside[-1] + 1) - 1


def _defined(tokens: Sequence[Token], name: str) -> list[int]:
    """The tokens inside of the brackets of a window that the query names; none if it is not found, or twice."""
    found = [
        at + 2
        for at in range(1, len(tokens) - 3)
        if tokens[at - 1].token_type in _BEFORE_NAMES
        and tokens[at].text.lower() == name.lower()
        and tokens[at + 1].token_type == TokenType.ALIAS
        and not begins_query(tokens, at + 3)
    ]
    return list(inside_brackets(tokens, found[0])) if len(found) == 1 else []


def _node(tokens: Sequence[Token], root: exp.Expr, window: _Window) -> exp.Expr | None:
    """The window as sqlglot has read it."""
    if window.name:
        at = tokens[window.over + (window.name > 1) + 1].start
        names = ((node, node.args.get("alias")) for node in root.find_all(exp.Window))
        return next((node for node, name in names if isinstance(name, exp.Expr) and name.meta.get("start") == at), None)
    start, end = tokens[window.inside[0]].start, tokens[window.inside[-1]].end
    for node in root.find_all(exp.Window):
        parts = [part for name in ("partition_by", "order") for part in listed(node.args.get(name))]
        places = [int(each.meta["start"]) for part in parts for each in part.walk() if "start" in each.meta]
        if places and start <= min(places) and max(places) <= end:
            return node
    return None


def _columns(query: str, tokens: Sequence[Token], over: int, node: exp.Expr, rows: RowColumns | None) -> str:
    """What tells the rows of a window apart, as it is added to its ORDER BY; empty where that has to wait for `rows`."""
    select = node.find_ancestor(exp.Select)
    if select is None:
        return ""
    if select.args.get("group"):
        return order_of_groups(query, tokens, over, None if rows is None else {each.name for each in rows.seen(select)})
    if makes_one_group(select):
        return ""
    seen = () if rows is None else rows.seen(select)
    is_listed = node.find_ancestor(exp.Qualify, exp.Select) is select
    if is_listed and not any(each.has_map for each in seen):
        return _ALL_COLUMNS
    if rows is not None and not seen:
        raise not_total(
            f"the columns of the rows of a window in QUALIFY{place(tokens[over])} are not known",
            "compute it over a subquery: SELECT … FROM (SELECT …, row_number() OVER (…) AS n FROM (…)) WHERE n = 1",
        )
    used = used_columns(_without_completions(tokens), [each.name for each in seen])
    return "".join(f", {each.in_order}" for each in seen if each.name in used)


def _without_completions(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without the `struct(*)` at the end of each window's ORDER BY."""
    windows = [_window(tokens, at).inside for at in _windows(tokens)]
    ends = [last for inside in windows if (last := _last_of_order(tokens, inside)) is not None]
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
