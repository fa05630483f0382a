"""Parameters of a query: subqueries that give one value, and have to do with no row around them.

As long as the value of `(SELECT max(x) FROM b)` stays the same, changes of `b` mean nothing there: the other places of the
query, also those that name `b`, follow their changes as if the subquery were a constant.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import Token, TokenType, exp

from backfill_assets.errors import QueryError
from backfill_assets.query.nodes import all_of
from backfill_assets.query.occurrences import Occurrence, bound
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.resolved import OCCURRENCE, sources_of

__all__ = ["Parameter", "parameters"]

_AROUND: Final = (exp.Alias, exp.Between, exp.Binary, exp.Case, exp.Cast, exp.Coalesce, exp.If, exp.Neg, exp.Paren)
"""What a subquery for one value may be an operand of."""


@dataclass(frozen=True)
class Parameter:
    """A subquery for one value, which reads the occurrences `places` of a query: its text with `{occurrence_<n>}`."""

    places: frozenset[int]
    template: str = field(repr=False)


def parameters(
    query: str, tokens: Sequence[Token], root: exp.Expr, tree: exp.Expr, found: Sequence[Occurrence]
) -> tuple[Parameter, ...]:
    """The parameters of a query, none within another one. `tree` is the query for analysis (`resolved`).

    Example:
        >>> from backfill_assets.query.ddl import parse_schema
        >>> from backfill_assets.query.occurrences import occurrences
        >>> from backfill_assets.query.resolved import resolved
        >>> text = "SELECT x FROM a WHERE x > (SELECT max(x) FROM b)"
        >>> root = parse(text, tokenize(text))
        >>> found = occurrences(root, ["a", "b"])
        >>> tree = resolved(root, found, dict.fromkeys("ab", parse_schema("x INT")))
        >>> [each.template for each in parameters(text, tokenize(text), root, tree, found)]
        ['SELECT max(x) FROM {occurrence_1} AS `b`']
    """
    numbers = {each.start: at for at, each in enumerate(found)}
    chosen: list[Parameter] = []
    for node in (each for each in all_of(root, exp.Subquery) if isinstance(each.parent, _AROUND)):
        places = _places_named(node, numbers)
        is_within = any(places <= each.places for each in chosen)
        if places and not is_within and _is_alone(tree, places):
            template = _template(query, tokens, node, [(at, found[at]) for at in sorted(places)])
            chosen += [Parameter(places, template)] if template else []
    return tuple(chosen)


def _places_named(node: exp.Expr, numbers: Mapping[int, int]) -> frozenset[int]:
    """The occurrences within a node; none where it names a table that is no occurrence, such as one of WITH."""
    tables = (table for table in all_of(node, exp.Table) if isinstance(table.this, exp.Identifier))
    places = frozenset(numbers.get(int(table.parts[0].meta.get("start", -1)), -1) for table in tables)
    return frozenset() if -1 in places else places


def _is_alone(tree: exp.Expr, places: frozenset[int]) -> bool:
    """Whether occurrences are read in subqueries that name no column from around them."""
    inside = [node for node in all_of(tree, exp.Subquery) if _places_in(node) == places]
    return bool(inside) and not any(map(_looks_out, inside))


def _places_in(node: exp.Expr) -> frozenset[int]:
    return frozenset(table.meta[OCCURRENCE] for table in all_of(node, exp.Table) if OCCURRENCE in table.meta)


def _looks_out(node: exp.Expr) -> bool:
    """Whether a subquery names a column of a source that is not its own; or one of which that cannot be told."""
    own = {source.alias_or_name for select in all_of(node, exp.Select) for source in sources_of(select)}
    return any(column.table not in own for column in all_of(node, exp.Column))


def _template(query: str, tokens: Sequence[Token], node: exp.Subquery, held: Sequence[tuple[int, Occurrence]]) -> str:
    """The text of a subquery with these occurrences; empty where it is not found in the text."""
    starts = [each.start for _, each in held]
    for first, last in _brackets(tokens):
        text = query[first:last]
        if first <= min(starts) and max(starts) < last and _is_text_of(node.this, text):
            moved = [replace(each, start=each.start - first, end=each.end - first) for _, each in held]
            return bound(text, moved, lambda at: f"{{occurrence_{held[at][0]}}}", escape=True)
    return ""


def _brackets(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """From where to where the text inside of each pair of brackets goes, inner pairs first."""
    opened: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.L_PAREN:
            opened.append(token)
        elif token.token_type == TokenType.R_PAREN:
            yield opened.pop().end + 1, token.start


def _is_text_of(node: exp.Expr, text: str) -> bool:
    try:
        return bool(parse(text, tokenize(text)) == node)
    except QueryError:
        return False
