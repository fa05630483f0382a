"""By which tables the columns of a pipeline can be named (`t.a`), and a check that they are by no others."""

from collections.abc import Sequence

from sqlglot import Token, TokenType, exp

from backfill_assets.errors import QueryError
from backfill_assets.query.nodes import all_of
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.refusals import place, refusal
from backfill_assets.query.spelling import sliced

__all__ = ["check_names", "names_of"]


def names_of(source: str) -> frozenset[str]:
    """All words in lower case by which a column of what FROM reads may be named; too many rather than too few.

    Example:
        >>> sorted(names_of("lake.orders AS o JOIN (SELECT * FROM u) AS `V`"))
        ['lake', 'o', 'orders', 'u', 'v']
    """
    text = f"SELECT * FROM {source}"
    found = _names_in(text)
    return frozenset(each.text.lower() for each in tokenize(text)) if found is None else found


def check_names(query: str, operator: Sequence[Token], lost: frozenset[str]) -> None:
    """Check that an operator names no column by a table whose name its columns do not have any more. A subquery that reads a
    table of this name means its own. Errors: `QueryError`."""
    opened: list[int] = []
    for at, token in enumerate(operator[:-1]):
        if token.token_type == TokenType.L_PAREN:
            opened.append(at)
        elif token.token_type == TokenType.R_PAREN and opened:
            opened.pop()
        is_first = not at or operator[at - 1].token_type != TokenType.DOT
        name = token.text.lower()
        if operator[at + 1].token_type != TokenType.DOT or not is_first or name not in lost:
            continue
        if not any(name in _read_inside(query, operator, start) for start in opened):
            raise refusal(
                "UNSUPPORTED",
                f"the query names a column by {token.text!r}{place(token)}, and what |> gives is of no such table",
                hint=f"name the column alone, without {token.text}; or give all columns a name before: |> AS {token.text}",
            )


def _read_inside(query: str, operator: Sequence[Token], start: int) -> frozenset[str]:
    """What the subquery in a pair of brackets reads; nothing if there is none in them."""
    depth = 0
    for at in range(start, len(operator)):
        kind = operator[at].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if not depth:
            inside = operator[start + 1 : at]
            is_query = bool(inside) and inside[0].token_type in {TokenType.SELECT, TokenType.WITH}
            return (_names_in(sliced(query, inside)) if is_query else None) or frozenset()
    return frozenset()


def _names_in(text: str) -> frozenset[str] | None:
    """The names of all tables in a query; None if it cannot be read alone."""
    try:
        root = parse(text, tokenize(text))
    except QueryError:
        return None
    tables = {part.name.lower() for table in all_of(root, exp.Table) for part in table.parts}
    return frozenset(tables | {alias.name.lower() for alias in all_of(root, exp.TableAlias)})
