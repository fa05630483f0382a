"""Changed declarations that leave a view's life as it is: its query gives more columns, and is otherwise the same."""

from collections.abc import Mapping, Sequence

from backfill_assets.core.epoch.records import SELECT, changed_parts
from backfill_assets.declare.fingerprints import fingerprint_of, stated
from backfill_assets.declare.model import MaterializedView
from backfill_assets.query.ddl import Column
from backfill_assets.query.select_list import select_list

__all__ = ["adds_columns", "missing_columns"]


def adds_columns(built_with: Mapping[str, str], view: MaterializedView) -> bool:
    """Whether a view differs from the declaration with this fingerprint only by expressions at the end of its SELECT list,
    and may be computed in full.

    Example:
        >>> from backfill_assets import delta_table, materialized_view
        >>> old, new = (
        ...     materialized_view("view", query=query, upstreams=[delta_table("t", path="lake/t", primary_key="a")])
        ...     for query in ("SELECT a FROM t", "SELECT a, b FROM t")
        ... )
        >>> adds_columns(fingerprint_of(old), new), adds_columns(fingerprint_of(new), old)
        (True, False)
    """
    listed, count = select_list(view.text), built_with.get(SELECT, "").partition(":")[0]
    if listed is None or not count.isdecimal() or view.refresh_mode == "incremental_strict":
        return False
    if changed_parts(built_with, fingerprint_of(view)) != ["query"] or not int(count) < len(listed.items):
        return False
    return stated(listed.first(int(count))) == built_with[SELECT]


def missing_columns(before: Sequence[Column], after: Sequence[Column]) -> list[str]:
    """The names of columns that a table would not have any more, or of another type."""
    return [each.name for each in before if each not in after]
