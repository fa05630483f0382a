"""Every error that users of this package can meet.

All have one base class. Each error says what happened, naming the object with what was expected and what was found, and
what to do next (`hint`). `code` is stable and safe to match on; `facts` holds the same values for structured logs.
Whether a commit happened is never decided from an error: the protocol looks at the table again.
"""

from typing import Any, ClassVar

__all__ = [
    "BackfillError",
    "BrokerUnavailableError",
    "ComputeError",
    "DeclarationError",
    "DefinitionChangedError",
    "DroppedError",
    "DuplicateKeyError",
    "EnvironmentSetupError",
    "ExternalWriteError",
    "FencedError",
    "KafkaRefusedError",
    "LeaseHeldError",
    "LogTruncatedError",
    "NoStrategyError",
    "OffsetsLostError",
    "PoisonRowError",
    "PositionsLostError",
    "QueryError",
    "ReadMismatchError",
    "SparkLostError",
    "SpoolFullError",
    "StagingError",
    "StateLostError",
    "StillNeededError",
    "StoredFormatError",
    "TableFeatureError",
    "TopicRecreatedError",
    "UnknownTopicError",
    "UnsettledCommitError",
    "UpstreamChangedError",
    "UpstreamNotLiveError",
    "UpstreamRefusedError",
    "VersionsLostError",
]


class BackfillError(Exception):
    """Base class of all errors of this package.

    Args:
        message: What happened, with what was expected and what was found.
        hint: What to do next.
        **facts: The values that the message names.

    Examples:
        >>> error = BackfillError("topic 'orders' is empty", hint="send a record", topic="orders")
        >>> print(error)
        [BACKFILL] topic 'orders' is empty
          What to do: send a record
        >>> error.facts
        {'topic': 'orders'}
    """

    code: ClassVar[str] = "BACKFILL"

    def __init__(self, message: str, *, hint: str = "", **facts: Any) -> None:
        self.message = message
        self.hint = hint
        self.facts = facts
        super().__init__(message)

    def __str__(self) -> str:
        text = f"[{self.code}] {self.message}"
        return f"{text}\n  What to do: {self.hint}" if self.hint else text


class EnvironmentSetupError(BackfillError):
    """The machine lacks something (a Java runtime, a port, memory, a download), or its Spark or a store cannot be used."""

    code = "ENVIRONMENT"


class DeclarationError(BackfillError):
    """The declaration of a source or view is wrong; `facts["argument"]` names the argument."""

    code = "DECLARATION"


class QueryError(DeclarationError):
    """A view's query is not valid, not deterministic, or cannot be maintained.

    Args:
        message: What is wrong with the query.
        reason: The code of the reason, as listed in `docs/refusals.md`.
        hint: What to write instead.
        **facts: The values that the message names.

    Examples:
        >>> print(QueryError("it sorts", reason="ORDER_LIMIT", hint="sort when reading the view"))
        [QUERY:ORDER_LIMIT] it sorts
          What to do: sort when reading the view
    """

    code = "QUERY"

    def __init__(self, message: str, *, reason: str, hint: str = "", **facts: Any) -> None:
        self.reason = reason
        super().__init__(message, hint=hint, reason=reason, **facts)

    def __str__(self) -> str:
        return super().__str__().replace(f"[{self.code}]", f"[{self.code}:{self.reason}]", 1)


class DefinitionChangedError(BackfillError):
    """The declaration differs from the one that the table was created with."""

    code = "DEFINITION_CHANGED"


class UnknownTopicError(BackfillError):
    """The broker has no topic of that name."""

    code = "UNKNOWN_TOPIC"


class BrokerUnavailableError(BackfillError):
    """No broker answered in time; trying again later may help."""

    code = "BROKER_UNAVAILABLE"


class KafkaRefusedError(BackfillError):
    """The broker refused a request, for example because the client lacks rights."""

    code = "KAFKA_REFUSED"


class TopicRecreatedError(BackfillError):
    """The topic was deleted and created again: its offsets now mean other records."""

    code = "TOPIC_RECREATED"


class OffsetsLostError(BackfillError):
    """Offsets that still have to be read are gone from Kafka and in no bronze table, or a start lies beyond the end."""

    code = "OFFSETS_LOST"


class LogTruncatedError(OffsetsLostError):
    """A topic's log lost records at its end that had already been read, whether or not new ones took their offsets.

    `facts["ranges"]` has, for each partition, the offsets that were read and now hold other records or none.
    """

    code = "LOG_TRUNCATED"


class UpstreamChangedError(BackfillError):
    """A source was reset, dropped or lost records under a view that reads it."""

    code = "UPSTREAM_CHANGED"


class FencedError(BackfillError):
    """Another run works on this table and is ahead; this run stopped without writing."""

    code = "FENCED"


class LeaseHeldError(BackfillError):
    """Another run holds the lease of this table and is still alive."""

    code = "LEASE_HELD"


class ExternalWriteError(BackfillError):
    """Something other than this project changed the data of a table that only epochs may change."""

    code = "EXTERNAL_WRITE"


class StateLostError(BackfillError):
    """The ledger does not know a table that has commits: the state store was deleted, or it is another one."""

    code = "STATE_LOST"


class PositionsLostError(BackfillError):
    """A table's log was cleaned up until no commit of this project was left in it, so its positions are unknown."""

    code = "POSITIONS_LOST"


class StoredFormatError(BackfillError):
    """A commit, a plan or another stored document is of another format than this release reads, or is damaged.

    `facts` has the format that was `expected` and the one `found` (None: none that is known), and the document's `place`.
    """

    code = "STORED_FORMAT"


class TableFeatureError(BackfillError):
    """Somebody gave an output a feature of Delta's protocol that this project does not write, or cannot read.

    `facts` has the `features`, if they are known.
    """

    code = "TABLE_FEATURE"


class ComputeError(BackfillError):
    """Spark could not compute an epoch's rows; nothing was committed, and the next run repeats the plan."""

    code = "COMPUTE"


class SparkLostError(ComputeError):
    """A Spark Connect server has lost a run's session, or does not answer; nothing was committed.

    A run attaches again and repeats the epoch, a few times.
    """

    code = "SPARK_LOST"


class PoisonRowError(ComputeError):
    """A view's query fails on values of certain rows; `facts["rows"]` names those that can be told, each with the reason.

    Rows of a table may be corrected there: if something has changed in it, an epoch over all of that is tried instead.
    """

    code = "POISON_ROW"


class ReadMismatchError(BackfillError):
    """Spark read fewer or more rows of an upstream than there are; nothing was committed.

    `facts` has the `table`, the least and the most number of rows that were `expected`, and the number `found`.
    """

    code = "READ_MISMATCH"


class StagingError(BackfillError):
    """Staged files are missing, or lack rows that Spark reported or columns of the table; nothing was committed."""

    code = "STAGING"


class UnsettledCommitError(BackfillError):
    """A commit did not succeed within a limited number of attempts; nothing is half-written."""

    code = "UNSETTLED_COMMIT"


class DroppedError(BackfillError):
    """The table does not exist: it was dropped, or never created."""

    code = "DROPPED"


class UpstreamRefusedError(BackfillError):
    """A Delta table cannot be an upstream as it is; `facts["reason"]` says why, such as `NO_CHANGE_FEED` or `NO_KEY`."""

    code = "UPSTREAM_REFUSED"


class NoStrategyError(BackfillError):
    """No strategy reads a view's upstreams safely, or the one asked for cannot; `facts["reason"]` says why."""

    code = "NO_STRATEGY"


class UpstreamNotLiveError(BackfillError):
    """A view's upstream is a view that is not live yet; this view waits for it and has read nothing."""

    code = "UPSTREAM_NOT_LIVE"


class SpoolFullError(BackfillError):
    """The spool of a view has no room for the next version of an upstream; what was captured stays, nothing is skipped."""

    code = "SPOOL_FULL"


class VersionsLostError(BackfillError):
    """Versions or data files of a Delta table that still have to be read are gone: vacuumed, or their log cleaned up."""

    code = "VERSIONS_LOST"


class StillNeededError(BackfillError):
    """A view still has to read what was to be deleted; nothing was deleted."""

    code = "STILL_NEEDED"


class DuplicateKeyError(BackfillError):
    """A key that is declared to be unique is not; nothing was written."""

    code = "DUPLICATE_KEY"
