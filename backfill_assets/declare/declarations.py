"""What users call to declare sources, Delta tables and views; each checks its arguments and returns a frozen value.

It reads no data, opens no connection, and imports neither Dagster nor Spark, so declaring is instant and works offline.
"""

from collections.abc import Mapping, Sequence
from typing import Unpack, get_args

from pydantic import BaseModel

from backfill_assets.core.epoch.costs import STRATEGIES, TableStrategy
from backfill_assets.declare.arguments import (
    Start,
    check_choice,
    check_name,
    checked_key,
    checked_order,
    checked_settings,
    checked_start,
    wrong_argument,
)
from backfill_assets.declare.model import (
    Bronze,
    DeclaredStrategy,
    DeltaTable,
    Isolation,
    KafkaSource,
    LabelArguments,
    Labels,
    MaterializedView,
    RecordFormat,
    RefreshMode,
    Upstream,
    is_whole,
)
from backfill_assets.declare.stores import check_buckets, checked_storage
from backfill_assets.errors import DeclarationError, QueryError
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.ddl import Column, parse_schema
from backfill_assets.query.query import Query, analyze, spelled
from backfill_assets.query.standard import standard
from backfill_assets.query.text_checks import check_text

__all__ = ["delta_table", "kafka_source", "materialized_view"]


def delta_table(
    name: str,
    *,
    path: str,
    primary_key: str | Sequence[str] | None = None,
    storage: Mapping[str, str | bool] | BaseModel | None = None,
    **labels: Unpack[LabelArguments],
) -> DeltaTable:
    """Declare a Delta table that already exists, as an upstream of views.

    The table must have its change data feed enabled, or be append-only.

    Args:
        name: The table's name in queries; unique among all declarations.
        path: A folder (a relative path starts at the project's root), or any URI that Delta supports.
        primary_key: The columns that identify a row; required if rows are updated or deleted.
        storage: How to reach the table's store, if it is not the warehouse's or needs other keys: as `StateStore(storage=…)`,
            with `env:NAME` for what is read from the environment. Spark is told the same of a bucket on S3, and of that
            bucket only. By default, the table is reached as the warehouse is.
        **labels: Arguments that Dagster defines: `key` (of the asset that writes the table, so that Dagster shows the
            dependency),
            `description`, `owners`, `tags`, `metadata`, `group_name`, `automation_condition`, `freshness_policy`.

    Returns:
        The declared table, for `upstreams` of `materialized_view`.

    Raises:
        DeclarationError: An argument is wrong; the error names it.

    Examples:
        >>> customers = delta_table("customers", path="lake/customers", primary_key="id")
        >>> customers.primary_key
        ('id',)
    """
    check_name("delta_table", name)
    if not isinstance(path, str) or not path:
        raise wrong_argument("delta_table", name, "path", f"it is {path!r}", "name the table's folder or URI")
    key = checked_key("delta_table", name, primary_key)
    stored = checked_storage(name, path, storage)
    return DeltaTable(name=name, path=path, primary_key=key, labels=Labels(**labels), storage=stored)


def kafka_source(  # noqa: PLR0913  (a public declaration)
    name: str,
    *,
    topic: str,
    schema: str,
    format: RecordFormat = "json",  # noqa: A002  (public name)
    start: Start = "earliest",
    bronze: Bronze = "all",
    isolation: Isolation = "read_committed",
    client_config: Mapping[str, str] | None = None,
    **labels: Unpack[LabelArguments],
) -> KafkaSource:
    """Declare a Kafka topic. It is ingested once, each record exactly once, and shared by any number of views.

    The source is a Delta table, `sources/<name>` in the warehouse, and an asset, `["sources", name]` unless `key` is given.
    It depends on an external asset for the topic, `["kafka", "<topic>_topic"]`.

    Args:
        name: The source's name in queries; unique among all declarations.
        topic: The topic to read.
        schema: A Spark column list, such as `"order_id LONG, at TIMESTAMP"`. With `format="raw"`, a single `STRING` or
            `BINARY` column, which takes the value as it is.
        format: What a record's value is: `"json"`, one object with those columns; or `"raw"`.
        start: Where history begins, for the source and its views: `"earliest"`, `"latest"`, a `datetime` with a time
            zone, or an offset for each partition. It is resolved once, when the source is created.
        bronze: `"all"` keeps all records from `start` on. `"new"` keeps those that arrive after the source was created;
            views read the older ones from Kafka.
        isolation: `"read_committed"` leaves out records of aborted transactions.
        client_config: Kafka client settings under librdkafka's names, in addition to those of the connector. A value
            `env:NAME` is read from the environment.
        **labels: Arguments that Dagster defines: `key`, `description`, `owners`, `tags`, `metadata`, `group_name`,
            `automation_condition`, `freshness_policy`.

    Returns:
        The declared source, for `upstreams` of `materialized_view` and for `build_definitions`.

    Raises:
        DeclarationError: An argument is wrong; the error names it.

    Examples:
        >>> orders = kafka_source("orders", topic="orders", schema="order_id LONG, amount DECIMAL(12,2)")
        >>> [(column.name, column.type) for column in orders.columns]
        [('order_id', 'BIGINT'), ('amount', 'DECIMAL(12,2)')]
    """
    check_name("kafka_source", name)
    check_choice("kafka_source", name, "format", format, get_args(RecordFormat))
    check_choice("kafka_source", name, "bronze", bronze, get_args(Bronze))
    check_choice("kafka_source", name, "isolation", isolation, get_args(Isolation))
    if not isinstance(topic, str) or not topic:
        found = "it is empty" if topic == "" else f"it is {topic!r}"
        raise wrong_argument("kafka_source", name, "topic", found, "name the Kafka topic to read")
    return KafkaSource(
        name=name,
        topic=topic,
        columns=_source_columns(name, schema, format),
        format=format,
        start=checked_start("kafka_source", name, start),
        bronze=bronze,
        isolation=isolation,
        client_config=checked_settings("kafka_source", name, client_config),
        labels=Labels(**labels),
    )


def materialized_view(  # noqa: PLR0913  (a public declaration)
    name: str,
    *,
    query: str,
    upstreams: Sequence[Upstream],
    primary_key: str | Sequence[str] | None = None,
    strategy: DeclaredStrategy = "auto",
    refresh_mode: RefreshMode = "auto",
    backfill_order: Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
    **labels: Unpack[LabelArguments],
) -> MaterializedView:
    """Declare a Delta table that is kept equal to a Spark SQL query over its upstreams.

    Any deterministic query is possible. A row-wise query (`SELECT` expressions with `WHERE`, and `UNION ALL` of such parts)
    and one that aggregates one upstream (`GROUP BY` with `count`, `sum`, `avg`, `min`, `max`) only follow changes. So do
    joins, groups of joined rows, and whatever a key reaches. Other queries are computed over whole tables, and only rows
    that differ are committed (`docs/queries.md`).

    The view's key is the first of these that exists: its groups; `primary_key`; the key of its upstreams, which is kept in
    hidden columns if the query leaves it out; the hash of a row and the number of its copy. For Kafka sources the key is
    where each record came from, `(_partition, _offset)`; views see only records that were parsed without an error
    (`_error IS NULL`).

    Args:
        name: The view's name in queries of other views; the asset is `["views", name]` unless `key` is given.
        query: Spark SQL that names the upstreams.
        upstreams: Kafka sources, Delta tables and other views, in any combination. A query over whole tables, or over sources
            and tables together, reads the tables of its sources, which must keep all records (`bronze="all"`).
        primary_key: Columns of the view that identify a row, for views over Delta tables and views. Over Kafka sources the
            key is already known, and another one is refused.
        strategy: How history is read. Kafka sources have one strategy, `"source"`. Delta tables and views are read
            from a pinned version, in chunks (`"snapshot"`) or in one commit (`"snapshot_once"`); from a pinned version
            while their changes are captured beside the view (`"rearranged"`); or by ranges of their key, always from the
            newest version (`"arrangement"`), which works with any retention. `"auto"` takes the cheapest strategy that
            can finish; `backfill plan` explains the choice.
        refresh_mode: `"auto"` recomputes the view from its full tables, in one commit, when the waiting changes are far
            larger than the tables (2.5 times in bytes), or where no rule is there for them. `"incremental"` follows the
            changes wherever there is a rule, `"incremental_strict"` refuses a query with changes that have none, and
            `"full"` always recomputes the view, and commits what differs; its query may call functions of the clock, such
            as `current_date` and `now()`, and each refresh computes it for a new time.
        backfill_order: Whose history is read before whose: names of upstreams from first to last, or a mapping from a
            name to the names that come before it. An upstream that waits is not read at all.
        **labels: Arguments that Dagster defines: `key`, `description`, `owners`, `tags`, `metadata`, `group_name`,
            `automation_condition`, `freshness_policy`.

    Returns:
        The declared view, for `build_definitions` and for `upstreams` of other views.

    Raises:
        DeclarationError: An argument is wrong; the error names it. Or two of the tables are in one store, and declared
            with different `storage`.
        QueryError: The query cannot be maintained; `reason` is one of the codes in `docs/refusals.md`.

    Examples:
        >>> orders = kafka_source("orders", topic="orders", schema="order_id LONG, amount DECIMAL(12,2)")
        >>> large = materialized_view(
        ...     "large", query="SELECT order_id, amount FROM orders WHERE amount > 1000", upstreams=[orders]
        ... )
        >>> large.target
        'views/large'
    """
    check_name("materialized_view", name)
    check_choice("materialized_view", name, "strategy", strategy, ("auto", *STRATEGIES))
    check_choice("materialized_view", name, "refresh_mode", refresh_mode, get_args(RefreshMode))
    given = _checked_upstreams(name, upstreams)
    own_key = checked_key("materialized_view", name, primary_key)
    words = _in_standard_words(name, query)
    whole = is_whole(words, given, refresh_mode, own_key)
    over_kafka = not whole and all(isinstance(each, KafkaSource) for each in given)
    if strategy != "auto" and (strategy == "source") is not over_kafka:
        fitting = "'source'" if over_kafka else f"one of {', '.join(map(repr, get_args(TableStrategy)))}"
        raise wrong_argument(
            "materialized_view", name, "strategy", f"{strategy!r} does not read such upstreams", f"use {fitting}"
        )
    try:
        text, analyzed = _analyzed(words, given, whole=whole, clock=refresh_mode == "full")
    except QueryError as error:
        raise _of_view(name, error, "" if words == query else words) from None
    if analyzed is not None:
        _check_own_key(name, own_key, analyzed)
    return MaterializedView(
        name=name,
        text=text,
        written=words,
        query=analyzed,
        upstreams=given,
        own_key=own_key,
        strategy=strategy,
        refresh_mode=refresh_mode,
        backfill_order=checked_order("materialized_view", name, backfill_order, [upstream.name for upstream in given]),
        labels=Labels(**labels),
    )


def _of_view(name: str, error: QueryError, read_as: str = "") -> QueryError:
    """The error that a view's query is wrong, with the text that it is about if that is not its author's."""
    message = f"materialized_view {name!r}: {error.message}{f'; the query is read as: {read_as}' if read_as else ''}"
    return QueryError(message, reason=error.reason, hint=error.hint, argument="query")


def _in_standard_words(name: str, query: str) -> str:
    """The query without words that Spark alone has. Errors: `QueryError`."""
    try:
        return standard(query)
    except QueryError as error:
        raise _of_view(name, error) from None


def _check_own_key(name: str, own_key: tuple[str, ...], query: Query) -> None:
    """Over Kafka sources, a view's key is fixed: where a record came from, or its groups."""
    if not own_key or (isinstance(query, AggregateQuery) and set(own_key) == set(query.key_columns)):
        return
    keyed = "a row-wise view over a Kafka source is keyed by (_partition, _offset)"
    if isinstance(query, AggregateQuery):
        keyed = f"an aggregate is keyed by its groups, ({', '.join(query.key_columns)})"
    raise wrong_argument(
        "materialized_view", name, "primary_key", f"{list(own_key)!r} was given, but {keyed}", "leave primary_key out"
    )


def _analyzed(query: str, upstreams: "tuple[Upstream, ...]", *, whole: bool, clock: bool) -> tuple[str, Query | None]:
    """The query's text in one spelling, and what it means where the upstreams' columns are declared."""
    sources = [each for each in upstreams if isinstance(each, KafkaSource)]
    if whole:
        text = spelled(query, [each.name for each in upstreams], whole=True, clock=clock)
        check_text(query)
        _check_kept(sources)
        return text, None
    text = spelled(query, [each.name for each in upstreams])
    check_text(query)
    analyzed = analyze(query, {each.name: each.bronze_columns for each in sources}) if sources else None
    return text, analyzed


def _check_kept(sources: "Sequence[KafkaSource]") -> None:
    """A query over whole tables reads those of its sources, which must then keep all records."""
    for source in sources:
        if source.bronze != "all":
            raise QueryError(
                f"the query reads the table of source {source.name!r}, which keeps only new records (bronze='new')",
                reason="NOT_KEPT",
                hint=f"declare kafka_source({source.name!r}, bronze='all')",
            )


def _source_columns(name: str, schema: str, record_format: RecordFormat) -> tuple[Column, ...]:
    try:
        columns = parse_schema(schema)
    except DeclarationError as error:
        raise wrong_argument("kafka_source", name, "schema", error.message, error.hint) from None
    reserved = sorted(column.name for column in columns if column.name.startswith("_"))
    if reserved:
        raise wrong_argument(
            "kafka_source",
            name,
            "schema",
            f"columns {', '.join(reserved)} begin with an underscore",
            "such names belong to the source's own columns; rename them in the schema",
        )
    if record_format == "raw" and (len(columns) != 1 or columns[0].type not in {"STRING", "BINARY"}):
        raise wrong_argument(
            "kafka_source", name, "schema", f"it is {schema!r}", 'format="raw" takes one STRING or BINARY column'
        )
    return columns


def _checked_upstreams(name: str, upstreams: object) -> "tuple[Upstream, ...]":
    hint = "pass the upstreams that the query names, as made by kafka_source(...), delta_table(...) or materialized_view(...)"
    if not isinstance(upstreams, Sequence) or isinstance(upstreams, str) or not upstreams:
        raise wrong_argument("materialized_view", name, "upstreams", f"it is {upstreams!r}", hint)
    wrong = [each for each in upstreams if not isinstance(each, KafkaSource | DeltaTable | MaterializedView)]
    if wrong:
        raise wrong_argument("materialized_view", name, "upstreams", f"{wrong[0]!r} is not an upstream", hint)
    names = [upstream.name for upstream in upstreams]
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise wrong_argument("materialized_view", name, "upstreams", f"{', '.join(twice)} occurs twice", hint)
    check_buckets(each for each in upstreams if isinstance(each, DeltaTable))
    return tuple(upstreams)
