"""Reads the commits in a Delta table's log: their actions, their times, and what this project's commits record."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from backfill_assets.adapters.storage.documents import COMMIT
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.core.epoch.staged_folders import StagedFolder
from backfill_assets.errors import StoredFormatError

__all__ = [
    "ENGINE",
    "Actions",
    "changes_data",
    "commit_timestamp",
    "commits_of",
    "committed_at",
    "is_made_here",
    "log_text",
    "metadata_of",
    "newest_record",
    "ours_in",
    "read_commit",
    "readable_records",
    "recent_records",
    "record_of",
    "staged_folder_of",
]

ENGINE = "backfill-assets"
"""How commits that are written here name their writer."""

Actions = list[dict[str, Any]]
"""What one commit does, in the format of the Delta protocol."""

_FEW = 6


def log_text(value: object) -> str:
    """A value as JSON for the log, without escapes: delta-rs 1.6 decodes many pairs of them to other letters, and bounds of
    texts would lie too low."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a pair, which UTF-8 does not have
        return json.dumps(value)
    return text


def commits_of(location: TableLocation, newest: int) -> Iterator[tuple[int, Actions]]:
    """The log's commits from `newest` back to the oldest that still exists."""
    for version in range(newest, -1, -1):
        actions = read_commit(location, version)
        if actions is None:
            return
        yield version, actions


def committed_at(location: TableLocation, number: int, actions: Sequence[Mapping[str, Any]]) -> int:
    """When a commit was made, in milliseconds since 1970: according to itself, otherwise to its file."""
    stated = commit_timestamp(actions)
    if stated is not None:
        return stated
    (file,) = location.files().get_file_info([f"_delta_log/{number:020d}.json"])
    return int(file.mtime.timestamp() * 1000) if file.mtime else 0


def commit_timestamp(actions: Sequence[Mapping[str, Any]]) -> int | None:
    """When a commit says that it was made, in milliseconds since 1970; None if it does not say."""
    info: Mapping[str, Any] = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
    stated = info.get("inCommitTimestamp") or info.get("timestamp")
    return None if stated is None else int(stated)


def read_commit(location: TableLocation, version: int, *, again: bool = False) -> Actions | None:
    """The actions of one commit; None if the log no longer has it. With `again` as the log has it now, even if it was
    loaded."""
    content = location.content(f"_delta_log/{version:020d}.json", again=again)
    return None if content is None else [json.loads(line) for line in content.splitlines() if line]


def ours_in(actions: Actions) -> dict[str, Any] | None:
    """What a commit's metadata says about an epoch, as plain JSON; None for a commit that this project did not make."""
    info: Mapping[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    try:
        found = json.loads(info.get("userMetadata") or "{}").get("backfill")
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, dict) else None


def record_of(actions: Actions, target: str, version: int) -> CommitRecord | None:
    """The record in a commit's metadata, if this project made the commit for this table (a table's log may be a copy).

    Errors: `StoredFormatError`.
    """
    found = ours_in(actions)
    if not found or found.get("target") != target:
        return None
    return COMMIT.read(found, CommitRecord.model_validate, target=target, place=f"version {version} of the table")


def staged_folder_of(actions: Actions, target: str) -> StagedFolder | None:
    """The staged folder from which a commit of this project took its files, whatever its format; None if it has none.

    All formats have these three keys, so any release can delete the folders and end the lives that they name.
    """
    found = ours_in(actions) or {}
    if found.get("target") != target:
        return None
    match found:
        case {"incarnation": str(incarnation), "epoch": int(epoch), "attempt": str(attempt)}:
            return StagedFolder(incarnation=incarnation, epoch=epoch, attempt=attempt)
    return None


def readable_records(location: TableLocation, newest: int, target: str) -> Iterator[tuple[int, Actions, CommitRecord]]:
    """The commits of this project from version `newest` back, as far as this release can read them, each with its
    version."""
    for version, actions in commits_of(location, newest):
        try:
            record = record_of(actions, target, version)
        except StoredFormatError:
            return
        if record is not None:
            yield version, actions, record


def recent_records(location: TableLocation, newest: int, target: str) -> list[CommitRecord]:
    """The records of the last few commits of this project from version `newest` back, newest first: what is learned from them
    should cost few reads."""
    return [record for _, _, record in islice(readable_records(location, newest, target), _FEW)]


def newest_record(location: TableLocation, version: int, target: str) -> CommitRecord | None:
    """The record of this project's newest commit at or below a version; None if the log has none (any more)."""
    records = (record_of(actions, target, at) for at, actions in commits_of(location, version))
    return next((record for record in records if record is not None), None)


def is_made_here(actions: Actions) -> bool:
    """Whether this project wrote a commit's entry itself."""
    return any(action["commitInfo"].get("engineInfo") == ENGINE for action in actions if "commitInfo" in action)


def changes_data(actions: Actions) -> bool:
    """Whether a commit added or removed rows; maintenance only moves them."""
    return any(
        action[kind].get("dataChange", True) for action in actions for kind in ("add", "remove") if kind in action
    )


def metadata_of(record: CommitRecord) -> dict[str, str]:
    """A commit's own metadata, under the name that Spark shows in DESCRIBE HISTORY."""
    return {"userMetadata": json.dumps({"backfill": COMMIT.written(record.model_dump(mode="json"))})}
