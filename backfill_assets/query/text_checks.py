"""Refuses what a query's text alone shows to be wrong, and says where it is in the text that its author wrote."""

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from backfill_assets.query.clock_texts import CLOCK_NODES, reads_clock
from backfill_assets.query.column_names import check_column_name
from backfill_assets.query.functions import TABLE_FUNCTIONS
from backfill_assets.query.nodes import all_of
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.refusals import place, refusal, refused_text
from backfill_assets.query.spark_functions import check_functions

__all__ = ["check_text", "gives_several"]

_LARGEST: Final = 2**31 - 1
"""The largest number that means a place in the SELECT list; others are constants."""
_NAMED: Final = (exp.Boolean, exp.Literal, exp.Null)
"""Constants: to Spark they are names of their own."""


def check_text(query: str) -> None:
    """Refuse functions, names of columns, sizes of set operations, numbers in GROUP BY and texts of the clock that are wrong
    over any tables. Errors: `QueryError`.

    Example:
        >>> check_text("SELECT id, a AS ID FROM t")
        Traceback (most recent call last):
        ...
        backfill_assets.errors.QueryError: [QUERY:DUPLICATE_COLUMN] the query returns 'ID' in line 1, column 12 a second time
          What to do: give each column its own name with AS; Spark does not tell names apart by case
    """
    tokens = tokenize(query)
    root = parse(query, tokens)
    check_functions(root, tokens)
    if isinstance(root, exp.Query):
        _check_names(root)
    for operation in all_of(root, exp.SetOperation):
        _check_sizes(operation)
    for limit in all_of(root, exp.Limit):
        if limit.expression.is_string:
            raise refusal(
                "SYNTAX", f"the query has LIMIT {limit.expression.sql('spark')}{place(limit)}, which is no number"
            )
    for pivot in all_of(root, exp.Pivot):
        _check_pivoted(pivot)
    for select in all_of(root, exp.Select):
        _check_form(select)
        _check_brackets(select)
        _check_numbers(select)
    for node in all_of(root, *CLOCK_NODES):
        if reads_clock(node, lambda _: True):
            raise refused_text(node.sql("spark"), place(node))


def gives_several(item: exp.Expr) -> bool:
    """Whether an expression of a SELECT list calls a function that may give several columns, with names of its own."""
    called = item.unnest()
    if not isinstance(called, exp.Func):
        return False
    name = called.name if isinstance(called, exp.Anonymous) else called.sql_name()
    return name.lower() in TABLE_FUNCTIONS


def _check_form(select: exp.Select) -> None:
    """Refuse what sqlglot reads, and Spark does not."""
    if not select.expressions:
        raise refusal("SYNTAX", "a part of the query has nothing between SELECT and FROM")
    if select.args.get("joins") and select.args.get("from_") is None:
        raise refusal("SYNTAX", "a part of the query has JOIN without FROM")
    if any(isinstance(each, exp.Alias) and isinstance(each.this, exp.Star) for each in select.expressions):
        raise refusal("SYNTAX", "a part of the query gives a name to *")


def _check_pivoted(pivot: exp.Pivot) -> None:
    """Refuse what is pivoted after a join, and a PIVOT by values that differ in case alone: each names a column."""
    if isinstance(pivot.parent, exp.Join):
        # Spark pivots all joined rows, and sqlglot those of the last table.
        raise refusal(
            "UNSUPPORTED",
            f"the query has {'UNPIVOT' if pivot.unpivot else 'PIVOT'} after a join{place(pivot)}",
            hint="put the join into a subquery: FROM (SELECT … FROM a JOIN b …) PIVOT (…)",
        )
    seen: set[str] = set()
    for name in (each.name for each in pivot.args.get("columns") or () if each.name):
        if name.lower() in seen:
            raise refusal(
                "DUPLICATE_COLUMN",
                f"PIVOT{place(pivot)} makes the column {name!r} a second time",
                hint="give the values names of their own: FOR s IN ('a' AS small, 'A' AS large)",
            )
        seen.add(name.lower())


def _check_brackets(select: exp.Select) -> None:
    """Refuse `FROM t WHERE (a)`, where Spark reads WHERE as an alias of the table, and `a` as a name of its only column."""
    last = (select.args.get("joins") or [select.args.get("from_")])[-1]
    clause = select.args.get("where") or (None if select.args.get("group") else select.args.get("having"))
    if last is None or clause is None or last.this.alias or last.args.get("on") or last.args.get("using"):
        return
    inner = clause.this.this if isinstance(clause.this, exp.Paren) else None
    if isinstance(inner, exp.Column) and not inner.table and not select.args.get("laterals"):
        raise refusal(
            "SYNTAX",
            f"the query has {clause.key.upper()} with a name alone in brackets{place(inner)}, which Spark reads as an alias "
            "of the table before it, with a name for its column",
            hint=f"leave the brackets out: {clause.key.upper()} {inner.sql('spark')}",
        )


def _check_names(root: exp.Query) -> None:
    seen: set[str] = set()
    for item in root.selects:
        for name in _names(item):
            where = place(item)
            check_column_name(name, where)
            if name.lower() in seen:
                raise refusal("DUPLICATE_COLUMN", f"the query returns {name!r}{where} a second time")
            seen.add(name.lower())


def _names(item: exp.Expr) -> Iterator[str]:
    """The names of the columns that an expression of a SELECT list gives, as far as they are told by the text."""
    value = item.unnest()
    if isinstance(item, exp.Alias):
        yield item.alias
    elif isinstance(item, exp.Aliases):
        yield from (each.name for each in item.aliases)
    elif isinstance(value, exp.Column | exp.Dot) and not item.is_star:
        yield value.output_name
    elif isinstance(value, exp.Cast) and isinstance(value.this.unnest(), exp.Column):
        # Spark gives a cast the name of the column that it casts, and a cast of a cast none.
        yield value.this.unnest().output_name
    elif not item.is_star and not gives_several(item) and not isinstance(value, _NAMED):
        raise refusal("UNNAMED_COLUMN", f"the query's column {item.sql('spark')}{place(item)} has no name")


def _check_sizes(operation: exp.SetOperation) -> None:
    sizes = [_size(each) for each in (operation.left, operation.right)]
    if None not in sizes and sizes[0] != sizes[1] and not operation.args.get("by_name"):
        kind = type(operation).__name__.upper()
        raise refusal(
            "UNION_MISMATCH",
            f"the parts of {kind} have different numbers of columns: {sizes[0]}, and {sizes[1]}{place(operation.right)}",
        )


def _size(node: exp.Expr) -> int | None:
    """How many columns a query gives; None if its text does not tell."""
    items = node.selects if isinstance(node, exp.Query) else []
    if not items or any(each.is_star or gives_several(each) for each in items):
        return None
    return sum(len(each.aliases) if isinstance(each, exp.Aliases) else 1 for each in items)


def _check_numbers(select: exp.Select) -> None:
    size, group = _size(select), select.args.get("group") or exp.Group()
    for each in group.expressions:
        is_number = isinstance(each, exp.Literal) and not each.is_string and each.this.isdecimal()
        if is_number and size is not None and not 1 <= int(each.this) <= size and int(each.this) <= _LARGEST:
            raise refusal(
                "GROUP_POSITION",
                f"GROUP BY {each.this}{place(each)} names none of the {size} columns of the SELECT list",
            )
