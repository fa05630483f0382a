"""What one commit of a Delta table changed, as its entry in the log says it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from backfill_assets.adapters.delta.log_replay import DataFile

__all__ = ["BYTES_OF_ROW", "Changed", "changed", "changed_bytes", "changed_rows", "is_data_change"]

BYTES_OF_ROW = 50
"""The assumed size of a changed row in a file whose number of rows is not in the log."""

_METRICS: Final = {
    "numtargetrowsinserted": 1,
    "numtargetrowsdeleted": 1,
    "numtargetrowsupdated": 2,
    "numdeletedrows": 1,
    "numupdatedrows": 2,
}
"""The metrics of `MERGE`, `DELETE` and `UPDATE`, and how many rows of a change data feed each of the rows gives."""

_MOST_DIGITS: Final = 15
"""A metric with more digits is no count."""


@dataclass(frozen=True, kw_only=True)
class Changed:
    """What a version's log entry says about changed rows; `feed` are the files of the change data feed, each with its size.
    `restored` if it brought an older version back; `incomplete` if its feed may lack changes, and is none of these files."""

    feed: Mapping[str, int]
    added: tuple[DataFile, ...]
    removed: tuple[DataFile, ...]
    restored: bool = False
    incomplete: bool = False

    @property
    def needed(self) -> Iterable[str]:
        """The files with the changes: its change files if there are any, otherwise those that it added and removed."""
        return tuple(self.feed) or tuple(path for each in (*self.added, *self.removed) for path in each.needed)

    @property
    def is_plain(self) -> bool:
        """Whether the files alone define the changes: change files, or new files without hidden rows; where the feed is
        incomplete, also those that they replace."""
        whole = self.incomplete or not self.removed
        hides = any(each.deleted for each in (*self.added, *self.removed))
        return bool(self.feed) or (whole and not hides)


def is_data_change(action: Mapping[str, Any], kind: str) -> bool:
    """Whether an action of this kind, `add` or `remove`, changed rows; maintenance only moves them."""
    return kind in action and bool(action[kind].get("dataChange", True))


def changed_rows(actions: Sequence[Mapping[str, Any]]) -> int:
    """How many rows come and go by a commit, according to the log: exact for whole files, and where the writer tells what it
    has counted; approximate for other parts of files."""
    added = {each["add"]["path"]: each["add"] for each in actions if is_data_change(each, "add")}
    removed = {each["remove"]["path"]: each["remove"] for each in actions if is_data_change(each, "remove")}
    if feed := list(_feed(actions)):
        return _counted(actions) or sum(max(1, each["size"] // BYTES_OF_ROW) for each in feed)
    rows = 0
    for path in {*added, *removed}:
        if path in added and path in removed:  # only the deletion vector differs
            rows += max(1, abs(DataFile(added[path]).deleted - DataFile(removed[path]).deleted))
        else:
            rows += _stated(added.get(path) or removed[path])
    return rows


def _counted(actions: Sequence[Mapping[str, Any]]) -> int:
    """How many rows the writer of a commit says that it has inserted, deleted and, as they come and go, updated; 0 where it
    does not. Spark and delta-rs spell these metrics in two ways."""
    info: Mapping[str, Any] = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
    metrics = info.get("operationMetrics")
    if not isinstance(metrics, Mapping):
        return 0
    texts = {name.replace("_", "").lower(): str(each) for name, each in metrics.items()}
    told = {name: text for name, text in texts.items() if text.isdecimal() and len(text) <= _MOST_DIGITS}
    return sum(times * int(told[name]) for name, times in _METRICS.items() if name in told)


def changed_bytes(actions: Sequence[Mapping[str, Any]]) -> int:
    """The size of the files with a commit's changes, as far as it is in the log."""
    feed = list(_feed(actions))
    whole = [each[kind] for kind in ("add", "remove") for each in actions if is_data_change(each, kind)]
    return sum(int(each.get("size") or 0) for each in feed or whole)


def _stated(action: Mapping[str, Any]) -> int:
    rows = json.loads(action.get("stats") or "{}").get("numRecords")
    estimate = int(action.get("size") or 0) // BYTES_OF_ROW
    return max(1, estimate) if rows is None else int(rows)


def changed(actions: Sequence[Mapping[str, Any]]) -> Changed:
    """What a version's log entry says about changed rows."""
    return Changed(
        feed={each["path"]: int(each["size"]) for each in _feed(actions)},
        added=tuple(DataFile(each["add"]) for each in actions if is_data_change(each, "add")),
        removed=tuple(DataFile(each["remove"]) for each in actions if is_data_change(each, "remove")),
        restored=any(each.get("commitInfo", {}).get("operation") == "RESTORE" for each in actions),
        incomplete=_is_incomplete(actions),
    )


def _feed(actions: Sequence[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """The files of a change data feed that has all changes."""
    return () if _is_incomplete(actions) else (each["cdc"] for each in actions if "cdc" in each)


def _is_incomplete(actions: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the change data feed of a commit may lack changes: an `UPDATE` by delta-rs leaves out a row that becomes equal
    to another one of the files that it writes anew."""
    info: Mapping[str, Any] = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
    return info.get("operation") == "UPDATE" and str(info.get("engineInfo")).startswith("delta-rs")
