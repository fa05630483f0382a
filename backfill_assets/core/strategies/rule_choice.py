"""Which rule a view over whole tables takes for the changes of an epoch, and why it is computed in full where it is."""

from collections.abc import Callable
from dataclasses import dataclass

from backfill_assets.core.epoch.records import Rule, WhyFull

__all__ = ["MOST_CHANGED", "Changes", "chosen_rule"]

MOST_CHANGED = 3
"""Changes are followed where all tables hold this many times their rows. Beyond a third, computing everything costs less."""


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What there is to follow: `rows` that changed, in tables that have `held` so many; whether rows are `left_out` of what
    is read; and whether files and feeds tell what changed, which is asked last."""

    rows: int
    held: int
    left_out: bool
    readable: Callable[[], bool]


def chosen_rule(rule: Rule, mode: str, changes: Changes) -> tuple[Rule, WhyFull]:
    """The rule to take, of which `rule` is the one that the query has for these changes, under a view's refresh mode.

    Example:
        >>> few = Changes(rows=1, held=100, left_out=False, readable=lambda: True)
        >>> chosen_rule("linear", "auto", few), chosen_rule("linear", "full", few)
        (('linear', ''), ('full', 'refresh_mode'))
    """
    if mode == "full":
        return "full", "refresh_mode"
    if not changes.rows:
        return "full", "first"
    if rule == "full":
        return "full", "no_rule"
    if changes.left_out:
        return "full", "rows_left_out"
    if mode == "auto" and MOST_CHANGED * changes.rows > changes.held:
        return "full", "many_changes"
    return (rule, "") if changes.readable() else ("full", "changes_lost")
