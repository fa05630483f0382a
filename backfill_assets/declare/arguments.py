"""Checks of arguments that all declarations share; each error names the declaration, the argument and what was found."""

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
"""Where a source's history begins; offsets by partition."""

_NAME = re.compile(r"[A-Za-z0-9_]+")


def wrong_argument(kind: str, name: object, argument: str, found: str, hint: str) -> DeclarationError:
    """The error about one argument of a declaration of some kind."""
    return DeclarationError(f"{kind} {name!r}: argument {argument!r} is wrong: {found}", hint=hint, argument=argument)


def check_name(kind: str, name: object) -> None:
    """Refuse a name that could not name a table, a job and an asset alike."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise wrong_argument(kind, name, "name", f"it is {name!r}", "use letters, digits and underscores")


def check_choice(kind: str, name: str, argument: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse a value that is none of those allowed."""
    if value not in allowed:
        raise wrong_argument(kind, name, argument, f"it is {value!r}", f"use one of {', '.join(map(repr, allowed))}")


def checked_key(kind: str, name: str, key: object) -> tuple[str, ...]:
    """The columns of a primary key, given as one name or several; none for None."""
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
    """In which order upstreams are backfilled: names from first to last, or what each comes after; empty for None."""
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
        raise wrong_argument(kind, name, "backfill_order", f"it goes in a circle: {error}", hint) from None


def checked_start(kind: str, name: str, start: object) -> Start:
    """Where history begins; a point in time in UTC. Errors: `DeclarationError`."""
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
    """A client's settings, all of them text. Errors: `DeclarationError`."""
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
