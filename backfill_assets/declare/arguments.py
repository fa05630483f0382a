"""Checks of arguments that several declarations share. Each error names the declaration, the argument and what was found."""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from backfill_assets.core.progress.order import Order, order_of
from backfill_assets.errors import DeclarationError

__all__ = [
    "Start",
    "check_choice",
    "check_name",
    "checked_key",
    "checked_order",
    "checked_settings",
    "checked_start",
    "wrong_argument",
]

Start: TypeAlias = "Literal['earliest', 'latest'] | datetime | Mapping[int, int]"
"""Where a source's history begins; a mapping gives an offset for each partition."""

_NAME = re.compile(r"[A-Za-z0-9_]+")


def wrong_argument(kind: str, name: object, argument: str, found: str, hint: str) -> DeclarationError:
    """The error about one argument of a declaration.

    Args:
        kind: The function that was called, such as `kafka_source`.
        name: The name that was given to the declaration.
        argument: The argument that is wrong.
        found: What was found, as a clause such as `it is 'x'`.
        hint: What to do instead.

    Returns:
        The error, to be raised by the caller.

    Examples:
        >>> wrong_argument("kafka_source", "orders", "topic", "it is empty", "name the Kafka topic to read").message
        "kafka_source 'orders': argument 'topic' is wrong: it is empty"
    """
    return DeclarationError(f"{kind} {name!r}: argument {argument!r} is wrong: {found}", hint=hint, argument=argument)


def check_name(kind: str, name: object) -> None:
    """Refuse a name that cannot name a table, a job and an asset alike.

    Args:
        kind: The function that was called.
        name: The name that was given.

    Raises:
        DeclarationError: The name has other characters than letters, digits and underscores, or none.

    Examples:
        >>> check_name("kafka_source", "orders_2026")
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise wrong_argument(kind, name, "name", f"it is {name!r}", "use letters, digits and underscores")


def check_choice(kind: str, name: str, argument: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse a value that is not among the allowed ones.

    Args:
        kind: The function that was called.
        name: The name that was given to the declaration.
        argument: The argument that is checked.
        value: The value that was given.
        allowed: All allowed values.

    Raises:
        DeclarationError: The value is not allowed.

    Examples:
        >>> check_choice("kafka_source", "orders", "format", "raw", ["json", "raw"])
    """
    if value not in allowed:
        raise wrong_argument(kind, name, argument, f"it is {value!r}", f"use one of {', '.join(map(repr, allowed))}")


def checked_key(kind: str, name: str, key: object) -> tuple[str, ...]:
    """The columns of a primary key.

    Args:
        kind: The function that was called.
        name: The name that was given to the declaration.
        key: One column's name, several names, or None.

    Returns:
        The names; empty for None.

    Raises:
        DeclarationError: It is something else, or names a column twice.

    Examples:
        >>> checked_key("delta_table", "customers", "id")
        ('id',)
    """
    columns = [key] if isinstance(key, str) else key
    if columns is None:
        return ()
    if not isinstance(columns, Sequence) or not columns or not all(isinstance(each, str) and each for each in columns):
        raise wrong_argument(
            kind, name, "primary_key", f"it is {key!r}", 'use a column\'s name, or several as ["a", "b"]'
        )
    if len(set(columns)) != len(columns):
        raise wrong_argument(kind, name, "primary_key", f"{key!r} names a column twice", "name each column once")
    return tuple(columns)


def checked_order(kind: str, name: str, order: object, upstreams: Collection[str]) -> Order:
    """In which order upstreams are backfilled.

    Args:
        kind: The function that was called.
        name: The name that was given to the declaration.
        order: Names from first to last, a mapping from a name to those that come before it, or None.
        upstreams: The names of the view's upstreams.

    Returns:
        For each upstream that waits, those that come before it; empty for None.

    Raises:
        DeclarationError: It is something else, names what is not an upstream, or has a cycle.

    Examples:
        >>> checked_order("materialized_view", "sales", ["stores", "receipts"], ["receipts", "stores"])
        {'receipts': frozenset({'stores'})}
    """
    hint = 'use ["first", "second"], or {"second": ["first"]}, with names of upstreams'
    if order is None:
        return {}
    if isinstance(order, str) or not isinstance(order, Sequence | Mapping):
        raise wrong_argument(kind, name, "backfill_order", f"it is {order!r}", hint)
    named = (
        [*order, *(each for before in order.values() for each in ([before] if isinstance(before, str) else before))]
        if isinstance(order, Mapping)
        else [*order]
    )
    unknown = [each for each in named if each not in upstreams]
    if unknown:
        found = f"{unknown[0]!r} is none of its upstreams, which are {', '.join(sorted(upstreams))}"
        raise wrong_argument(kind, name, "backfill_order", found, hint)
    try:
        return order_of(order)
    except ValueError as error:
        raise wrong_argument(kind, name, "backfill_order", f"it has a cycle: {error}", hint) from None


def checked_start(kind: str, name: str, start: object) -> Start:
    """Where history begins.

    Args:
        kind: The function that was called.
        name: The name that was given to the declaration.
        start: What was given as `start`.

    Returns:
        The same start; a point in time is converted to UTC.

    Raises:
        DeclarationError: It is no start, or a time without a time zone.

    Examples:
        >>> checked_start("kafka_source", "orders", {0: 1500, 1: 1480})
        {0: 1500, 1: 1480}
    """
    hint = 'use "earliest", "latest", a time zone aware datetime, or offsets as {partition: offset}'
    if start == "earliest":
        return "earliest"
    if start == "latest":
        return "latest"
    if isinstance(start, datetime):
        if start.tzinfo is None:
            raise wrong_argument(kind, name, "start", f"{start!r} has no time zone", hint)
        return start.astimezone(UTC)
    if isinstance(start, Mapping) and start and all(_is_offset(k) and _is_offset(v) for k, v in start.items()):
        return dict(start)
    raise wrong_argument(kind, name, "start", f"it is {start!r}", hint)


def checked_settings(kind: str, name: str, settings: object) -> dict[str, str]:
    """The settings of a Kafka client.

    Args:
        kind: The function that was called.
        name: The name that was given to the declaration.
        settings: Names and values, or None.

    Returns:
        The settings; empty for None.

    Raises:
        DeclarationError: A name or value is not a string. The message never shows values, which may be secrets.

    Examples:
        >>> checked_settings("kafka_source", "orders", {"client.id": "orders"})
        {'client.id': 'orders'}
    """
    hint = "pass names and values as text, such as {'client.id': 'orders', 'sasl.password': 'env:ORDERS_PASSWORD'}"
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise wrong_argument(kind, name, "client_config", f"it is {settings!r}", hint)
    for setting, value in settings.items():
        if not isinstance(setting, str) or not isinstance(value, str):
            found = f"{setting!r} is of type {type(value).__name__}, not text"  # the value may be a secret
            raise wrong_argument(kind, name, "client_config", found, hint)
    return dict(settings)


def _is_offset(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
