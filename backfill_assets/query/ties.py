"""Makes orders total if the result depends on which of several equal rows comes first: LIMIT, row_number(), ROWS
frames.

All columns of its rows are added to the `ORDER BY` of a window (the expressions of GROUP BY, where its rows are groups), and
all columns of the result to that of a `LIMIT`. Rows that are equal in all of these are interchangeable. The completed text
is the query: users see it in `plan`, it is computed, and proofs compare with it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import Token, TokenType, exp

from backfill_assets.query.functions import TABLE_FUNCTIONS
from backfill_assets.query.group_order import order_of_groups
from backfill_assets.query.partition import has_aggregates
from backfill_assets.query.refusals import place, refusal

__all__ = ["completed"]

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

_ALL_COLUMNS: Final = "struct(*)"
_WRITE_WINDOW: Final = "write the window after OVER, with ORDER BY"
_FRAMES: Final = frozenset({TokenType.ROWS, TokenType.RANGE})
_BEFORE_COLUMNS: Final = frozenset({TokenType.ORDER_BY, TokenType.COMMA, TokenType.DOT})
_LIMITS: Final = frozenset({TokenType.LIMIT, TokenType.OFFSET})
_OPENS: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSES: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})


def completed(query: str, tokens: Sequence[Token], root: exp.Expr) -> str:
    """The query's text with total orders wherever it takes them. A text that is completed stays as it is.

    Errors: `QueryError` where an order cannot be completed.

    Example:
        >>> from sqlglot import parse_one
        >>> from sqlglot.dialects.spark import Spark
        >>> text = "SELECT a, b FROM t ORDER BY a LIMIT 2"
        >>> completed(text, Spark.Tokenizer().tokenize(text), parse_one(text, read="spark"))
        'SELECT a, b FROM t ORDER BY a, 1, 2 LIMIT 2'
    """
    added = dict([*_windows(query, tokens, root), *_limits(tokens, root)])
    text = query
    for at, more in sorted(added.items(), reverse=True):
        before = text[: at + 1]
        if not _squeezed(before).endswith(_squeezed(more)):
            text = f"{before}{more}{text[at + 1 :]}"
    return text


def _windows(query: str, tokens: Sequence[Token], root: exp.Expr) -> Iterator[tuple[int, str]]:
    """The position of the last character of a window's ORDER BY, and what is added after it."""
    if _names_frame_of_rows(root):
        raise _not_total("the query has a named window with a frame of ROWS", _WRITE_WINDOW)
    for over, token in enumerate(tokens):
        if token.token_type != TokenType.OVER:
            continue
        name, inside = _called(tokens, over), list(_inside(tokens, over + 1))
        if name not in _TAKES_ORDER and not any(tokens[at].token_type == TokenType.ROWS for at in inside):
            continue
        if not inside:
            raise _not_total(
                f"the query calls {name}() over a named window, or rows in no order{place(token)}", _WRITE_WINDOW
            )
        start = next((at for at in inside if tokens[at].token_type == TokenType.ORDER_BY), None)
        node = _window_between(root, tokens[inside[0]].start, tokens[inside[-1]].end)
        if start is None or node is None:
            raise _not_total(
                f"the query calls {name}(){place(token)} over rows in no order", "give the window an ORDER BY"
            )
        select = _checked_place(node, name)
        end = next((at for at in inside if at > start and _begins_frame(tokens, at)), inside[-1] + 1)
        if select is not None and select.args.get("group"):
            yield tokens[end - 1].end, order_of_groups(query, tokens, over)
        elif select is None or not _makes_one_group(select):
            yield tokens[end - 1].end, f", {_ALL_COLUMNS}"


def _begins_frame(tokens: Sequence[Token], at: int) -> bool:
    """Whether ROWS or RANGE is not the name of a column."""
    return tokens[at].token_type in _FRAMES and tokens[at - 1].token_type not in _BEFORE_COLUMNS


def _names_frame_of_rows(root: exp.Expr) -> bool:
    """Whether a window of the WINDOW clause has such a frame, which would apply to every function over it."""
    named = (each for select in root.find_all(exp.Select) for each in _listed(select.args.get("windows")))
    return any(
        str(each.args.get("kind")).upper() == "ROWS" for window in named for each in window.find_all(exp.WindowSpec)
    )


def _window_between(root: exp.Expr, start: int, end: int) -> exp.Expr | None:
    """The window whose names are all between two positions in the text."""
    for node in root.find_all(exp.Window):
        parts = [part for name in ("partition_by", "order") for part in _listed(node.args.get(name))]
        places = [at for part in parts for at in _places(part)]
        if places and start <= min(places) and max(places) <= end:
            return node
    return None


def _listed(found: object) -> list[exp.Expr]:
    some = found if isinstance(found, list) else [found]
    return [each for each in some if isinstance(each, exp.Expr)]


def _places(node: exp.Expr) -> list[int]:
    """The positions of the names in a part of the query, those of columns and of functions."""
    return [int(each.meta["start"]) for each in node.walk() if "start" in each.meta]


def _checked_place(node: exp.Expr, name: str) -> exp.Select | None:
    """The SELECT of a window. Errors: `QueryError` for a window in QUALIFY."""
    if node.find_ancestor(exp.Qualify) is not None:
        hint = "compute it over a subquery: SELECT … FROM (SELECT …, row_number() OVER (…) AS n FROM (…)) WHERE n = 1"
        raise _not_total(f"the query calls {name}() in QUALIFY, where its order cannot be completed", hint)
    return node.find_ancestor(exp.Select)


def _makes_one_group(select: exp.Select) -> bool:
    """Whether a SELECT without GROUP BY aggregates, and so gives one row, which has only one order."""
    return bool(select.args.get("having")) or any(map(has_aggregates, select.expressions))


def _limits(tokens: Sequence[Token], root: exp.Expr) -> Iterator[tuple[int, str]]:
    """The position of the last character of the ORDER BY before a LIMIT, and what is added after it."""
    queries = [node for node in root.find_all(exp.Query) if node.args.get("order")]
    if any(
        not node.args.get("order") and not _gives_one(node) for node in root.find_all(exp.Query) if _is_limited(node)
    ):
        raise _not_total("the query has LIMIT without ORDER BY", "say which rows come first: ORDER BY … LIMIT n")
    windows = {
        at
        for index, token in enumerate(tokens)
        if token.token_type == TokenType.OVER
        for at in _inside(tokens, index + 1)
    }
    found = [
        index
        for index, token in enumerate(tokens)
        if token.token_type == TokenType.ORDER_BY and index not in windows and not _within(tokens, index)
    ]
    if len(queries) != len(found) and any(map(_is_limited, queries)):
        raise _not_total("the query's ORDER BY clauses cannot be distinguished", _WRITE_WINDOW)
    for node, start in zip(sorted(queries, key=_before_order), found, strict=False):
        if _is_limited(node):
            if any(isinstance(each.this, exp.Var) for each in node.args["order"].expressions):
                raise _not_total(
                    "the query has LIMIT after ORDER BY ALL", "name the columns one by one: ORDER BY 1, 2 …"
                )
            yield tokens[_end_of_order(tokens, start)].end, _ordinals(node)


def _is_limited(node: exp.Expr) -> bool:
    return bool(node.args.get("limit") or node.args.get("offset"))


def _gives_one(node: exp.Expr) -> bool:
    """Whether a query without GROUP BY gives one row, or is only asked for whether there is one, before LIMIT."""
    limit = node.args.get("limit")
    is_asked = isinstance(node.parent, exp.Exists) and not node.args.get("offset")
    if is_asked and limit is not None and isinstance(limit.expression, exp.Literal) and limit.expression.this != "0":
        return True
    return isinstance(node, exp.Select) and not node.args.get("group") and _makes_one_group(node)


def _before_order(node: exp.Expr) -> tuple[int, int]:
    """The last expression in the text before a query's ORDER BY; of queries that end at the same position, the inner
    one first."""
    own = {
        id(each)
        for name in ("order", "limit", "offset")
        for part in _listed(node.args.get(name))
        for each in part.walk()
    }
    names = [each for each in node.find_all(exp.Identifier) if id(each) not in own and "start" in each.meta]
    return max((int(each.meta["start"]) for each in names), default=-1), -node.depth


def _ordinals(node: exp.Expr) -> str:
    items = list(node.selects) if isinstance(node, exp.Query) else []
    if not items or any(each.is_star for each in items):
        raise _not_total("the query has LIMIT over *", "name the columns one by one")
    if any(map(_gives_several, items)):
        raise _not_total(
            "the query has LIMIT over a function that may return several columns", "name its columns: AS (a, b)"
        )
    columns = sum(len(each.aliases) if isinstance(each, exp.Aliases) else 1 for each in items)
    return "".join(f", {at}" for at in range(1, columns + 1))


def _gives_several(item: exp.Expr) -> bool:
    called = item.unnest()
    if not isinstance(called, exp.Func):
        return False
    name = called.name if isinstance(called, exp.Anonymous) else called.sql_name()
    return name.lower() in TABLE_FUNCTIONS


def _within(tokens: Sequence[Token], index: int) -> bool:
    """Whether an ORDER BY belongs to WITHIN GROUP, or to a named window."""
    depth = 0
    for at in range(index - 1, -1, -1):
        depth += tokens[at].token_type in _CLOSES
        if tokens[at].token_type in _OPENS:
            if depth == 0:
                before = tokens[at - 1].text.lower() if at else ""
                return before in {"group", "within group", "as"} and not _begins_query(tokens, at + 1)
            depth -= 1
    return False


def _begins_query(tokens: Sequence[Token], at: int) -> bool:
    return tokens[at].token_type in {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN}


def _inside(tokens: Sequence[Token], opening: int) -> Iterator[int]:
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


def _end_of_order(tokens: Sequence[Token], start: int) -> int:
    """The last token of an ORDER BY: before LIMIT, OFFSET, a closing bracket or the end."""
    depth = 0
    for at in range(start + 1, len(tokens)):
        kind = tokens[at].token_type
        if depth == 0 and (kind in _LIMITS or kind in _CLOSES):
            return at - 1
        depth += (kind in _OPENS) - (kind in _CLOSES)
    return len(tokens) - 1


def _squeezed(text: str) -> str:
    return "".join(text.lower().split())


def _not_total(message: str, hint: str) -> Exception:
    return refusal("ORDER_NOT_TOTAL", f"{message}, so the result would depend on chance", hint=hint)
