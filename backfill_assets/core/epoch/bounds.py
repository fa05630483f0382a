"""Which columns of a data file have bounds (minimum and maximum) in the output's log, in which form, and which are trusted.

Readers skip files by these bounds, so a bound that is not exact hides rows. delta-rs writes bounds of decimals as doubles,
bounds of times in milliseconds, and bounds of floats without NaN. Therefore a property of the table names the columns whose
bounds are exact. delta-rs and Spark write bounds of no other columns, and ignore those that were written before. Every file
has both bounds of a named column, because delta-rs's Arrow dataset finds no rows in a file that lacks one.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["BOUNDED_COLUMNS", "MAX_TEXT", "are_trusted", "boundable", "named", "naming", "restated", "unbounded"]

BOUNDED_COLUMNS = "delta.dataSkippingStatsColumns"
"""The property that names the columns; source: Delta's table properties."""

MAX_TEXT = 64
"""The maximum number of characters in a bound of a string."""

_STATED = ("minValues", "maxValues", "nullCount")
_EXACT = frozenset({"byte", "short", "integer", "long", "date", "string"})
_FLOATING = re.compile("float|double", re.IGNORECASE)
_DECIMAL = re.compile(r"decimal\((\d+)", re.IGNORECASE)
_DOUBLE_DIGITS = 15
_DAY = re.compile(r"(?!0000)\d{4}-\d\d-\d\d")
_NAME = re.compile(r"`((?:[^`]|``)*)`")
_LAST_LETTER, _SURROGATES = 0x10FFFF, range(0xD800, 0xE000)


def boundable(schema: str) -> dict[str, str]:
    """The columns of a Delta schema (JSON) whose bounds are exact, whoever writes them; each with its type."""
    columns = {each["name"]: each["type"] for each in json.loads(schema)["fields"]}
    return {name: kind for name, kind in columns.items() if isinstance(kind, str) and kind in _EXACT}


def are_trusted(kind: str) -> bool:
    """Whether bounds of a type (as Spark names it) are exact in files of other writers, whatever program they used.

    They are not for decimals with more digits than a double can represent, for floats, and for structs of these.
    """
    return not _FLOATING.search(kind) and all(int(digits) <= _DOUBLE_DIGITS for digits in _DECIMAL.findall(kind))


def naming(names: Iterable[str]) -> str:
    """The value of the property for these columns."""
    return ",".join("`" + name.replace("`", "``") + "`" for name in names)


def named(text: str) -> tuple[str, ...]:
    """The columns in a value that `naming` made."""
    return tuple(name.replace("``", "`") for name in _NAME.findall(text))


def unbounded(stats: Mapping[str, Any], columns: Mapping[str, str]) -> set[str]:
    """The columns (with their types) in which a file has values but no bounds. A file without any statistics misleads
    nobody."""
    lows, highs, nulls = (stats.get(kind) or {} for kind in _STATED)
    if not (lows or highs or nulls):
        return set()
    return {
        name
        for name, kind in columns.items()
        if (name not in nulls or nulls[name] != stats.get("numRecords"))
        and None in {_below(lows.get(name), kind), _above(highs.get(name), kind)}
    }


def restated(stats: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """The statistics of a file with bounds of only these columns (with their types); long strings are cut."""
    lows, highs, nulls = (stats.get(kind) or {} for kind in _STATED)
    bounds = {name: (_below(lows.get(name), kind), _above(highs.get(name), kind)) for name, kind in columns.items()}
    both = {name: ends for name, ends in bounds.items() if None not in ends}
    made = {
        "minValues": {name: low for name, (low, _) in both.items()},
        "maxValues": {name: high for name, (_, high) in both.items()},
        "nullCount": {name: nulls[name] for name in columns if name in nulls},
    }
    other = {kind: value for kind, value in stats.items() if kind not in _STATED}
    return {**other, **{kind: values for kind, values in made.items() if values}}


def _below(value: Any, kind: str) -> Any:
    """A bound that is not above a minimum; None if there is none."""
    return value[:MAX_TEXT] if kind == "string" and isinstance(value, str) else _plain(value, kind)


def _above(value: Any, kind: str) -> Any:
    """A bound that is not below a maximum; None if there is none."""
    if kind != "string" or not isinstance(value, str) or len(value) <= MAX_TEXT:
        return _plain(value, kind)
    for at in range(MAX_TEXT - 1, -1, -1):
        if ord(value[at]) < _LAST_LETTER:
            return value[:at] + _next_letter(value[at])
    return None


def _plain(value: Any, kind: str) -> Any:
    """A day that all readers can represent; a value of another type is returned unchanged."""
    return None if kind == "date" and not (isinstance(value, str) and _DAY.fullmatch(value)) else value


def _next_letter(letter: str) -> str:
    code = ord(letter) + 1
    return chr(_SURROGATES.stop if code in _SURROGATES else code)
