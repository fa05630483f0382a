"""What a table's log says about its epochs, and whether somebody else has changed data since the last one, or before it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from deltalake import Schema

from backfill_assets.adapters.delta.commits import (
    Actions,
    changes_data,
    commits_of,
    is_made_here,
    record_of,
    staged_folder_of,
)
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, TableState

__all__ = ["EpochsInLog"]


@dataclass
class EpochsInLog:
    """Reads the log of one table back to its newest epochs. `life` is the last that was seen there, in whatever format."""

    location: TableLocation
    target: str
    life: str = field(default="", init=False)

    def state(self, version: int) -> TableState:
        """What the log says from this version back."""
        external = None
        described: list[tuple[int, str]] = []
        commits = commits_of(self.location, version)
        for at, actions in commits:
            ours = staged_folder_of(actions, self.target)
            self.life = self.life if ours is None else ours.incarnation
            record = record_of(actions, self.target, at)
            if record is not None:
                found = (self._before(record, commits), external, self._reshaped(at, described))
                external = min((each for each in found if each is not None), default=None)
                return TableState(version=version, record=record, at=at, external=external)
            if changes_data(actions):
                external = at
            described += _described(at, actions)
        return TableState(version=version, external=external)

    def _before(self, record: CommitRecord, older: Iterator[tuple[int, Actions]]) -> int | None:
        """The version that came between a record and the one that it continues, or took its place; None if there is none, or
        the log does not go back so far. A writer that puts no commits conditionally may replace one that is there."""
        if record.kind not in {CommitKind.EPOCH, CommitKind.RESTATE}:
            return None  # it begins or ends a life, whatever was there
        before = record.epoch - (record.kind is CommitKind.EPOCH)
        changed = others = None
        for version, actions in older:
            ours = staged_folder_of(actions, self.target)
            if ours is not None:
                continues = (ours.incarnation, ours.epoch) == (record.incarnation, before)
                return changed if continues else changed or others
            others = others if is_made_here(actions) else version
            changed = version if changes_data(actions) else changed
        return changed

    def _reshaped(self, since: int, described: list[tuple[int, str]]) -> int | None:
        """The first version after this project's commit `since` that changed the columns; properties may change."""
        before = self.location.load(version=since) if described else None
        if before is None:
            return None
        known = _columns(before.schema())
        return min((at for at, schema in described if _columns(Schema.from_json(schema)) != known), default=None)


def _described(at: int, actions: Actions) -> list[tuple[int, str]]:
    """The version of a commit with each schema that it sets for the table. What this project sets beside its epochs are
    properties."""
    if is_made_here(actions):
        return []
    return [(at, action["metaData"]["schemaString"]) for action in actions if "metaData" in action]


def _columns(schema: Schema) -> list[tuple[object, ...]]:
    """What the columns of a table are, without what is said about them, such as comments."""
    return [(each.name, each.type, each.nullable) for each in schema.fields]
