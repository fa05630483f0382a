"""Why a strategy is not chosen, or has a risk: one stable code each."""

from enum import StrEnum

from backfill_assets.core.epoch.costs import Strategy
from backfill_assets.core.progress.value import Value

__all__ = ["FORECAST", "HARD", "Code", "Risk", "RuledOut"]


class Code(StrEnum):
    """Reason codes of the choice; `docs/refusals.md` lists them all."""

    WRONG_UPSTREAM = "WRONG_UPSTREAM"
    NO_CHANGE_FEED = "NO_CHANGE_FEED"
    NO_KEY = "NO_KEY"
    KEY_NOT_SORTABLE = "KEY_NOT_SORTABLE"
    WHOLE_TABLES = "WHOLE_TABLES"

    RETENTION_TOO_SHORT = "RETENTION_TOO_SHORT"
    NOT_CONVERGING = "NOT_CONVERGING"
    SPOOL_TOO_SMALL = "SPOOL_TOO_SMALL"
    TOO_LARGE_AT_ONCE = "TOO_LARGE_AT_ONCE"

    RETENTION_TIGHT = "RETENTION_TIGHT"
    BARELY_CONVERGING = "BARELY_CONVERGING"
    MEMORY_TIGHT = "MEMORY_TIGHT"
    MANY_PASSES = "MANY_PASSES"
    CLUSTERING_UNKNOWN = "CLUSTERING_UNKNOWN"
    UPDATES_WITHOUT_KEY = "UPDATES_WITHOUT_KEY"
    NOT_RESUMABLE = "NOT_RESUMABLE"


HARD = (
    Code.WRONG_UPSTREAM,
    Code.NO_CHANGE_FEED,
    Code.NO_KEY,
    Code.KEY_NOT_SORTABLE,
    Code.WHOLE_TABLES,
)
"""Codes of what cannot work: refused even if it is requested."""
FORECAST = (Code.RETENTION_TOO_SHORT, Code.NOT_CONVERGING, Code.TOO_LARGE_AT_ONCE, Code.SPOOL_TOO_SMALL)
"""Codes of what is expected to fail, the worst first: never chosen, but a warning if it is requested."""


class Risk(Value):
    """What may go wrong with a usable strategy, in one sentence."""

    code: Code
    message: str


class RuledOut(Value):
    """Why a strategy is not chosen, and what would have to change."""

    strategy: Strategy
    code: Code
    reason: str
    remedy: str
