"""Keys in Spark SQL: as text that is converted to one spelling, and by their hashes.

As text, only types whose values have exactly one text are supported: whole numbers, decimals, booleans, strings, dates and
times.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation

from backfill_assets.core.progress.positions import NamedKey, OffsetRange
from backfill_assets.query.ddl import Column, literal
from backfill_assets.query.spelling import backquoted

__all__ = ["NAMEABLE", "among_keys", "in_parts", "one_spelling", "part_of_value"]

NAMEABLE = re.compile(r"TINYINT|SMALLINT|INT|BIGINT|DECIMAL\(\d+,\s*\d+\)|BOOLEAN|STRING|DATE|TIMESTAMP|TIMESTAMP_NTZ")
_EXACT = Context(prec=100)
_WHOLE = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def one_spelling(kind: str, text: str) -> str:
    """The one text for a value of a type, however it was written. Errors: `ValueError` if the type has no such value.

    Example:
        >>> one_spelling("INT", "+7"), one_spelling("DECIMAL(5,2)", "1.5"), one_spelling("BOOLEAN", "TRUE")
        ('7', '1.50', 'true')
    """
    match kind:
        case "STRING":
            return text
        case "BOOLEAN":
            return _one_of(text.strip().lower(), "true", "false")
        case "DATE":
            return date.fromisoformat(text.strip()).isoformat()
        case "TIMESTAMP" | "TIMESTAMP_NTZ":
            return _moment(text.strip(), zoned=kind == "TIMESTAMP")
        case _ if kind in _WHOLE:
            return _whole(text.strip(), _WHOLE[kind])
        case _:
            return _decimal(text.strip(), kind)


def among_keys(columns: Sequence[Column], keys: Iterable[NamedKey]) -> str:
    """SQL for whether the key in some columns is one of the named ones, with null equal to null; never null itself.

    All keys have the same columns, which are among `columns`.
    """
    named = list(keys)
    if not named:
        return "FALSE"
    types: Mapping[str, str] = {column.name: column.type for column in columns}
    own = ", ".join(f"{backquoted(name)} AS k{at}" for at, (name, _) in enumerate(named[0]))
    return f"struct({own}) IN ({', '.join(_value(key, types) for key in named)})"


def in_parts(hashed: str, parts: int, taken: OffsetRange) -> str:
    """SQL for whether a hash is in a range of the parts into which all hashes are divided.

    Example:
        >>> in_parts("xxhash64(k)", 64, OffsetRange(start=8, end=16))
        'pmod(xxhash64(k), 64) >= 8 AND pmod(xxhash64(k), 64) < 16'
    """
    part = f"pmod({hashed}, {parts})"
    return f"{part} >= {taken.start} AND {part} < {taken.end}"


def part_of_value(column: str, kind: str, bounds: Sequence[str]) -> str:
    """SQL for the number of the part in which a value of a column (quoted) of a type is, of parts that end with these bounds,
    in their order, and the last one, which also has nulls.

    Example:
        >>> part_of_value("k", "INT", ["5", "9"])
        "IF(k <= CAST('9' AS INT), IF(k <= CAST('5' AS INT), 0, 1), 2)"
    """

    def among(first: int, last: int) -> str:
        if first == last:
            return str(first)
        middle = (first + last) // 2
        bound = f"CAST({literal(bounds[middle])} AS {kind})"
        return f"IF({column} <= {bound}, {among(first, middle)}, {among(middle + 1, last)})"

    return among(0, len(bounds))


def _value(key: NamedKey, types: Mapping[str, str]) -> str:
    values = (
        f"CAST({'NULL' if text is None else literal(text)} AS {types[name]}) AS k{at}"
        for at, (name, text) in enumerate(key)
    )
    return f"struct({', '.join(values)})"


def _one_of(text: str, *allowed: str) -> str:
    if text not in allowed:
        raise ValueError(f"{text!r} is not one of {', '.join(allowed)}")
    return text


def _whole(text: str, bits: int) -> str:
    number = int(text)
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"{text} does not fit")
    return str(number)


def _decimal(text: str, kind: str) -> str:
    precision, scale = map(int, re.findall(r"\d+", kind))
    try:
        number = Decimal(text)
        exact = number.quantize(Decimal(1).scaleb(-scale), context=_EXACT) if number.is_finite() else None
    except InvalidOperation:
        exact = None
    if exact is None or exact != number or exact.adjusted() >= precision - scale:
        raise ValueError(f"{text} is not a {kind}")
    return f"{exact if exact else abs(exact):f}"


def _moment(text: str, *, zoned: bool) -> str:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None and not zoned:
        raise ValueError(f"{text} names a time zone, but the column has none")
    return (
        moment.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ") if moment.tzinfo else moment.isoformat(sep=" ")
    )
