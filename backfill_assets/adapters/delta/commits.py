"""The commits of a Delta table's log as they are written: their actions, their times, and what ours say of themselves."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow.fs as pafs

from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.records import CommitRecord

__all__ = [
    "Actions",
    "changes_data",
    "commit_timestamp",
    "commits_of",
    "committed_at",
    "metadata_of",
    "newest_record",
    "ours_in",
    "read_commit",
    "record_of",
]

Actions = list[dict[str, Any]]
"""What one commit does, as the Delta protocol has it."""


def commits_of(location: TableLocation, newest: int) -> Iterator[tuple[int, Actions]]:
    """The log's commits from `newest` back to the oldest that is still there."""
    files = location.files()
    for version in range(newest, -1, -1):
        actions = read_commit(files, version)
        if actions is None:
            return
        yield version, actions


def committed_at(location: TableLocation, number: int, actions: Sequence[Mapping[str, Any]]) -> int:
    """When a commit was made, in milliseconds since 1970: as it says itself, else as its file does."""
    stated = commit_timestamp(actions)
    if stated is not None:
        return stated
    (file,) = location.files().get_file_info([f"_delta_log/{number:020d}.json"])
    return int(file.mtime.timestamp() * 1000) if file.mtime else 0


def commit_timestamp(actions: Sequence[Mapping[str, Any]]) -> int | None:
    """When a commit says that it was made, in milliseconds since 1970; None where it does not say."""
    info: Mapping[str, Any] = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
    stated = info.get("inCommitTimestamp") or info.get("timestamp")
    return None if stated is None else int(stated)


def read_commit(files: pafs.FileSystem, version: int) -> Actions | None:
    """The actions of one commit; None where the log has it no more."""
    try:
        with files.open_input_stream(f"_delta_log/{version:020d}.json") as stream:
            return [json.loads(line) for line in stream.read().splitlines() if line]
    except FileNotFoundError:
        return None


def ours_in(actions: Actions) -> dict[str, Any] | None:
    """What a commit's metadata says of an epoch, as plain JSON; None for a commit that is not ours."""
    info: Mapping[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    try:
        found = json.loads(info.get("userMetadata") or "{}").get("backfill")
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, dict) else None


def record_of(actions: Actions, target: str) -> CommitRecord | None:
    """The record in a commit's metadata, if the commit is ours and speaks of this table (not of a copied one)."""
    found = ours_in(actions)
    return CommitRecord.model_validate(found) if found and found.get("target") == target else None


def newest_record(location: TableLocation, version: int, target: str) -> CommitRecord | None:
    """What the newest commit of ours at or below a version says; None where the log has none (any more)."""
    records = (record_of(actions, target) for _, actions in commits_of(location, version))
    return next((record for record in records if record is not None), None)


def changes_data(actions: Actions) -> bool:
    """Whether a commit added or removed rows; maintenance only moves them."""
    return any(
        action[kind].get("dataChange", True) for action in actions for kind in ("add", "remove") if kind in action
    )


def metadata_of(record: CommitRecord) -> dict[str, str]:
    """A commit's own metadata, under the name that Spark shows in DESCRIBE HISTORY."""
    return {"userMetadata": json.dumps({"backfill": record.model_dump(mode="json")})}
