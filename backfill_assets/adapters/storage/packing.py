"""Long maps by number (positions and offset ranges of a topic's partitions) as columns, compressed, in a JSON document.

A document with such maps has them all under `#packed`; in their places, it has `{"#": <number>}`. The packed maps are
base64 of zlib of JSON:

    {"keys": [[<difference to the key before>, ...], ...],
     "maps": [{"name", "keys": <number>, "fields": <whether values are objects>, "columns": [column, ...]}, ...]}

A column is `{"name", "values"}`; or, for whole numbers, `{"name", "base", "values"}`: the difference from the column `base`
(its number among all columns of all maps; null: from zeros), and of this the difference from the row before. So what
several maps have in common is stored once.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from typing import Any

__all__ = ["READABLE_ENTRIES", "pack", "unpack"]

READABLE_ENTRIES = 100
"""Maps with at most this many entries are not packed, so that people can read them."""

_MAX_DIGITS = 20

_TRIED_ROWS = 256
"""This many rows are compared to find the column that is most similar to another one."""

_PLACE, _PACKED = "#", "#packed"


def pack(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with its long maps packed; unchanged if it has none."""
    if any(key.startswith(_PLACE) for key in _keys(document)):
        return dict(document)
    packing = _Packing()
    placed = {key: packing.placed(key, value) for key, value in document.items()}
    return {**placed, _PACKED: packing.text()} if packing.maps else placed


def unpack(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document as it was before `pack`. Errors: `ValueError` if the packed data is damaged."""
    if _PACKED not in document:
        return dict(document)
    try:
        packed = json.loads(zlib.decompress(base64.b64decode(document[_PACKED], validate=True)))
        maps = _maps(packed["keys"], packed["maps"])
        return {key: _restored(value, maps) for key, value in document.items() if key != _PACKED}
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, zlib.error) as error:
        raise ValueError(f"its packed maps are damaged ({type(error).__name__}: {error})") from None


@dataclass
class _Packing:
    """The maps of one document, in the order in which they are found."""

    keys: list[list[int]] = field(default_factory=list)
    maps: list[dict[str, Any]] = field(default_factory=list)
    columns: list[tuple[int, Sequence[int] | None]] = field(default_factory=list)
    """For each column, the number of its keys, and its values if they are whole numbers."""

    def placed(self, name: str, value: Any) -> Any:
        """A value with its long maps replaced by their places."""
        if isinstance(value, list):
            return [self.placed(name, each) for each in value]
        if not isinstance(value, dict):
            return value
        if len(value) > READABLE_ENTRIES and all(map(_is_number, value)):
            return {_PLACE: self._add(name, value)}
        return {key: self.placed(key, each) for key, each in value.items()}

    def text(self) -> str:
        """All maps, packed."""
        whole = {"keys": [_steps(each) for each in self.keys], "maps": self.maps}
        return base64.b64encode(zlib.compress(json.dumps(whole, separators=(",", ":")).encode())).decode()

    def _add(self, name: str, found: Mapping[str, Any]) -> int:
        keys, rows = [int(key) for key in found], list(found.values())
        if keys not in self.keys:
            self.keys.append(keys)
        number = self.keys.index(keys)
        fields = _fields(rows)
        named = {each: [row[each] for row in rows] for each in fields} if fields else {"": rows}
        columns = [self._column(number, each, values) for each, values in named.items()]
        self.maps.append({"name": name, "keys": number, "fields": bool(fields), "columns": columns})
        return len(self.maps) - 1

    def _column(self, keys: int, name: str, values: list[Any]) -> dict[str, Any]:
        if not all(type(each) is int for each in values):
            self.columns.append((keys, None))
            return {"name": name, "values": values}
        base = self._base(keys, values)
        self.columns.append((keys, values))
        return {"name": name, "base": base, "values": self._differences(values, base)}

    def _base(self, keys: int, values: Sequence[int]) -> int | None:
        """The column with the same keys that is most similar to a column, according to its first rows."""
        alike = [at for at, (of, other) in enumerate(self.columns) if of == keys and other is not None]
        first = values[:_TRIED_ROWS]
        return min([None, *alike], key=lambda base: sum(map(len, map(str, self._differences(first, base)))))

    def _differences(self, values: Sequence[int], base: int | None) -> list[int]:
        other = None if base is None else self.columns[base][1]
        return _steps(values if other is None else [a - b for a, b in zip(values, other, strict=False)])


def _maps(keys: Sequence[Sequence[int]], packed: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    columns: list[list[Any]] = []
    maps = []
    for each in packed:
        names = [str(key) for key in accumulate(keys[each["keys"]])]
        first = len(columns)
        for column in each["columns"]:
            columns.append(_values(column, columns, len(names)))
        own = columns[first:]
        fields = [column["name"] for column in each["columns"]]
        rows = [dict(zip(fields, row, strict=True)) for row in zip(*own, strict=True)] if each["fields"] else own[0]
        maps.append(dict(zip(names, rows, strict=True)))
    return maps


def _values(column: Mapping[str, Any], columns: Sequence[Sequence[int]], rows: int) -> list[Any]:
    if "base" not in column:
        return list(column["values"])
    other = [0] * rows if column["base"] is None else columns[column["base"]]
    return [a + b for a, b in zip(accumulate(column["values"]), other, strict=True)]


def _restored(value: Any, maps: Sequence[Any]) -> Any:
    match value:
        case {"#": int(number)} if len(value) == 1:
            return maps[number]
        case dict():
            return {key: _restored(each, maps) for key, each in value.items()}
        case list():
            return [_restored(each, maps) for each in value]
        case _:
            return value


def _fields(rows: Sequence[Any]) -> list[str]:
    """The fields that all rows have, in their order; none if rows are not objects, or have different fields."""
    first = list(rows[0]) if isinstance(rows[0], dict) else []
    return first if all(isinstance(row, dict) and list(row) == first for row in rows) else []


def _steps(values: Sequence[int]) -> list[int]:
    return [after - before for before, after in pairwise(chain([0], values))]


def _is_number(key: str) -> bool:
    return len(key) < _MAX_DIGITS and key.isascii() and key.isdigit() and str(int(key)) == key


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(each)
