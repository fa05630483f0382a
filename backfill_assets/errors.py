"""Every error that users of this package can meet.

One base class. Each error says what happened, naming the object with what was expected and what was found, and then
(`hint`) what to do next. `code` is stable and safe to match on; `facts` holds the same values as attributes of a log
line. Whether a commit happened is never read from an error: the protocol looks at the table again.
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
    "SpoolFullError",
    "StagingError",
    "StateLostError",
    "StillNeededError",
    "StoredFormatError",
    "TopicRecreatedError",
    "UnknownTopicError",
    "UnsettledCommitError",
    "UpstreamChangedError",
    "UpstreamNotLiveError",
    "UpstreamRefusedError",
    "VersionsLostError",
]


class BackfillError(Exception):
    """Base of all errors of this package.

    `message` states the fact; `hint` says what to do next; `facts` are the values named in the message.
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
    """The machine lacks something: a Java runtime, a port, memory, a download; or its Spark is not one to work with."""

    code = "ENVIRONMENT"


class DeclarationError(BackfillError):
    """A source or view is declared wrongly; `facts["argument"]` names the argument."""

    code = "DECLARATION"


class QueryError(DeclarationError):
    """A view's query is not valid, not deterministic, or not one that can be maintained; `reason` is its own code."""

    code = "QUERY"

    def __init__(self, message: str, *, reason: str, hint: str = "", **facts: Any) -> None:
        self.reason = reason
        super().__init__(message, hint=hint, reason=reason, **facts)

    def __str__(self) -> str:
        return super().__str__().replace(f"[{self.code}]", f"[{self.code}:{self.reason}]", 1)


class DefinitionChangedError(BackfillError):
    """The declaration differs from the one that the table was built with."""

    code = "DEFINITION_CHANGED"


class UnknownTopicError(BackfillError):
    """The broker has no topic of that name."""

    code = "UNKNOWN_TOPIC"


class BrokerUnavailableError(BackfillError):
    """No broker answered within the connect time-out; trying again later may help."""

    code = "BROKER_UNAVAILABLE"


class KafkaRefusedError(BackfillError):
    """The broker answered with a refusal, for example for want of rights."""

    code = "KAFKA_REFUSED"


class TopicRecreatedError(BackfillError):
    """The topic was deleted and created again: its offsets mean other records now."""

    code = "TOPIC_RECREATED"


class OffsetsLostError(BackfillError):
    """Offsets that are still to be read are no longer in Kafka, and in no bronze table, or a start lies beyond the end."""

    code = "OFFSETS_LOST"


class LogTruncatedError(OffsetsLostError):
    """A topic's log lost its end, of which something had been read; whether it was filled again or not.

    `facts["ranges"]` has, by partition, the offsets that were read and hold other records now, or none.
    """

    code = "LOG_TRUNCATED"


class UpstreamChangedError(BackfillError):
    """A source was reset, dropped or lost records under a view that reads it."""

    code = "UPSTREAM_CHANGED"


class FencedError(BackfillError):
    """Another run is at work on this table and got ahead; this run stopped without writing."""

    code = "FENCED"


class LeaseHeldError(BackfillError):
    """Another run holds the lease of this table and is alive."""

    code = "LEASE_HELD"


class ExternalWriteError(BackfillError):
    """Something other than this project changed the data of a table that only epochs may change."""

    code = "EXTERNAL_WRITE"


class StateLostError(BackfillError):
    """The ledger does not know a table that has commits: the state store was deleted or is another one."""

    code = "STATE_LOST"


class PositionsLostError(BackfillError):
    """A table's log was cleaned up so far that none of our commits is left in it: how far it is cannot be known."""

    code = "POSITIONS_LOST"


class StoredFormatError(BackfillError):
    """A commit, a plan or another stored document is of another format than this release reads, or is damaged.

    `facts` has the format that was `expected` and the one `found` (None: none that is known), and the document's `place`.
    """

    code = "STORED_FORMAT"


class ComputeError(BackfillError):
    """Spark could not compute an epoch's rows; nothing was committed, and the plan is redone by the next run."""

    code = "COMPUTE"


class PoisonRowError(ComputeError):
    """Rows cannot be computed by a view's query, whenever it is run; `facts["rows"]` names them, each with the reason."""

    code = "POISON_ROW"


class StagingError(BackfillError):
    """Staged files are missing, or do not hold the rows that Spark reported or the table's columns; nothing was committed."""

    code = "STAGING"


class UnsettledCommitError(BackfillError):
    """A commit did not go through within the bounded number of tries; nothing is half-written."""

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
    """A view that another view reads is not live yet; the reading one waits for it and has read nothing."""

    code = "UPSTREAM_NOT_LIVE"


class SpoolFullError(BackfillError):
    """The spool of a view has no room for the next version of an upstream; what was captured stays, nothing is skipped."""

    code = "SPOOL_FULL"


class VersionsLostError(BackfillError):
    """Versions or data files of a Delta table that are still to be read are missing: vacuumed, or their log cleaned up."""

    code = "VERSIONS_LOST"


class StillNeededError(BackfillError):
    """What was to be deleted has still to be read by a view."""

    code = "STILL_NEEDED"


class DuplicateKeyError(BackfillError):
    """A key that is declared to be unique is not; nothing was written."""

    code = "DUPLICATE_KEY"
