"""Refuses what gives other rows when it is computed again: the clock, chance, the session, and the order in which rows come.

Whatever is computed again, in whatever session and over however many tasks, must give the same multiset of rows; that is
what every strategy, every redone plan and every proof rests on.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from typing import Final

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark

from backfill_assets.query.functions import CURRENT_WORDS, REFUSED_FUNCTIONS, ZERO_ARGUMENT_CLOCKS
from backfill_assets.query.refusals import refusal

__all__ = ["CURRENT_NODES", "check_deterministic", "reads_clock", "refused_calls"]

_UNORDERED: Final = """
any_value approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine array_agg collect_list collect_set
count_min_sketch first histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double
kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float last listagg max_by measure min_by mode
percentile_approx schema_of_variant_agg string_agg theta_intersection_agg theta_sketch_agg theta_union_agg
tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer
tuple_union_agg_double tuple_union_agg_integer
"""
_ORDER_DEPENDENT: Final = frozenset(_UNORDERED.split())
"""Aggregates whose result depends on the order of rows, or on which of several equal ones comes first."""

_COLLECTS: Final = frozenset({"array_agg", "collect_list", "collect_set"})
_ORDERS: Final = frozenset({"array_max", "array_min", "array_sort", "cardinality", "size", "sort_array"})
"""What takes the order out of a collected array again."""

_ENVIRONMENT: Final = frozenset({"collations", "python_worker_logs", "sql_keywords"})
_LIKES: Final = frozenset({TokenType.LIKE, TokenType.ILIKE})
_QUANTIFIERS: Final = frozenset({"any", "some"})
CURRENT_NODES: Final = tuple(set(Spark.Parser.NO_PAREN_FUNCTIONS.values()))
"""What sqlglot makes of words that call functions of the clock or the session without brackets."""
# Spark replaces these words by the clock's time wherever a text becomes a date or a timestamp, also by itself.
_CLOCK_TEXT: Final = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_KEEPS_TEXT: Final = (exp.Alias, exp.Select, exp.If, exp.Case, exp.Concat, exp.DPipe, exp.Bracket)
_COMPARES: Final = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In)
_CLAUSES: Final = {
    "sample": ("NOT_DETERMINISTIC", "TABLESAMPLE"),
    "hint": ("UNSUPPORTED", "a hint (/*+ … */)"),
    "version": ("UNSUPPORTED", "a table version"),
}


def check_deterministic(
    root: exp.Expr, tokens: Sequence[Token], columns: Collection[tuple[str, str]] | None = None
) -> None:
    """Refuse a query that would not give the same rows again. `columns`: names, in small letters, and types of all that the
    upstreams have; what takes them to tell is left out without them. Errors: `QueryError`.
    """
    _check_calls(tokens)
    for name, (reason, clause) in _CLAUSES.items():
        if any(node.args.get(name) for node in root.walk()):
            raise refusal(reason, f"the query has {clause}")
    for node in root.find_all(exp.Placeholder, exp.Parameter, exp.QueryTransform):
        raise refusal("UNSUPPORTED", f"the query has {node.sql('spark')}, which is not an expression over rows")
    for node in root.find_all(*CURRENT_NODES):
        raise refusal("NOT_DETERMINISTIC", f"the query has {node.sql('spark')}, which is not the same every time")
    if columns is None:
        return
    _check_words(root, {name for name, _ in columns})
    texts = {name for name, kind in columns if kind == "STRING"}
    for literal in root.find_all(exp.Literal):
        if reads_clock(literal, lambda column: column.name.lower() in texts):
            raise refusal("NOT_DETERMINISTIC", f"the query has the text {literal.this!r}, which means the clock's time")


def refused_calls(tokens: tuple[Token, ...]) -> Iterator[tuple[str, str]]:
    """The calls of functions that have a reason to be refused, each with that reason."""
    # By token, not by sqlglot's functions: it knows fewer names than Spark, and takes some names for other functions.
    for index, token in enumerate(tokens[:-1]):
        name = token.text.lower()
        if tokens[index + 1].token_type != TokenType.L_PAREN or token.token_type == TokenType.STRING:
            continue
        if name in _QUANTIFIERS and index and tokens[index - 1].token_type in _LIKES:
            continue
        if name in REFUSED_FUNCTIONS:
            yield name, REFUSED_FUNCTIONS[name]
        if name in ZERO_ARGUMENT_CLOCKS and tokens[index + 2].token_type == TokenType.R_PAREN:
            yield name, "NOT_DETERMINISTIC"


def _check_calls(tokens: Sequence[Token]) -> None:
    for name, reason in refused_calls(tuple(tokens)):
        if reason in {"NOT_DETERMINISTIC", "UNSUPPORTED"} or name in _ENVIRONMENT:
            raise refusal(
                "UNSUPPORTED" if reason == "UNSUPPORTED" else "NOT_DETERMINISTIC", f"the query calls {name}()"
            )
    for name, outer in _calls(tokens):
        if name in _ORDER_DEPENDENT and not (name in _COLLECTS and outer in _ORDERS):
            raise refusal(
                "ORDER_DEPENDENT", f"the query calls {name}(), whose result depends on the order in which rows come"
            )


def _calls(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """The functions that are called, each with the one whose argument it begins; empty where there is none."""
    for index, (token, following) in enumerate(pairwise(tokens)):
        if following.token_type != TokenType.L_PAREN or token.token_type == TokenType.STRING:
            continue
        inside = index > 1 and tokens[index - 1].token_type == TokenType.L_PAREN
        yield token.text.lower(), tokens[index - 2].text.lower() if inside else ""


def _check_words(root: exp.Expr, names: Collection[str]) -> None:
    """Words that call functions without brackets, unless something has that name."""
    given = {*names, *(each.alias.lower() for each in root.find_all(exp.Alias))}
    for column in root.find_all(exp.Column):
        name = column.name.lower()
        if not column.table and name in CURRENT_WORDS and name not in given:
            raise refusal("NOT_DETERMINISTIC", f"the query has {name}, which is not the same every time")


def reads_clock(literal: exp.Literal, is_text: Callable[[exp.Column], bool]) -> bool:
    """Whether Spark may take a text for a date or a time: not where it is kept, or compared with texts."""
    if not literal.is_string or not _CLOCK_TEXT.match(literal.this):
        return False
    parent = literal.parent
    if isinstance(parent, _COMPARES):
        sides = (parent.this, parent.args.get("expression"))
        return not any(isinstance(side, exp.Column) and is_text(side) for side in sides)
    return not isinstance(parent, _KEEPS_TEXT)
