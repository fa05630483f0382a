"""A query as a tree for analysis: columns say of which table they are, and no alias is there twice.

The tree is only looked at. What runs is the user's text, as a rendering would change some of Spark's functions.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.optimizer.qualify import qualify

from backfill_assets.query.ddl import Column
from backfill_assets.query.nodes import all_of, collated
from backfill_assets.query.occurrences import Occurrence
from backfill_assets.query.parsing import FAULTS
from backfill_assets.query.row_columns import name_subqueries

__all__ = [
    "OCCURRENCE",
    "alias_of",
    "has_grouping_sets",
    "joins_of",
    "may_lose_left",
    "merges",
    "named",
    "renames_columns",
    "resolved",
    "sources_of",
    "spelled_alias",
    "spelled_node",
    "unwrapped",
]

OCCURRENCE: Final = "occurrence"
"""The entry in a table's `meta` that says the number of the place in the text."""

_MARK: Final = "#"
"""Between an alias as the user wrote it and the number that makes it unique."""

_WINDOWS: Final = ("window", "session_window")
"""Functions that GROUP BY may call: Spark then has a column of the function's name."""


def resolved(root: exp.Expr, found: Sequence[Occurrence], tables: Mapping[str, tuple[Column, ...]]) -> exp.Expr | None:
    """The tree of a query for analysis; None where names cannot be resolved without Spark, and where a collation compares
    texts: values are equal then that are not the same, as those of a key have to be."""
    return None if collated(root) else named(root, found, tables)


def named(root: exp.Expr, found: Sequence[Occurrence], tables: Mapping[str, tuple[Column, ...]]) -> exp.Expr | None:
    """The tree of a query in which each column has the name of its source; None where that takes Spark."""
    is_unclear = root.find(exp.With) is not None or renames_columns(root) or _names_all(root, found, tables)
    if is_unclear or any(map(_merges_after_loss, all_of(root, exp.Select))):
        return None
    tree = root.copy()
    numbers = {each.start: number for number, each in enumerate(found)}
    for table in all_of(tree, exp.Table):
        if table.parts[0].meta.get("start") in numbers:
            table.meta[OCCURRENCE] = numbers[table.parts[0].meta["start"]]
    schema: dict[str, object] = {
        each.written: {column.name: column.type for column in tables[each.upstream]} for each in found if each.written
    }
    name_subqueries(tree)
    _put_calls(tree, {column.name.lower() for each in found for column in tables[each.upstream]})
    try:
        tree = qualify(tree, schema=schema, dialect="spark", quote_identifiers=False)
    except (SqlglotError, *FAULTS):
        return None
    for identifier in all_of(tree, exp.Identifier):
        identifier.set("quoted", False)
    _rename(tree, [], count())
    return tree


def _names_all(root: exp.Expr, found: Sequence[Occurrence], tables: Mapping[str, tuple[Column, ...]]) -> bool:
    """Whether the `all` of GROUP BY ALL or ORDER BY ALL may be the name of a column, which Spark takes then."""
    is_said = any(group.args.get("all") for group in all_of(root, exp.Group))
    is_said = is_said or any(each.this.name.lower() == "all" for each in all_of(root, exp.Ordered))
    columns = (column.name for each in found for column in tables[each.upstream])
    names = (
        *columns,
        *(each.name for each in all_of(root, exp.Identifier) if not isinstance(each.parent, exp.Column)),
    )
    return is_said and "all" in {name.lower() for name in names}


def _merges_after_loss(select: exp.Select) -> bool:
    """Whether several joins make one column of those that have one name, beside one that may lose its left side: sqlglot
    takes the column of a table that may be missing then."""
    return may_lose_left(select) and sum(map(merges, joins_of(select))) > 1


def merges(join: exp.Join) -> bool:
    """Whether a join makes one column of two that have one name: by USING, or NATURAL."""
    return bool(join.args.get("using") or join.method)


def may_lose_left(select: exp.Select) -> bool:
    """Whether a join gives rows without those on its left, so that what WHERE compares need not have been in them."""
    return any((join.side or "").upper() in {"RIGHT", "FULL"} for join in joins_of(select))


def has_grouping_sets(group: exp.Group) -> bool:
    """Whether GROUP BY makes groups of several sets of expressions, in which others are null."""
    several = any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets", "totals"))
    return several or group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None


def renames_columns(root: exp.Expr) -> bool:
    """Whether a query gives other names to the columns of a table, by their order: `FROM t AS x(a, b)`."""
    aliases = (table.args.get("alias") for table in all_of(root, exp.Table))
    return any(isinstance(alias, exp.TableAlias) and bool(alias.args.get("columns")) for alias in aliases)


def spelled_node(node: exp.Expr) -> str:
    """One spelling for all nodes that mean the same column or expression."""
    value = node.unalias() if isinstance(node, exp.Alias) else node
    # Most nodes are columns, and sqlglot copies what it spells.
    if isinstance(value, exp.Column) and not any("`" in part.name for part in value.parts):
        return ".".join(map(_spelled_part, value.parts))
    text = value.sql("spark", unsupported_level=ErrorLevel.IGNORE)
    # sqlglot spells these as their first argument, or without the others.
    lost = all_of(value, exp.ArgMax, exp.ArgMin, exp.ParseJSON, exp.ToChar)
    return " ".join([text, *map(repr, lost)])


def _spelled_part(part: exp.Expr) -> str:
    return f"`{part.name}`" if part.args.get("quoted") else part.name


def spelled_alias(source: exp.Expr) -> str:
    """The alias of a source, as it is spelled before its columns."""
    return spelled_node(exp.column("_", source.alias_or_name)).removesuffix("._")


def alias_of(spelled: str) -> tuple[str, str]:
    """The alias as the user wrote it, and the column, of a column that is spelled."""
    alias, _, column = spelled.rpartition(".")
    return alias.rpartition(_MARK)[0], column


def unwrapped(node: exp.Expr) -> exp.Expr:
    """A query without the brackets around it; with them where they have clauses of their own."""
    clauses = {"this", "alias"}
    while isinstance(node, exp.Subquery) and not any(value for name, value in node.args.items() if name not in clauses):
        node = node.this
    return node


def sources_of(select: exp.Select) -> list[exp.Expr]:
    """What a SELECT reads from, in the order of the text: the first one, and those of its joins."""
    first = select.args.get("from_")
    return [*([first.this] if first is not None else []), *(join.this for join in joins_of(select))]


def joins_of(select: exp.Select) -> list[exp.Join]:
    """The joins of a SELECT."""
    return list(select.args.get("joins") or [])


def _put_calls(tree: exp.Expr, columns: Collection[str]) -> None:
    """Put the call in the place of `window.start` where GROUP BY calls `window(...)`, if nothing else has that name."""
    others = {each.name.lower() for each in all_of(tree, exp.Identifier) if not isinstance(each.parent, exp.Column)}
    for select in all_of(tree, exp.Select):
        group = select.args.get("group") or exp.Group()
        calls = {each.name.lower(): each for each in group.expressions if isinstance(each, exp.Anonymous)}
        known = {name: call for name, call in calls.items() if name in _WINDOWS and name not in others | {*columns}}
        for column in all_of(select, exp.Column):
            call = known.get((column.table or column.name).lower())
            if call is not None and column.find_ancestor(exp.Select) is select and len(column.parts) <= 2:
                column.replace(exp.Dot(this=call.copy(), expression=column.this) if column.table else call.copy())


def _rename(node: exp.Expr, chain: Sequence[Mapping[str, str]], numbers: "Iterator[int]") -> None:
    """Give each source an alias that is there once in the tree; `chain` are the new aliases, innermost SELECT first."""
    if isinstance(node, exp.Column):
        new = next((each[node.table] for each in chain if node.table in each), None)
        if new is not None:
            node.set("table", exp.to_identifier(new))
        return
    inner = chain
    outer: set[int] = set()
    if isinstance(node, exp.Select):
        own: dict[str, str] = {}
        for source in (*sources_of(node), *(node.args.get("laterals") or [])):
            own[source.alias_or_name] = f"{source.alias_or_name}{_MARK}{next(numbers)}"
            if not isinstance(source, exp.Lateral):
                _rename(source, chain, numbers)
                outer.add(id(source))
            _set_alias(source, own[source.alias_or_name])
        inner = [own, *chain]
    _rename_children(node, inner, numbers, outer)


def _rename_children(
    node: exp.Expr, chain: Sequence[Mapping[str, str]], numbers: "Iterator[int]", done: set[int]
) -> None:
    for child in list(node.iter_expressions()):
        if isinstance(node, exp.Select) and isinstance(child, exp.From) and id(child.this) in done:
            continue
        if isinstance(child, exp.Join) and id(child.this) in done:
            _rename_children(child, chain, numbers, done)
        elif id(child) not in done:
            _rename(child, chain, numbers)


def _set_alias(source: exp.Expr, name: str) -> None:
    alias = source.args.get("alias")
    if isinstance(alias, exp.TableAlias):
        alias.set("this", exp.to_identifier(name))
    else:
        source.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
