"""Where a query names its upstreams: each place is an occurrence, found by sqlglot and located by its position in the
text.

The text is never rendered again: to bind an occurrence to rows, a name is put in its place.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from backfill_assets.query.functions import REFUSED_FUNCTIONS, TABLE_FUNCTIONS
from backfill_assets.query.nodes import all_of
from backfill_assets.query.parsing import upstream_named
from backfill_assets.query.refusals import refusal, refused_call
from backfill_assets.query.spelling import backquoted

__all__ = ["Occurrence", "bound", "occurrences"]


@dataclass(frozen=True)
class Occurrence:
    """A place in the query's text, from `start` to before `end`, that names an upstream; `alias` is empty if it has none."""

    upstream: str
    start: int
    end: int
    alias: str = ""
    written: str = ""


def occurrences(root: exp.Expr, upstreams: Sequence[str]) -> tuple[Occurrence, ...]:
    """All places where a query names one of its upstreams, in the order of the text.

    A name of WITH hides an upstream of the same name in its scope. Errors: `QueryError` for a table that is neither.
    """
    found = sorted({_occurrence(table, upstreams) for table in _tables(root)}, key=lambda each: each.start)
    return tuple(found)


def bound(query: str, found: Sequence[Occurrence], name: Callable[[int], str], *, escape: bool = False) -> str:
    """The query's text with the name of its number in the place of each occurrence, under the name that it had.

    With `escape`, braces of the text are doubled, for `str.format`.

    Example:
        >>> bound("SELECT a FROM t", [Occurrence("t", 14, 15, written="t")], lambda at: f"t_{at}")
        'SELECT a FROM t_0 AS `t`'
    """
    parts: list[str] = []
    at = 0
    for number, each in enumerate(found):
        text = query[at : each.start]
        parts.append(_escaped(text) if escape else text)
        parts.append(name(number) if each.alias else f"{name(number)} AS {backquoted(each.written)}")
        at = each.end
    parts.append(_escaped(query[at:]) if escape else query[at:])
    return "".join(parts)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _occurrence(table: exp.Table, upstreams: Sequence[str]) -> Occurrence:
    return Occurrence(
        upstream=upstream_named(table, upstreams),
        start=table.parts[0].meta["start"],
        end=table.parts[-1].meta["end"] + 1,
        alias=str(table.alias),
        written=str(table.name),
    )


def _tables(root: exp.Expr) -> Iterator[exp.Table]:
    """The tables that are upstreams, scope by scope. Tables that are neither upstreams nor names of WITH are refused."""
    for called in all_of(root, exp.Table, exp.Lateral):
        if isinstance(called.this, exp.Func):
            _check_function(called)
    small = _in_small_letters(root)
    try:
        scopes = traverse_scope(small)
    except SqlglotError as error:
        raise refusal("SYNTAX", f"the query cannot be read: {error}") from None
    named = {id(table): table for scope in scopes for table in _sources(scope)}
    defined = {each.alias for each in all_of(small, exp.CTE)}
    for table in all_of(small, exp.Table):
        if not isinstance(table.this, exp.Identifier):
            continue  # a function in FROM
        if id(table) in named:
            yield table
        elif table.args.get("db") or table.name not in defined:
            raise refusal(
                "UNSUPPORTED",
                f"the query reads from {table.name!r} in an unsupported place",
                hint="name it in FROM or JOIN",
            )


def _check_function(place: exp.Expr) -> None:
    """Refuse a function in FROM that may return rows of anything except its arguments."""
    called = place.this
    name = called.name if isinstance(called, exp.Anonymous) else called.sql_name()
    if REFUSED_FUNCTIONS.get(name.lower()) == "UNSUPPORTED":
        raise refused_call("UNSUPPORTED", name.lower())
    if name.lower() not in TABLE_FUNCTIONS or place.args.get("db"):
        raise refusal(
            "UNSUPPORTED",
            f"the query calls {name.lower()}() in FROM",
            hint="declare the table that it reads as an upstream; allowed are range, stack, explode, inline and the like",
        )


def _sources(scope: Scope) -> Iterator[exp.Table]:
    for source in scope.sources.values():
        if isinstance(source, exp.Table):
            yield source


def _in_small_letters(root: exp.Expr) -> exp.Expr:
    """The query, or a copy in which names of WITH, and the tables that may mean them, have the same spelling: Spark ignores
    case."""
    defined = {each.alias.lower() for each in all_of(root, exp.CTE)}
    if not defined:
        return root
    small = root.copy()
    for cte in all_of(small, exp.CTE):
        cte.args["alias"].this.set("this", cte.alias.lower())
    for table in all_of(small, exp.Table):
        if isinstance(table.this, exp.Identifier) and not table.args.get("db") and table.name.lower() in defined:
            table.this.set("this", table.name.lower())
    return small
