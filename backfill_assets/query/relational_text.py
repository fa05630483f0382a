"""The text of a query of any shape: with total orders, in one spelling, and as a template for its tables."""

from collections.abc import Collection, Mapping, Sequence

from sqlglot import Token, exp

from backfill_assets.query.clock import ANY_TIME, at_time
from backfill_assets.query.ddl import Column
from backfill_assets.query.determinism import check_deterministic
from backfill_assets.query.expressions import check_used
from backfill_assets.query.nodes import all_of
from backfill_assets.query.occurrences import Occurrence, bound, occurrences
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.refusals import refusal
from backfill_assets.query.row_columns import RowColumns
from backfill_assets.query.spelling import joined_words, words_of
from backfill_assets.query.ties import completed

__all__ = ["named_upstreams", "read_text", "spelled_relational", "spelled_text", "template_of"]


def named_upstreams(query: str, upstreams: Collection[str]) -> tuple[Occurrence, ...]:
    """Where a query's text names upstreams."""
    return occurrences(parse(query, tokenize(query)), list(upstreams))


def template_of(query: str, found: Sequence[Occurrence]) -> str:
    """A query's text with `{occurrence_<n>}` in the places `found`, where it names upstreams."""
    return bound(query, found, lambda at: f"{{occurrence_{at}}}", escape=True)


def spelled_relational(query: str, upstreams: Sequence[str], *, clock: bool = False) -> str:
    """The query in one spelling, after those checks that do not need the upstreams' columns. With `clock` it may call
    functions of the clock.

    Errors: `QueryError`.
    """
    query, tokens, root = read_text(query)
    spelled = spelled_text(query, tokens, root)
    if clock:
        _, tokens, root = read_text(at_time(query, ANY_TIME))
        _check_times_named(root)
    found = occurrences(root, upstreams)
    check_used(tuple(each.upstream for each in found), dict.fromkeys(upstreams, ()))
    check_deterministic(root, tokens)
    return spelled


def _check_times_named(root: exp.Expr) -> None:
    """Refuse a time of the clock as a column without a name, which would be another one each time. Errors: `QueryError`."""
    for each in root.selects if isinstance(root, exp.Query) else ():
        if isinstance(each, exp.Paren) and isinstance(each.unnest(), exp.Cast):
            raise refusal("UNNAMED_COLUMN", "a column of the query is the clock's time, and has no name")


def read_text(query: str, tables: Mapping[str, Sequence[Column]] | None = None) -> tuple[str, list[Token], exp.Expr]:
    """The query with total orders, its tokens, and its syntax tree. Without `tables`, their visible columns, orders that need
    them are not completed."""
    tokens = tokenize(query)
    root = parse(query, tokens)
    rows = None if tables is None else RowColumns(root, occurrences(root, list(tables)), tables)
    text = completed(query, tokens, root, rows)
    if text != query:
        tokens = tokenize(text)
        root = parse(text, tokens)
    return text, tokens, root


def spelled_text(query: str, tokens: Sequence[Token], root: exp.Expr) -> str:
    """A query in one spelling."""
    # The case of a name may be part of the result, wherever the name is.
    names = {
        node.meta.get("start", -1)
        for node in all_of(root, exp.Identifier)
        if not isinstance(node.parent, exp.Table | exp.TableAlias) or node.arg_key == "columns"
    }
    return joined_words(word.text for word in words_of(query, tokens, names))
