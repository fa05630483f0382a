"""Column lists in Spark's syntax: read by sqlglot, checked, and converted to one canonical text.

It defines which columns a source's schema may have. Two lists with the same meaning give equal columns, so their text
can be compared and hashed. Spark is not needed.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from backfill_assets.errors import DeclarationError

__all__ = ["Column", "columns_of_delta", "ddl", "invalid_name_characters", "literal", "parse_schema", "quoted"]

_SIMPLE: Final = {
    exp.DataType.Type.BOOLEAN: "BOOLEAN",
    exp.DataType.Type.TINYINT: "TINYINT",
    exp.DataType.Type.SMALLINT: "SMALLINT",
    exp.DataType.Type.INT: "INT",
    exp.DataType.Type.BIGINT: "BIGINT",
    exp.DataType.Type.FLOAT: "FLOAT",
    exp.DataType.Type.DOUBLE: "DOUBLE",
    exp.DataType.Type.DATE: "DATE",
    exp.DataType.Type.TIMESTAMPTZ: "TIMESTAMP",
    exp.DataType.Type.TIMESTAMPLTZ: "TIMESTAMP",
    exp.DataType.Type.TIMESTAMP: "TIMESTAMP",
    exp.DataType.Type.TIMESTAMPNTZ: "TIMESTAMP_NTZ",
    exp.DataType.Type.TEXT: "STRING",
    exp.DataType.Type.BINARY: "BINARY",
}
_TYPES: Final = (
    "BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, DECIMAL(p,s), STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, "
    "ARRAY<…>, MAP<STRING, …>, STRUCT<…>"
)
_DELTA_NAMES: Final = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}
_MAX_PRECISION: Final = 38
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXAMPLE: Final = 'write names and types, such as "order_id LONG, at TIMESTAMP"'
# Delta refuses these in a column's name unless the table maps columns, which other readers may not understand.
_NOT_IN_NAMES: Final = frozenset(" ,;{}()\n\t=")


@dataclass(frozen=True)
class Column:
    """A named column; `type` is Spark's text of its type, canonical if `parse_schema` returned it."""

    name: str
    type: str


def parse_schema(text: str) -> tuple[Column, ...]:
    """The columns of a Spark column list such as `"order_id LONG, tags ARRAY<STRUCT<a: INT>>"`.

    Types are returned in upper case with Spark's own names (`LONG` is `BIGINT`), so equal schemas give equal columns.
    All columns are nullable.

    Errors: `DeclarationError` for a syntax error, an unknown type or one that Delta or JSON does not support, a
    duplicate name (names are compared without case, as in Spark) or one that Delta refuses, a constraint, and an empty
    list.
    """
    if not text.strip():
        raise DeclarationError("the column list has no columns", hint=_EXAMPLE)
    try:
        # Parsed as the fields of a struct, so that nothing in the text can end the list early.
        struct = parse_one(f"STRUCT<{text}>", into=exp.DataType, dialect="spark")
    except SqlglotError:
        raise DeclarationError(
            f"the column list {text!r} cannot be read", hint=f"{_EXAMPLE}; types are {_TYPES}"
        ) from None
    return _fields(struct, inside="")


def ddl(columns: Iterable[Column]) -> str:
    """The column list as one text that Spark's own parser accepts."""
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in columns)


def quoted(name: str) -> str:
    """The name as written in Spark SQL; in backquotes if it needs them."""
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A string as written in Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def invalid_name_characters(name: str) -> str:
    """The characters of a column name that Delta does not accept; empty for a valid name."""
    return "".join(sorted(_NOT_IN_NAMES.intersection(name)))


def _fields(struct: exp.DataType, *, inside: str) -> tuple[Column, ...]:
    fields: list[Column] = []
    for field in struct.expressions:
        if not isinstance(field, exp.ColumnDef) or not isinstance(field.args.get("kind"), exp.DataType):
            raise DeclarationError(f"{field.sql('spark')!r} is not a column with a name and a type", hint=_EXAMPLE)
        path = f"{inside}.{field.name}" if inside else field.name
        _check_name(field.name, path, fields)
        if field.args.get("constraints"):
            extra = " ".join(each.sql("spark") for each in field.args["constraints"])
            raise DeclarationError(
                f"column {path!r} has more than a name and a type: {extra!r}",
                hint="leave it out: JSON may leave a field out, so columns are nullable and have no constraints",
            )
        fields.append(Column(field.name, _type(field.args["kind"], path)))
    return tuple(fields)


def _check_name(name: str, path: str, before: list[Column]) -> None:
    if any(name.lower() == other.name.lower() for other in before):
        raise DeclarationError(
            f"column {path!r} occurs twice", hint="rename one of them; Spark does not tell names apart by case"
        )
    if not name or (wrong := invalid_name_characters(name)):
        raise DeclarationError(
            f"column {path!r} has characters in its name that Delta does not accept: {wrong if name else 'none'!r}",
            hint="use letters, digits and underscores",
        )


def _type(kind: exp.DataType, path: str) -> str:
    inner = kind.expressions
    match kind.this:
        case exp.DataType.Type.DECIMAL:
            return _decimal([each.name for each in inner], path)
        case exp.DataType.Type.ARRAY if len(inner) == 1:
            return f"ARRAY<{_type(inner[0], f'{path}[]')}>"
        case exp.DataType.Type.MAP if len(inner) == 2:
            return _map(inner[0], inner[1], path)
        case exp.DataType.Type.STRUCT if inner:
            fields = _fields(kind, inside=path)
            return f"STRUCT<{', '.join(f'{quoted(field.name)}: {field.type}' for field in fields)}>"
        case simple if simple in _SIMPLE and not inner:
            return _SIMPLE[simple]
        case _:
            raise DeclarationError(
                f"column {path!r} has type {kind.sql('spark')}, which a source cannot have", hint=f"use one of {_TYPES}"
            )


def _decimal(written: list[str], path: str) -> str:
    precision, scale = (*written, "10")[0], (*written[1:], "0")[0]
    whole = precision.isdecimal() and scale.isdecimal()
    if not (whole and 1 <= int(precision) <= _MAX_PRECISION and int(scale) <= int(precision)):
        raise DeclarationError(
            f"column {path!r} has type DECIMAL({precision}, {scale}), which does not exist",
            hint=f"the precision is 1 to {_MAX_PRECISION}, the scale at most the precision",
        )
    return f"DECIMAL({precision},{scale})"


def _map(key: exp.DataType, value: exp.DataType, path: str) -> str:
    if key.this is not exp.DataType.Type.TEXT:
        raise DeclarationError(
            f"column {path!r} is a MAP with keys of type {key.sql('spark')}",
            hint="the keys of a JSON object are STRING",
        )
    return f"MAP<STRING, {_type(value, f'{path} (value)')}>"


def columns_of_delta(schema: str) -> tuple[Column, ...]:
    """The columns of a Delta table, from its schema as the log has it (JSON)."""
    return tuple(Column(each["name"], _delta_type(each["type"])) for each in json.loads(schema)["fields"])


def _delta_type(kind: Any) -> str:
    match kind:
        case {"type": "struct", "fields": fields}:
            parts = (f"{quoted(each['name'])}: {_delta_type(each['type'])}" for each in fields)
            return f"STRUCT<{', '.join(parts)}>"
        case {"type": "array", "elementType": element}:
            return f"ARRAY<{_delta_type(element)}>"
        case {"type": "map", "keyType": key, "valueType": value}:
            return f"MAP<{_delta_type(key)}, {_delta_type(value)}>"
        case _:
            return _DELTA_NAMES.get(str(kind), str(kind).upper())
