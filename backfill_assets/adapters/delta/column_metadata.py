"""What the columns of a Delta table are called in its files, where the table maps names ("Column Mapping" of the protocol).

A column that is dropped and added again, or whose name another one takes, has other values under the name that it had.
"""

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["stored_names"]

_MODE = "delta.columnMapping.mode"
_STORED = "delta.columnMapping.physicalName"


def stored_names(schema: str, configuration: Mapping[str, str | None]) -> dict[str, Any]:
    """What files call each column of a schema (JSON), with the fields inside of it: its own name where none is mapped."""
    mapped = (configuration.get(_MODE) or "none") != "none"
    return _of_fields(json.loads(schema), mapped=mapped)


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
