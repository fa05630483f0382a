"""The columns of the rows of a query's parts, where its text does not name them: those that `*` gives, and those that a
SELECT reads."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from backfill_assets.query.ddl import Column
from backfill_assets.query.nodes import all_of
from backfill_assets.query.occurrences import Occurrence
from backfill_assets.query.parsing import FAULTS
from backfill_assets.query.refusals import not_total
from backfill_assets.query.spelling import backquoted

__all__ = ["RowColumn", "RowColumns", "name_subqueries"]

_UNNAMED: Final = "__auto_generated_subquery_name"
"""What Spark calls a subquery in FROM that has no name; two of them in one FROM are not told apart."""
_INVENTED: Final = re.compile(r"_(col_)?\d+")
_GIVES: Final = {
    **dict.fromkeys(("map_concat", "map_filter", "map_from_entries", "map_zip_with"), "map"),
    **dict.fromkeys(("transform_keys", "transform_values"), "map"),
    **dict.fromkeys(("parse_json", "to_variant_object", "try_parse_json", "try_variant_get", "variant_get"), "variant"),
}
"""Functions of whose types sqlglot knows less than Spark, and what they give: the last two only without a third argument."""
_PART: Final = "part"
"""The entry in the `meta` of the part of a query whose columns are asked for."""


class RowColumn(NamedTuple):
    """A column of a query's part: the name there of the table that it is of, which is empty for one that the part gives; its
    own name; and its type, as far as that is known."""

    table: str
    name: str
    kind: exp.DataType | None = None

    @property
    def in_order(self) -> str:
        """What orders rows by the column, as text: of a map its entries, of a VARIANT its text and type, as Spark compares
        neither.

        Errors: `QueryError` for one of them within another type.
        """
        text = f"{backquoted(self.table)}.{backquoted(self.name)}" if self.table else backquoted(self.name)
        if not self.is_unordered:
            return text
        assert self.kind is not None
        if not self.kind.is_type("map", "variant") or len(list(_unordered(self.kind))) > 1:
            raise not_total(
                f"rows cannot be ordered by the column {self.name}, which has a map or a VARIANT within another type",
                "leave the column out, in a subquery or a view of its own",
            )
        if self.kind.is_type("variant"):
            return f"to_json({text}), schema_of_variant({text})"
        return f"array_sort(map_entries({text}))"

    @property
    def is_unordered(self) -> bool:
        """Whether its values hold such as Spark does not compare: maps, or VARIANTs."""
        return self.kind is not None and any(_unordered(self.kind))


class RowColumns:
    """The columns of each part of a query over tables.

    Args:
        root: The query.
        found: Where it names tables (`occurrences`).
        tables: The columns of each upstream.

    Example:
        >>> from backfill_assets.query.ddl import parse_schema
        >>> from backfill_assets.query.occurrences import occurrences
        >>> from backfill_assets.query.parsing import parse, tokenize
        >>> text = "SELECT *, x + 1 AS y FROM (SELECT x, z FROM t) AS s"
        >>> root = parse(text, tokenize(text))
        >>> rows = RowColumns(root, occurrences(root, ["t"]), {"t": parse_schema("x INT, z INT, w INT")})
        >>> [each.name for each in rows.given(root)], [each.in_order for each in rows.seen(root)]
        (['x', 'z', 'y'], ['`s`.`x`', '`s`.`z`'])
    """

    def __init__(self, root: exp.Expr, found: Sequence[Occurrence], tables: Mapping[str, Sequence[Column]]) -> None:
        self._root = root
        self._named = {column.name.lower() for each in found for column in tables[each.upstream]}
        self._schema: dict[str, object] = {
            each.written: {column.name: column.type for column in tables[each.upstream]}
            for each in found
            if each.written
        }

    def given(self, query: exp.Query) -> tuple[RowColumn, ...]:
        """The columns that a part of the query gives; none where only Spark can tell them."""
        items = _selected(self._part(query), self._schema)
        known = not any(each.is_star for each in items)
        return tuple(RowColumn("", each.alias_or_name, each.type) for each in items) if known else ()

    def seen(self, select: exp.Select) -> tuple[RowColumn, ...]:
        """The columns that the expressions of a SELECT can use; none where only Spark can tell them."""
        part = self._part(select)
        name_subqueries(part.root())
        own = len(_selected(part, self._schema))
        part = self._part(select)
        name_subqueries(part.root())
        part.set("expressions", [exp.Star(), *part.expressions])
        every = _selected(part, self._schema)
        columns = [column for item in every[: len(every) - own] for column in all_of(item, exp.Column)]
        if _pivots(select) or any(
            self._is_invented(each) for column in columns for each in (column.table, column.name)
        ):
            return ()
        return tuple(
            {(each.table, each.name): RowColumn(each.table, each.name, each.type) for each in columns}.values()
        )

    def _is_invented(self, name: str) -> bool:
        """Whether a name may be one that sqlglot gives to a column or a subquery that has none; Spark gives others."""
        return _INVENTED.fullmatch(name) is not None and name not in self._named

    def _part(self, query: exp.Query) -> exp.Query:
        """The part of the query in a copy of the whole."""
        query.meta[_PART] = True
        root = self._root.copy()
        del query.meta[_PART]
        return _marked(root)


def name_subqueries(root: exp.Expr) -> None:
    """Give subqueries in FROM that have no name the one that Spark gives them."""
    for subquery in all_of(root, exp.Subquery):
        is_query = not isinstance(subquery.this, exp.Table | exp.Subquery)
        if isinstance(subquery.parent, exp.From | exp.Join) and not subquery.alias and is_query:
            subquery.set("alias", exp.TableAlias(this=exp.to_identifier(_UNNAMED)))


def _selected(part: exp.Query, schema: dict[str, object]) -> list[exp.Expr]:
    """The SELECT list of a part of a query, with columns in the places of stars, as far as they are known."""
    try:
        root = qualify(part.root(), schema=schema, dialect="spark", validate_qualify_columns=False)
        _say_types(root)
        # Types of what a LATERAL VIEW gives are not known: of a key of a map sqlglot says that it is a map.
        typed = root if root.find(exp.Lateral) else annotate_types(root, schema=schema, dialect="spark")
    except (SqlglotError, *FAULTS):
        return [exp.Star()]
    return list(_marked(typed).selects)


def _pivots(select: exp.Select) -> bool:
    """Whether a SELECT reads what PIVOT or UNPIVOT makes."""
    places = [select.args.get("from_"), *(select.args.get("joins") or [])]
    return any(place.this.args.get("pivots") for place in places if place is not None)


def _marked(root: exp.Expr) -> exp.Query:
    return next(each for each in all_of(root, exp.Query) if _PART in each.meta)


def _say_types(root: exp.Expr) -> None:
    """Put a cast, which changes nothing, around calls of whose types sqlglot knows less than Spark."""
    for call in all_of(root, exp.Anonymous, exp.MapFromEntries, exp.ParseJSON):
        name = call.name.lower() if isinstance(call, exp.Anonymous) else call.sql_name().lower()
        gives = _GIVES.get(name)
        if gives is not None and not (name.endswith("variant_get") and len(call.expressions) > 2):
            call.replace(exp.Cast(this=call.copy(), to=exp.DataType.build(gives, dialect="spark")))


def _unordered(kind: exp.DataType) -> Iterator[exp.DataType]:
    """The types within a type whose values Spark does not compare."""
    return (each for each in all_of(kind, exp.DataType) if each.is_type("map", "variant"))
