"""`build_definitions`: everything Dagster needs for a set of declared sources and views."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from backfill_assets.adapters.kafka.connector import KafkaConnector
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.state.state_store import StateStore
from backfill_assets.adapters.storage.store_errors import is_secret, masked
from backfill_assets.declare.model import Declared, DeltaTable, KafkaSource, MaterializedView, Upstream
from backfill_assets.declare.stores import VARIABLE, check_buckets
from backfill_assets.defs.assets import TABLES_KEY, DeclaredTables, build_assets, in_order
from backfill_assets.defs.checks import build_checks
from backfill_assets.defs.jobs import build_jobs
from backfill_assets.defs.sensors import build_sensors
from backfill_assets.environment import project_root, warehouse_place
from backfill_assets.errors import DeclarationError

__all__ = ["build_definitions", "definitions_at", "registry"]

_OF_CLIENTS = ("password", "secret", "key.pem")
"""How the names of Kafka clients' settings end whose values nothing shows."""


def build_definitions(
    *declared: Upstream, executor: dg.ExecutorDefinition | None = None, resources: Mapping[str, Any] | None = None
) -> dg.Definitions:
    """Build everything that Dagster needs for declared sources and views. Call it once for each code location.

    The result has assets, asset checks, jobs, sensors and resources, and can be merged with other `Definitions`: jobs are
    named `refresh_<name>`, `verify_<name>` or `backfill_<action>`, and resource keys begin with `backfill_`. Relative paths
    start at the project's root, which is found from the calling module's file.

    Args:
        *declared: What `kafka_source`, `delta_table` and `materialized_view` returned. Their upstreams are included
            without being named.
        executor: Runs the steps of jobs; in-process by default.
        resources: Replacements for `backfill_state` (a `StateStore`), `backfill_kafka` (a `KafkaConnector`) and
            `backfill_spark` (a `SparkResource`).

    Returns:
        The definitions, for a module's `defs`.

    Raises:
        DeclarationError: Two tables have the same name or key, two Delta tables in one bucket have different `storage`, or
            `resources` has an unknown key, or a secret that Dagster would show.

    Examples:
        >>> orders = kafka_source("orders", topic="orders", schema="order_id LONG, amount DOUBLE")
        >>> defs = build_definitions(orders)
        >>> "refresh_orders" in {job.name for job in defs.jobs}
        True
    """
    caller = sys._getframe(1).f_globals.get("__file__")
    root = project_root(Path(caller) if caller else Path.cwd())
    return definitions_at(root, declared, executor=executor, resources=resources)


def definitions_at(
    root: Path,
    declared: tuple[Upstream, ...],
    *,
    executor: dg.ExecutorDefinition | None = None,
    resources: Mapping[str, Any] | None = None,
) -> dg.Definitions:
    """Build the definitions of a project whose root folder is known; otherwise as `build_definitions`.

    Args:
        root: The project's root folder.
        declared: What `kafka_source`, `delta_table` and `materialized_view` returned.
        executor: Runs the steps of jobs; in-process by default.
        resources: Replacements for the package's resources.

    Returns:
        The definitions, for a module's `defs`.

    Raises:
        DeclarationError: Two tables have the same name or key, two Delta tables in one bucket have different `storage`, or
            `resources` has an unknown key, or a secret that Dagster would show.

    Examples:
        >>> clicks = kafka_source("clicks", topic="clicks", schema="page STRING")
        >>> sorted(definitions_at(Path.cwd(), (clicks,)).resources)
        ['backfill_kafka', 'backfill_spark', 'backfill_state', 'backfill_tables']
    """
    tables = registry(declared)
    unknown = sorted((resources or {}).keys() - _defaults(root).keys())
    if unknown:
        raise DeclarationError(
            f"build_definitions: argument 'resources' has unknown keys {', '.join(unknown)}",
            hint=f"this package's resources are {', '.join(_defaults(root))}; merge others with Definitions.merge(...)",
            argument="resources",
        )
    used = {**_defaults(root), **(resources or {})}
    _check_unshown(used.values())
    chosen = executor or dg.in_process_executor
    return dg.Definitions(
        assets=build_assets(tables),
        asset_checks=build_checks(tables),
        jobs=build_jobs(tables, chosen),
        sensors=build_sensors(tables),
        resources={**used, TABLES_KEY: DeclaredTables(tables)},
    )


def registry(declared: tuple[Upstream, ...]) -> dict[str, Declared]:
    """All declared tables by name, upstreams included, sources first.

    Args:
        declared: What `kafka_source`, `delta_table` and `materialized_view` returned.

    Returns:
        Sources and views by name. Delta tables are not among them, as this project does not write them.

    Raises:
        DeclarationError: Something else is among them, two tables have the same name or key, or two Delta tables in one
            bucket are declared with different `storage`.

    Examples:
        >>> clicks = kafka_source("clicks", topic="clicks", schema="page STRING")
        >>> list(registry((clicks,)))
        ['clicks']
    """
    found: dict[str, Upstream] = {}
    for each in declared:
        if not isinstance(each, KafkaSource | MaterializedView | DeltaTable):
            raise DeclarationError(
                f"build_definitions: {each!r} is not a source or view",
                hint="pass what kafka_source(...), delta_table(...) and materialized_view(...) return",
                argument="declared",
            )
        for table in _with_upstreams(each):
            if found.setdefault(table.name, table) != table:
                raise DeclarationError(
                    f"build_definitions: there are two tables named {table.name!r}",
                    hint="names are unique across sources, Delta tables and views, as they name tables, jobs and settings",
                    argument="name",
                )
    check_buckets(each for each in found.values() if isinstance(each, DeltaTable))
    ordered = {
        each.name: each for each in in_order(each for each in found.values() if not isinstance(each, DeltaTable))
    }
    _check_keys(ordered)
    return ordered


def _with_upstreams(declared: Upstream) -> Iterator[Upstream]:
    """A table with everything that it reads, upstreams first."""
    if isinstance(declared, MaterializedView):
        for upstream in declared.upstreams:
            yield from _with_upstreams(upstream)
    yield declared


def _check_keys(tables: Mapping[str, Declared]) -> None:
    names: dict[dg.AssetKey, str] = {}
    for name, table in tables.items():
        other = names.setdefault(table.key, name)
        if other != name:
            raise DeclarationError(
                f"build_definitions: {other!r} and {name!r} have the same asset key {table.key.to_user_string()!r}",
                hint="give one of them another `key`",
                argument="key",
            )


def _check_unshown(resources: Iterable[object]) -> None:
    """Refuse secrets that are written into resources: Dagster stores their configuration, and its UI shows it."""
    shown = sorted(name for resource in resources for name in _secrets_of(resource))
    if shown:
        raise DeclarationError(
            f"build_definitions: Dagster would show secrets of resources: {', '.join(shown)}",
            hint="write `env:NAME` there, and set the variable NAME where runs are. A Spark Connect server's address with a "
            "token can be set in SPARK_REMOTE, and the token alone in SPARK_CONNECT_AUTHENTICATE_TOKEN",
            argument="resources",
        )


def _secrets_of(resource: object) -> Iterator[str]:
    """The names of a resource's settings whose values are secrets, and not names of variables."""
    match resource:
        case StateStore():
            settings = {f"storage {name}": value for name, value in resource.storage.items()}
            settings["warehouse"] = resource.warehouse
            yield from (f"StateStore {name}" for name in settings if _shows_secret(name, settings[name]))
        case KafkaConnector():
            given = resource.client_config
            named = (name for name in given if name.endswith(_OF_CLIENTS))
            yield from (f"KafkaConnector {name}" for name in named if _is_literal(given[name]))
        case SparkResource():
            settings = {f"config {name}": value for name, value in resource.config.items()}
            settings["remote"] = resource.remote or ""
            yield from (f"SparkResource {name}" for name in settings if _shows_secret(name, settings[name]))


def _shows_secret(name: str, value: str) -> bool:
    """Whether a setting is one whose value is secret, or has a secret in its value, as an address may have."""
    return _is_literal(value) and (is_secret(name) or masked(value) != value)


def _is_literal(value: str) -> bool:
    return not (isinstance(value, dg.EnvVar) or value.startswith(VARIABLE))


def _defaults(root: Path) -> dict[str, Any]:
    place = str(root)
    return {
        "backfill_state": StateStore(warehouse=warehouse_place(), root=place),
        "backfill_kafka": KafkaConnector(root=place),
        "backfill_spark": SparkResource(root=place),
    }
