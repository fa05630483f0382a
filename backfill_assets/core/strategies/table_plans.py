"""What follows from a plan over Delta tables for the rows that it computes."""

from backfill_assets.core.epoch.records import Plan
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.progress.reads import ChangesRead, HashRead, KeyRead, SkipRead, SnapshotRead, SpoolRead

__all__ = ["by_hashes", "chunk_places", "is_first_chunk", "may_meet_old_rows"]


def chunk_places(plan: Plan) -> list[int]:
    """The places of a query over several tables that a plan binds to a chunk of history."""
    assert isinstance(plan.before, SnapshotPosition)
    assert plan.before.driving is not None
    chunks = {each.source for each in plan.reads if isinstance(each, SnapshotRead)}
    return [at for at, name in sorted(plan.before.driving.places.items()) if name in chunks]


def by_hashes(plan: Plan) -> bool:
    """Whether a plan computes parts of the hashes of a key."""
    return any(isinstance(each, HashRead) for each in plan.reads)


def is_first_chunk(plan: Plan) -> bool:
    """Whether nothing of the history has been read before."""
    assert isinstance(plan.before, SnapshotPosition)
    return not any(bucket.next for table in plan.before.tables.values() for bucket in table.buckets.values())


def may_meet_old_rows(plan: Plan) -> bool:
    """Whether several rows may have the same key. In one version, whose keys were checked to be unique, they cannot."""
    assert isinstance(plan.before, SnapshotPosition)
    pinned = {name: table.pinned for name, table in plan.before.tables.items()}
    return any(
        isinstance(read, ChangesRead | SpoolRead | SkipRead)
        or (isinstance(read, KeyRead) and read.version != pinned[read.source])
        for read in plan.consumed
    )
