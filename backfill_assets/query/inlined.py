"""A query's text with the definitions of WITH in the places of their names. So does Spark read a deterministic query.

Each time that a table is read is a place of its own in this text, which can be bound to rows by itself. The text is not
rendered again: definitions are cut out of it and put where their names are.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from sqlglot import Token, TokenType, exp

from backfill_assets.errors import QueryError
from backfill_assets.query.nodes import all_of
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.spelling import backquoted
from backfill_assets.query.window_orders import inside_brackets

__all__ = ["inlined"]

_MOST: Final = 16
"""A text that gets so many times as long is left as it is: names that are read several times by such that are, too."""
_MOST_NAMES: Final = 64
"""So is one with more names: it is read once for each of them."""


class _Definition(NamedTuple):
    """A name of WITH in a text: the first and the last token of its definition, the text inside of its brackets, and the
    names of its columns with theirs."""

    first: int
    last: int
    body: str
    columns: str


@lru_cache(maxsize=256)
def inlined(query: str) -> str:
    """The query without WITH, and without definitions that nothing reads; as it is, where a definition is recursive, or is no
    query by itself, and where the text would get very long.

    Example:
        >>> inlined("WITH big AS (SELECT id FROM t WHERE n > 9) SELECT b.id FROM big AS b JOIN big USING (id)")
        'SELECT b.id FROM (SELECT id FROM t WHERE n > 9) AS b JOIN (SELECT id FROM t WHERE n > 9) AS `big` USING (id)'
    """
    text = query
    while "with" in text.lower():
        try:
            tokens = tokenize(text)
            root = parse(text, tokens)
        except QueryError:
            if text == query:
                raise
            return query
        clauses = all_of(root, exp.With)
        if not clauses:
            return text
        if sum(len(each.expressions) for each in clauses) > _MOST_NAMES:
            return query
        # The innermost first, so that no name in it can hide one that is moved there.
        clause = next(each for each in clauses if len(all_of(_query_of(each), exp.With)) == 1)
        less = None if clause.args.get("recursive") else _without_last(text, tokens, clause)
        if less is None or len(less) > _MOST * len(query):
            return query
        text = less
    return text


def _query_of(clause: exp.With) -> exp.Expr:
    assert clause.parent is not None
    return clause.parent


def _without_last(text: str, tokens: Sequence[Token], clause: exp.With) -> str | None:
    """The text with the last definition of a clause in the places of its name; None where that cannot be done.

    Only what comes after all definitions can name the last one, and nothing there hides what its own text names.
    """
    cte = clause.expressions[-1]
    definition = _definition(text, tokens, cte)
    named = (table for table in all_of(_query_of(clause), exp.Table) if _names(table, cte))
    places = [table for table in named if table.find_ancestor(exp.With) is not clause]
    is_query = isinstance(cte.this, exp.Select | exp.SetOperation)
    if definition is None or not is_query or not all(map(_is_located, places)):
        return None
    edits = [edit for table in places for edit in _put(table, definition)]
    edits.append(_taken_out(tokens, clause, definition))
    for start, end, new in sorted(edits, reverse=True):
        text = f"{text[:start]}{new}{text[end:]}"
    return text


def _is_located(table: exp.Table) -> bool:
    """Whether it is known where a name and its alias are in the text."""
    alias = table.args.get("alias")
    return all(
        isinstance(each, exp.Expr) and "start" in each.meta for each in (table.this, *([alias.this] if alias else []))
    )


def _names(table: exp.Table, cte: exp.CTE) -> bool:
    is_name = isinstance(table.this, exp.Identifier) and not table.args.get("db")
    return is_name and table.name.lower() == cte.alias.lower()


def _definition(text: str, tokens: Sequence[Token], cte: exp.CTE) -> _Definition | None:
    """A definition as it is written: `name AS (…)`, `name (columns) AS (…)`, each also without AS."""
    named = cte.args["alias"].this.meta.get("start", -1)
    first = next((at for at, token in enumerate(tokens) if token.start == named), None)
    if first is None:
        return None
    at, columns = first + 1, ""
    if cte.args["alias"].columns:
        end = at + 1 + len(list(inside_brackets(tokens, at)))
        columns = text[tokens[at].start : tokens[end].end + 1]
        at = end + 1
    at += tokens[at].token_type == TokenType.ALIAS
    last = at + 1 + len(list(inside_brackets(tokens, at)))
    return _Definition(first, last, text[tokens[at].end + 1 : tokens[last].start], columns)


def _put(table: exp.Table, definition: _Definition) -> Iterator[tuple[int, int, str]]:
    """What puts a definition in the place of its name, which stays as its alias unless there is another."""
    name, alias = table.this, table.args.get("alias")
    start, end = int(name.meta["start"]), int(name.meta["end"]) + 1
    if alias is None:
        yield start, end, f"({definition.body}) AS {backquoted(name.name)}{definition.columns}"
        return
    yield start, end, f"({definition.body})"
    if definition.columns and not alias.columns:
        after = int(alias.this.meta["end"]) + 1
        yield after, after, definition.columns


def _taken_out(tokens: Sequence[Token], clause: exp.With, definition: _Definition) -> tuple[int, int, str]:
    """What takes a definition out of its clause: with WITH, if it is the only one; else with the comma before it."""
    start = tokens[definition.first - 1].start
    end = definition.last
    if len(clause.expressions) == 1 and end + 1 < len(tokens):
        return start, tokens[end + 1].start, ""
    return start, tokens[end].end + 1, ""
