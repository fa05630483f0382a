"""Creates the decider of a table's epochs, from its declaration and its upstreams."""

from collections.abc import Callable

from backfill_assets.app.wiring.table_upstreams import TableUpstreams
from backfill_assets.core.epoch.costs import Strategy
from backfill_assets.core.epoch.ports import Clock, Upstreams
from backfill_assets.core.epoch.skips import Skips
from backfill_assets.core.progress.positions import micros
from backfill_assets.core.strategies.arrangement import ArrangementHistory
from backfill_assets.core.strategies.ingest import IngestDecider
from backfill_assets.core.strategies.joined_history import JoinedHistory
from backfill_assets.core.strategies.rearranged import RearrangedHistory
from backfill_assets.core.strategies.snapshot import SnapshotHistory
from backfill_assets.core.strategies.snapshot_once import SnapshotOnceHistory
from backfill_assets.core.strategies.source import SourceDecider, SourceUpstream
from backfill_assets.core.strategies.table_views import TablesDecider, TableUpstream
from backfill_assets.core.strategies.whole_history import WholeHistory
from backfill_assets.declare.added_columns import adds_columns
from backfill_assets.declare.fingerprints import fingerprint_of
from backfill_assets.declare.model import KafkaSource, MaterializedView, has_key
from backfill_assets.environment import spool_bytes
from backfill_assets.query.aggregate import is_aggregate

__all__ = ["over_sources", "over_tables", "over_topic"]


def over_topic(source: KafkaSource, upstreams: Upstreams) -> IngestDecider:
    """The decider of a source."""
    return IngestDecider(
        source=source.name,
        topic=source.topic,
        isolation=source.isolation,
        keep_history=source.bronze == "all",
        fingerprint=fingerprint_of(source),
        upstreams=upstreams,
    )


def over_sources(view: MaterializedView, upstreams: Upstreams, skips: Skips) -> SourceDecider:
    """The decider of a view over Kafka sources."""
    return SourceDecider(
        view=view.name,
        sources=tuple(
            SourceUpstream(name=source.name, topic=source.topic, isolation=source.isolation) for source in view.sources
        ),
        fingerprint=fingerprint_of(view),
        upstreams=upstreams,
        order=view.backfill_order,
        skips=skips,
    )


def over_tables(
    view: MaterializedView, tables: TableUpstreams, choose: Callable[[], Strategy], skips: Skips, clock: Clock
) -> TablesDecider:
    """The decider of a view over Delta tables and other views, for a run that begins now; `choose` is called when a life
    begins."""
    whole = view.whole
    own = bool(view.own_key) or whole or is_aggregate(view.text)
    # If a view without a key were replaced, views over it could not follow.
    keyed = own or all(map(has_key, view.tables))
    return TablesDecider(
        view=view.name,
        upstreams=tuple(TableUpstream(name=each.name, keyed=own or has_key(each)) for each in view.tables),
        fingerprint=fingerprint_of(view),
        tables=tables,
        histories={
            "snapshot": JoinedHistory(tables=tables, drive=tables.query.driving)
            if whole
            else SnapshotHistory(tables=tables),
            "snapshot_once": WholeHistory(tables=tables) if whole else SnapshotOnceHistory(tables=tables),
            "arrangement": ArrangementHistory(tables=tables),
            "rearranged": RearrangedHistory(
                tables=tables, view=view.name, limit=spool_bytes(), at_once=is_aggregate(view.text)
            ),
        },
        order=view.backfill_order,
        strategy=view.strategy,
        full_refresh=keyed and view.refresh_mode in {"auto", "full"},
        whole=whole,
        choose=choose,
        skips=skips,
        now=(lambda: micros(clock.now())) if view.reads_clock else None,
        since=micros(clock.now()),
        extends=lambda built_with: keyed and adds_columns(built_with, view) and tables.may_extend(),
    )
