"""Which settings of a Spark session can change results, and what is done about each. This module does not use Spark.

Spark and Delta have more than a thousand settings that a cluster, a server or others in the process may have set, and
hundreds of them change the result of a query, which rows are read, or what a merge writes. So a session starts from Spark's
own defaults, except for what is `PINNED` and what is `OPEN`. All others are unset, including those that are still unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["OPEN", "PINNED", "Changes", "Unsettled", "changes", "is_open", "not_open", "pinned", "unsettled"]

CLOSED = ("spark.sql.", "spark.databricks.delta.", "spark.databricks.io.")
"""Settings with these prefixes are unset unless they are pinned or open. Others belong to the JVM or to storage."""

REDACTED = "spark.sql.redaction.string.regex"
KAFKA_OPTIONS = r'key: "kafka\.[^"]*"\s*value: "(?:[^"\\]|\\.)*"'
"""How Spark Connect shows the options of a Kafka reader, including secrets, in its UI and its events."""

UNSHOWN = "spark.sql.redaction.options.regex"
KEYS_OF_ACCOUNTS = r"(?i)url|^fs\.azure\..*(key|secret|token)"
"""Settings that Spark is not to show, and would: it does not take `fs.azure.account.key…` for a secret by itself."""

EXTENSIONS = "spark.sql.extensions"
CATALOG = "spark.sql.catalog.spark_catalog"
REQUIRED = {
    EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
    CATALOG: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""What adds Delta to Spark; it cannot be set in an existing session. Each is a list of classes."""

PINNED: Mapping[str, str] = {
    # Their defaults depend on the environment and the machine that Spark was started on.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # delta-rs and Parquet readers outside Spark need microseconds, not the old INT96.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Delta would refuse versions older than the retention of removed files, even if all their files exist. A view that
    # was not refreshed for a week still has to continue there; whether the files exist is checked before they are read.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    # Files of a task become visible only when the whole job commits, so files of a failed attempt are never staged.
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    # Otherwise Spark looks, before it reads a file, for the folder in which a stream would list what it has written, and
    # would read only what is listed there.
    "spark.sql.streaming.fileStreamSink.ignoreMetadata": "true",
    # Otherwise Spark puts its own settings, or variables of the environment, into texts with ${...}.
    "spark.sql.variable.substitute": "false",
    # Kafka secrets are options of its reader.
    REDACTED: KAFKA_OPTIONS,
    UNSHOWN: KEYS_OF_ACCOUNTS,
}
"""Settings that must differ from Spark's defaults, or have no default."""

OPEN: Mapping[str, tuple[str, ...]] = {
    "how work is cut into tasks": (
        "spark.sql.shuffle.partitions",
        "spark.sql.leafNodeDefaultParallelism",
        "spark.sql.files.maxPartitionBytes",
        "spark.sql.files.maxPartitionNum",
        "spark.sql.files.minPartitionNum",
        "spark.sql.files.openCostInBytes",
        "spark.sql.maxSinglePartitionBytes",
        "spark.sql.sources.parallelPartitionDiscovery.",
        "spark.sql.limit.",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes",
        "spark.sql.adaptive.coalescePartitions.",
        "spark.sql.adaptive.localShuffleReader.",
        "spark.sql.adaptive.skewJoin.",
        "spark.databricks.delta.snapshotPartitions",
    ),
    "how tables are joined, and what is kept in memory for it": (
        "spark.sql.autoBroadcastJoinThreshold",
        "spark.sql.adaptive.autoBroadcastJoinThreshold",
        "spark.sql.broadcastTimeout",
        "spark.sql.maxBroadcastTableSize",
        "spark.sql.join.preferSortMergeJoin",
        "spark.sql.shuffledHashJoinFactor",
        "spark.sql.sortMergeJoinExec.",
        "spark.sql.cartesianProductExec.",
        "spark.sql.sort.enableRadixSort",
        "spark.sql.objectHashAggregate.",
        "spark.sql.inMemoryColumnarStorage.",
        "spark.sql.columnVector.",
        "spark.sql.cache.serializer",
        "spark.sql.defaultCacheStorageLevel",
        "spark.sql.parquet.columnarReaderBatchSize",
        "spark.sql.broadcastExchange.",
        "spark.sql.shuffleExchange.",
        "spark.sql.subquery.",
        "spark.sql.resultQueryStage.",
    ),
    "whether plans are compiled or interpreted": ("spark.sql.codegen.",),
    "how files are compressed, and how an object store commits them": (
        "spark.sql.parquet.compression.codec",
        "spark.sql.parquet.output.committer.class",
        "spark.sql.sources.commitProtocolClass",
        "spark.sql.sources.outputCommitterClass",
    ),
    "where catalogs and libraries are; tables are named by their paths": (
        EXTENSIONS,
        "spark.sql.extensions.test.",
        "spark.sql.catalog.",
        "spark.sql.catalogImplementation",
        "spark.sql.warehouse.dir",
        "spark.sql.globalTempDatabase",
        "spark.sql.hive.",
        "spark.sql.maven.",
        "spark.sql.artifact.",
        "spark.sql.defaultUrlStreamHandlerFactory.",
        "spark.sql.sources.disabledJdbcConnProviderList",
        "spark.sql.sources.schemaStringLengthThreshold",
    ),
    "how much of the past is remembered": (
        "spark.sql.ui.",
        "spark.sql.connect.",
        "spark.sql.event.",
        "spark.sql.debug",
        "spark.sql.queryExecutionListeners",
        "spark.sql.metadataCacheTTLSeconds",
        "spark.sql.filesourceTableRelationCacheSize",
        "spark.databricks.delta.delta.log.",
        "spark.databricks.delta.snapshotCache.",
    ),
    "how many threads Delta has": (
        "spark.databricks.delta.catalog.update.threadPoolSize",
        "spark.databricks.delta.checkpointV2.threadpool.size",
        "spark.databricks.delta.commitMetrics.threadPoolSize",
        "spark.databricks.delta.coordinatedCommits.getCommits.threadPoolSize",
    ),
    "what streams and other servers do, of which nothing is used here": (
        "spark.sql.streaming.",
        "spark.sql.thriftServer.",
        "spark.sql.thriftserver.",
        "spark.sql.legacy.sessionInitWithConfigDefaults",
    ),
}
"""Settings that may stay as they were found: rows are the same. Each reason has names, and prefixes that end in a dot."""


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The changes to be made to a session."""

    set: Mapping[str, str]
    unset: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Unsettled:
    """A setting that a session keeps; `expected` is None for Spark's own default, `found` is None for a setting not set."""

    name: str
    expected: str | None
    found: str | None


def is_open(name: str) -> bool:
    """Whether a setting may stay as it was found."""
    return not name.startswith(CLOSED) or any(map(name.startswith, _PREFIXES)) or name in _NAMES


def not_open(config: Mapping[str, str]) -> dict[str, str | None]:
    """What a user may not set, with the value it has instead (None: Spark's own default); the pinned value may be set."""
    return {
        name: PINNED.get(name)
        for name, value in config.items()
        if (name in PINNED or not is_open(name)) and value != PINNED.get(name)
    }


def pinned(found: Mapping[str, str]) -> dict[str, str]:
    """What is pinned in a session with these settings: what others redact is redacted too."""
    theirs = {REDACTED: found.get(REDACTED) or found.get("spark.redaction.string.regex"), UNSHOWN: found.get(UNSHOWN)}
    added = {name: each for name, each in theirs.items() if each and each != PINNED[name]}
    return {**PINNED, **{name: f"{PINNED[name]}|{each}" for name, each in added.items()}}


def changes(found: Mapping[str, str], wanted: Mapping[str, str]) -> Changes:
    """The changes that give a session with the settings `found` what is `wanted`, what is open, and Spark's own defaults."""
    return Changes(
        set={name: value for name, value in wanted.items() if found.get(name) != value},
        unset=tuple(sorted(name for name in found if name not in wanted and not is_open(name))),
    )


def unsettled(found: Mapping[str, str], wanted: Mapping[str, str]) -> list[Unsettled]:
    """What a session still keeps after `changes`, and what it lacks of Delta."""
    left = changes(found, wanted)
    settings = {**dict.fromkeys(left.unset), **left.set}
    lacking = {name: value for name, value in REQUIRED.items() if value not in _classes(found.get(name))}
    return [
        Unsettled(name=name, expected=expected, found=found.get(name))
        for name, expected in sorted({**settings, **lacking}.items())
    ]


def _classes(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",")]


_ALL_OPEN = [name for names in OPEN.values() for name in names]
_PREFIXES = tuple(name for name in _ALL_OPEN if name.endswith("."))
_NAMES = frozenset(_ALL_OPEN)
