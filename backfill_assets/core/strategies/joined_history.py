"""Strategy `snapshot` for a query over several tables: its history in chunks, resumable anywhere.

The files of some tables, which drive the history, are read chunk by chunk, as `snapshot` reads them. Each chunk is joined
with all rows of the other tables at their pinned versions. The query is linear in the driving places, so what all chunks
give together is what the query gives for the pinned versions. Where no table can drive it, a key may (`hashed_history`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from backfill_assets.core.epoch.ports import UpstreamState
from backfill_assets.core.progress.driving import Driving
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.progress.reads import LookupRead
from backfill_assets.core.strategies.hashed_history import begun_parts, next_parts
from backfill_assets.core.strategies.snapshot import SnapshotHistory
from backfill_assets.core.strategies.table_views import Begun, EpochBudget, Step, begun
from backfill_assets.core.strategies.whole_history import WholeHistory, at_once

__all__ = ["JoinedHistory"]


@dataclass(frozen=True, kw_only=True)
class JoinedHistory(SnapshotHistory):
    """`table_views.History` over the files of the tables that drive a query.

    `drive` returns the places that are to drive the query, and with which tables each is joined, if its tables have so many
    rows; None if nothing can drive it.
    """

    drive: Callable[[Mapping[str, int]], Driving | None]

    def begin(self, offers: Mapping[str, UpstreamState]) -> Begun:
        """Pin the present versions, and distribute the files of those that drive the history to buckets.

        If these have no rows, everything is read at once: a query may return a row for empty tables.
        """
        rows = {name: sum(self.tables.files(name, offer.version)) for name, offer in offers.items()}
        driving = self.drive(rows)
        names = set(driving.places.values()) if driving is not None else set()
        if driving is None or not any(rows[name] for name in names):
            return WholeHistory(tables=self.tables).begin(offers)
        driven = {name: offer for name, offer in offers.items() if name in names}
        chunks = (
            Begun.each(driven, lambda name, offer: (begun_parts(offer), rows[name]))
            if driving.hashes
            else super().begin(driven)
        )
        whole = {name: begun(offer, []) for name, offer in offers.items() if name not in names}
        tables = {name: {**chunks.tables, **whole}[name] for name in offers}
        return Begun(tables=tables, rows=chunks.rows, driving=driving)

    def read(self, position: SnapshotPosition, turn: EpochBudget) -> Step:
        """The next files of the driving tables, with all rows of those that they are joined with.

        If other rows are left out than at the position before, everything is read at once: a chunk could not tell which rows
        of the tables beside it come back.
        """
        if position.driving is None or turn.at_once:
            return at_once(position, self.tables)
        reads, after = self._chunk(position, position.driving, turn)
        beside = [
            LookupRead(
                source=name,
                table_id=position.tables[name].table_id,
                version=position.tables[name].pinned,
                held=sum(self.tables.files(name, position.tables[name].pinned)),
            )
            for name in position.driving.beside
        ]
        return [*reads, *beside], after

    def _chunk(self, position: SnapshotPosition, driving: Driving, turn: EpochBudget) -> Step:
        if not driving.hashes:
            return super().read(position, turn)
        names = dict.fromkeys(driving.places.values())
        held = {name: sum(self.tables.files(name, position.tables[name].pinned)) for name in names}
        reads, after = next_parts(position, held, turn.budget)
        return [*reads], after
