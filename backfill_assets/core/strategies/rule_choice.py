"""Which rule a view over whole tables takes for the changes of an epoch, and why it is computed in full where it is."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Rule, WhyFull
from backfill_assets.core.progress.positions import SnapshotPosition

__all__ = [
    "LARGE",
    "MOST_CHANGED",
    "MOST_CHANGED_UNREAD",
    "Changes",
    "chosen_rule",
    "expected_seconds",
    "is_replaced",
    "often_in_full",
    "reach_of_changes",
]

MOST_CHANGED = 3
"""Changes are followed where all tables hold this many times their rows. Beyond a third, computing everything costs less."""

MOST_CHANGED_UNREAD = 20
"""The same of a view that no other one reads, over tables of at least `LARGE` rows, where its own epochs do not tell more
(`expected_seconds`): its rows are replaced then without a look at those that it holds. Measured: at a hundredth of the rows a
rule costs about as much as that, at a tenth two or three times as much."""

LARGE = 500_000
"""Rows of all tables together. Of fewer, anything takes a second or two."""

_TRIES, _TRIED_EVERY = 3, 10
_TIMES_LEARNED = 20
"""How many times as many rows as an epoch had its seconds tell about."""


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What there is to follow: `rows` that changed, in tables that have `held` so many; whether the view `is_read` by others,
    which follow its changes; whether rows are `left_out` of what is read; how many rows of the tables each changed row is
    expected to `reach` by its keys; whether a value that the rule counts on is expected to be `moved`, or rows to be
    `lacking`. Asked last: whether there may be `nulls` where the rule allows none, and whether files and feeds tell what
    changed. `seconds` gives how long an epoch is expected to take by the rule, and in full; None where that is not known."""

    rows: int
    held: int
    left_out: bool
    readable: Callable[[], bool]
    reach: float = 1.0
    moved: bool = False
    lacking: bool = False
    is_read: bool = True
    nulls: Callable[[], bool] = lambda: False
    seconds: Callable[[], tuple[float, float] | None] = lambda: None

    def are_many(self, rows: float) -> bool:
        """Whether it costs less to compute everything than to follow changes that reach so many rows."""
        if self.is_read or self.held < LARGE:
            return MOST_CHANGED * rows > self.held
        known = self.seconds()
        return MOST_CHANGED_UNREAD * rows > self.held if known is None else known[0] > known[1]


def chosen_rule(rule: Rule, mode: str, changes: Changes) -> tuple[Rule, WhyFull]:
    """The rule to take, of which `rule` is the one that the query has for these changes, under a view's refresh mode.

    Example:
        >>> few = Changes(rows=1, held=100, left_out=False, readable=lambda: True)
        >>> chosen_rule("linear", "auto", few), chosen_rule("linear", "full", few)
        (('linear', ''), ('full', 'refresh_mode'))
    """
    is_auto = mode == "auto"
    against: tuple[tuple[bool, WhyFull], ...] = (
        (mode == "full", "refresh_mode"),
        (not changes.rows, "first"),
        (rule == "full", "no_rule"),
        (changes.left_out, "rows_left_out"),
        (is_auto and changes.are_many(changes.rows), "many_changes"),
        (is_auto and changes.are_many(changes.rows * changes.reach), "keys_reach_many"),
        (is_auto and changes.moved, "parameters"),
        (is_auto and changes.lacking, "first_rows"),
    )
    for holds, why in against:
        if holds:
            return "full", why
    if changes.nulls():
        return "full", "nulls"
    return (rule, "") if changes.readable() else ("full", "changes_lost")


def is_replaced(why: WhyFull, changes: Changes) -> bool:
    """Whether a view that is computed in full, for this reason, is replaced without a comparison with the rows that it holds.
    Nobody is known to read what changes in it then, and a comparison costs more than to write it.

    Example:
        >>> many = Changes(rows=LARGE, held=LARGE, left_out=False, readable=lambda: True, is_read=False)
        >>> is_replaced("many_changes", many), is_replaced("no_rule", many)
        (True, False)
    """
    return why in {"many_changes", "keys_reach_many"} and not changes.is_read and changes.held >= LARGE


def expected_seconds(
    records: Sequence[CommitRecord], changed: Collection[str], rows: int
) -> tuple[float, float] | None:
    """How long an epoch is expected to take by a rule, and in full: in proportion to the fastest of the largest epochs with
    changes of just the same tables (those with half as many rows as any), and as long as the newest one in full. None where
    there was none, or only with far fewer rows.

    Args:
        records: A table's newest commits, newest first.
        changed: The upstreams that changed.
        rows: How many rows changed.
    """
    in_full = [_seconds(each) for each in records if each.rule == "full" and each.rows_written]
    by_rule = [
        (after.rows_read, _seconds(after))
        for after, before in pairwise(records)
        if after.rule not in {"", "full"} and after.rows_read and _changed(before, after) == set(changed)
    ]
    most = max((many for many, _ in by_rule), default=0)
    if not in_full or rows > _TIMES_LEARNED * most:
        return None
    return rows * min(seconds / many for many, seconds in by_rule if 2 * many >= most), in_full[0]


def _seconds(record: CommitRecord) -> float:
    return record.finished_at - record.started_at


def reach_of_changes(records: Sequence[CommitRecord], changed: Collection[str]) -> float:
    """How many rows of all tables each changed row has reached by its keys, the median of earlier epochs with changes of just
    the same tables. 1 if there was none: then the rule is tried.

    Args:
        records: A table's newest commits, newest first.
        changed: The upstreams that changed.
    """
    found = [
        after.rows_reached / after.rows_read
        for after, before in pairwise(records)
        if after.keys_touched and after.rows_read and _changed(before, after) == set(changed)
    ]
    return max(1.0, median(found)) if found else 1.0


def often_in_full(records: Sequence[CommitRecord], changed: Collection[str], why: WhyFull) -> bool:
    """Whether an epoch is expected to be in full for a reason that is only found on the way, so that trying would only cost:
    the last three epochs with changes of just the same upstreams were. In every tenth epoch it is tried again.

    Args:
        records: A table's newest commits, newest first.
        changed: The upstreams that changed.
        why: `parameters`: a subquery for one value gives another one; `first_rows`: too few of them are left.
    """
    alike = [after.why_full for after, before in pairwise(records) if _changed(before, after) == set(changed)]
    return alike[:_TRIES] == [why] * _TRIES and (records[0].epoch + 1) % _TRIED_EVERY != 0


def _changed(before: CommitRecord, after: CommitRecord) -> set[str]:
    """The upstreams of which an epoch consumed versions; none if the records do not follow each other."""
    old, new = before.position, after.position
    follows = after.kind is CommitKind.EPOCH and after.incarnation == before.incarnation
    if not (follows and isinstance(old, SnapshotPosition) and isinstance(new, SnapshotPosition)):
        return set()
    return {
        name for name, table in new.tables.items() if name in old.tables and table.version > old.tables[name].version
    }
