"""What the log says about a Delta table's columns besides their names and types.

With column mapping, this is the name of a column in the files: if a column is dropped and added again, or takes another
column's name, its name stands for other values than before. For strings of a fixed length (CHAR), which Delta stores as
ordinary strings, it is the length: Spark pads what it compares with such a column.
"""

import json
from collections.abc import Mapping
from typing import Any

from backfill_assets.query.ddl import columns_of_delta

__all__ = [
    "FIXED_LENGTH",
    "collated",
    "declared_types",
    "fixed_lengths",
    "is_mapped",
    "keeps_names",
    "stored_names",
    "with_metadata",
]

FIXED_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
"""The key in a column's metadata under which Spark stores its CHAR or VARCHAR type."""

_COLLATIONS, _BYTEWISE = "__COLLATIONS", "UTF8_BINARY"
"""The key in a column's metadata under which Spark stores the collations of its texts, each as `provider.name`; and the
collation that compares bytes, which texts have by default."""
_MODE = "delta.columnMapping.mode"
_STORED = "delta.columnMapping.physicalName"


def collated(schema: str) -> list[str]:
    """The columns of a schema (JSON) in which texts, or texts inside of values, may be equal though their bytes differ."""
    if _COLLATIONS not in schema:
        return []
    return [each["name"] for each in json.loads(schema)["fields"] if _is_collated(each)]


def stored_names(schema: str, configuration: Mapping[str, str | None]) -> dict[str, Any]:
    """The name in the files of each column of a schema (JSON), with its nested fields; the column's own name without
    mapping."""
    return _of_fields(json.loads(schema), mapped=is_mapped(configuration))


def keeps_names(now: Any, was: Any) -> bool:
    """Whether a column of `stored_names` has the name in the files that it had before, and so have all fields that it had."""
    if isinstance(was, Mapping):
        return isinstance(now, Mapping) and all(name in now and keeps_names(now[name], was[name]) for name in was)
    if isinstance(was, tuple):
        return isinstance(now, tuple) and all(map(keeps_names, now, was))
    return bool(now == was)


def is_mapped(configuration: Mapping[str, str | None]) -> bool:
    """Whether columns have other names in files."""
    return (configuration.get(_MODE) or "none") != "none"


def with_metadata(schema: str, before: str) -> str:
    """A schema (JSON) whose columns are described as in the one before, as by comments, where they have the same type."""
    described = {each["name"]: each for each in json.loads(before)["fields"]}

    def found(field: dict[str, Any]) -> dict[str, Any]:
        kept = described.get(field["name"])
        return kept if kept is not None and kept["type"] == field["type"] else field

    made = json.loads(schema)
    return json.dumps({**made, "fields": [found(each) for each in made["fields"]]})


def _of_fields(struct: Mapping[str, Any], *, mapped: bool) -> dict[str, Any]:
    return {
        each["name"]: (_stored(each, mapped=mapped), _inside(each["type"], mapped=mapped)) for each in struct["fields"]
    }


def _stored(field: Mapping[str, Any], *, mapped: bool) -> str:
    return str((mapped and (field.get("metadata") or {}).get(_STORED)) or field["name"])


def _inside(kind: Any, *, mapped: bool) -> Any:
    match kind:
        case {"type": "struct"}:
            return _of_fields(kind, mapped=mapped)
        case {"type": "array", "elementType": element}:
            return _inside(element, mapped=mapped)
        case {"type": "map", "keyType": key, "valueType": value}:
            return _inside(key, mapped=mapped), _inside(value, mapped=mapped)
        case _:
            return None


def fixed_lengths(schema: str) -> dict[str, str]:
    """The CHAR columns of a schema (JSON): names in lower case, each with its type, such as `char(5)`."""
    said = {
        each["name"].lower(): (each.get("metadata") or {}).get(FIXED_LENGTH) for each in json.loads(schema)["fields"]
    }
    return {name: kind for name, kind in said.items() if isinstance(kind, str) and kind.startswith("char(")}


def declared_types(schema: str) -> dict[str, str]:
    """The type of each column of a schema (JSON), as queries see it."""
    fixed = fixed_lengths(schema)
    return {each.name: fixed.get(each.name.lower(), each.type) for each in columns_of_delta(schema)}


def _is_collated(part: Any) -> bool:
    if isinstance(part, list):
        return any(map(_is_collated, part))
    if not isinstance(part, dict):
        return False
    given = part.get(_COLLATIONS, {})
    collations = json.loads(given) if isinstance(given, str) else given
    differs = any(each.rpartition(".")[2] != _BYTEWISE for each in collations.values())
    return differs or any(_is_collated(each) for name, each in part.items() if name != _COLLATIONS)
