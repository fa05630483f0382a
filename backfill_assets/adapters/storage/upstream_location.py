"""Where a Delta table is that somebody else writes, and how its store is reached: by delta-rs, and by Spark."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deltalake import DeltaTable

from backfill_assets.adapters.storage.access import options_of_delta, settings_beside
from backfill_assets.adapters.storage.addresses import address
from backfill_assets.adapters.storage.asked_stores import AskedStores
from backfill_assets.adapters.storage.options import storage_options
from backfill_assets.adapters.storage.warehouse import TableLocation, Warehouse
from backfill_assets.declare.model import DeltaTable as Declared
from backfill_assets.declare.stores import LOCAL, provider_of, storage_of, store_of
from backfill_assets.errors import DeclarationError

__all__ = ["TableElsewhere", "located"]

_DECODED = re.compile(r"\\|%[0-9A-Fa-f]{2}")
"""What delta-rs 1.6 takes for another character."""


@dataclass(frozen=True, kw_only=True)
class TableElsewhere(TableLocation):
    """The address of a table in another store than the warehouse's.

    Attributes:
        name: The name that the table was declared with.
        spark_settings: What a Spark session has to know to reach the store, besides what reaches the warehouse.
        asked: Asks the table's store before delta-rs does, which would wait for minutes if it does not answer.
    """

    name: str
    spark_settings: Mapping[str, str] = field(repr=False)
    asked: AskedStores = field(repr=False, compare=False)

    @property
    def store(self) -> str:
        """What Spark reaches in one way with it (`store_of`)."""
        return store_of(self.uri)

    def load(self, version: int | None = None) -> DeltaTable | None:
        """The table, at its newest or the given version; None if it does not exist. Errors: as of any table."""
        self.ask()
        return super().load(version)

    def ask(self) -> None:
        """Ask the table's store whether it can be read, once for a run."""
        self.asked.check(f"table {self.name!r}", self.objects())


def located(table: Declared, *, warehouse: Warehouse, root: Path, asked: AskedStores) -> TableLocation:
    """The address of a declared Delta table.

    Args:
        table: The declaration.
        warehouse: The warehouse of the project, as which a table without storage of its own is reached.
        root: The folder at which relative paths start.
        asked: Asks the table's store whether it can be read.

    Raises:
        DeclarationError: Its path or its storage cannot be used, or its storage differs from that of the warehouse, which is
            in the same bucket.
        EnvironmentSetupError: An environment variable that its storage names is not set.
    """
    place = Warehouse(uri=address(table.path, root))
    if odd := _DECODED.search(place.uri):
        raise DeclarationError(
            f"delta_table {table.name!r} is at {place.uri}, whose {odd.group()!r} delta-rs takes for another character",
            hint="move or copy the table to a path without backslashes, and percent signs before two hexadecimal digits",
            argument="path",
        )
    options = _options(table, place.uri, warehouse)
    if place.is_local or store_of(place.uri) == store_of(warehouse.uri):
        if not place.is_local and options != warehouse.storage_options:
            raise _reached_otherwise(table, options, warehouse)
        return TableLocation(uri=place.uri, storage_options=options)
    settings = _spark_settings(place.uri, options, warehouse)
    return TableElsewhere(uri=place.uri, storage_options=options, name=table.name, spark_settings=settings, asked=asked)


def _options(table: Declared, uri: str, warehouse: Warehouse) -> Mapping[str, str]:
    with storage_of(f"delta_table {table.name!r}"):
        if table.storage is None and provider_of(uri) == provider_of(warehouse.uri):
            return options_of_delta(uri, warehouse.storage_options, {})
        return storage_options(table.storage or {"provider": LOCAL}, uri=uri)


def _reached_otherwise(table: Declared, options: Mapping[str, str], warehouse: Warehouse) -> DeclarationError:
    held = warehouse.storage_options
    names = sorted(name for name in {*options, *held} if options.get(name) != held.get(name))
    return DeclarationError(
        f"delta_table {table.name!r} is in the store of the warehouse, {warehouse.uri}, but is declared to be reached "
        f"otherwise: expected the same storage, found other values of {', '.join(names)}",
        hint="leave storage out of delta_table(...): Spark reaches a store in one way",
        argument="storage",
    )


def _spark_settings(uri: str, options: Mapping[str, str], warehouse: Warehouse) -> Mapping[str, str]:
    """What Spark is told of the table's store; nothing if it is reached as the warehouse is, whose settings are general."""
    general = warehouse.spark_settings if provider_of(uri) == provider_of(warehouse.uri) else {}
    if general and options == warehouse.storage_options:
        return {}
    return settings_beside(uri, options, general)
