"""Which names the columns of a view may have."""

from backfill_assets.query.ddl import invalid_name_characters
from backfill_assets.query.refusals import refusal

__all__ = ["check_column_name"]

_OF_THE_FEED = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
"""Columns that Delta's change data feed adds to those of a table: one that has them has no feed."""


def check_column_name(name: str, where: str = "") -> None:
    """Check the name of a view's column; `where` it is in the query (`place`).

    Errors: `QueryError` for one that Delta does not accept, or that is taken.

    Example:
        >>> check_column_name("total")
    """
    if name.startswith("__"):
        raise refusal(
            "COLUMN_NAME", f"the query's column {name!r}{where} begins with `__`, which is for hidden columns"
        )
    if name.lower() in _OF_THE_FEED:
        raise refusal(
            "COLUMN_NAME", f"the query's column {name!r}{where} has the name of a column of Delta's change data feed"
        )
    if wrong := invalid_name_characters(name):
        raise refusal(
            "COLUMN_NAME", f"the query's column {name!r}{where} has characters that Delta does not accept: {wrong!r}"
        )
