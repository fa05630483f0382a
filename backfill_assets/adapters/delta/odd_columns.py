"""Columns with which a table cannot be an upstream."""

import json
from typing import Any

from deltalake import DeltaTable

from backfill_assets.errors import UpstreamRefusedError
from backfill_assets.query.rowwise import CHANGE

__all__ = ["check_names", "collated"]

_COLLATIONS, _OF_BYTES = "__COLLATIONS", "UTF8_BINARY"
"""In the metadata of a column: the collations of its texts, each as `provider.name`; the one that texts have otherwise."""


def check_names(name: str, table: DeltaTable) -> None:
    """Check that no column has the name that the change feed gives one of its own. Errors: `UpstreamRefusedError`."""
    taken = [each.name for each in table.schema().fields if each.name.lower() == CHANGE.name]
    if taken:
        raise UpstreamRefusedError(
            f"table {name!r} has a column {taken[0]!r}: the change data feed has one of this name, so its changes could not "
            "be told",
            hint="let the view read a table or view that gives the column another name",
            reason="RESERVED_COLUMN",
            column=taken[0],
        )


def collated(table: DeltaTable) -> list[str]:
    """The columns with texts, maybe inside of them, that are equal though their bytes differ."""
    fields = json.loads(table.schema().to_json())["fields"]
    return [each["name"] for each in fields if _is_collated(each)]


def _is_collated(part: Any) -> bool:
    if isinstance(part, list):
        return any(map(_is_collated, part))
    if not isinstance(part, dict):
        return False
    given = part.get(_COLLATIONS, {})
    collations = json.loads(given) if isinstance(given, str) else given
    differs = any(each.rpartition(".")[2] != _OF_BYTES for each in collations.values())
    return differs or any(_is_collated(each) for name, each in part.items() if name != _COLLATIONS)
