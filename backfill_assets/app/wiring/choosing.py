"""The strategy with which a view's life begins: `core.choice` applied to the metadata of its upstreams."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.delta.table_facts import table_facts
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.app.wiring.sources import Sources
from backfill_assets.app.wiring.view_inputs import ViewInputs
from backfill_assets.core.choice.choose import Choice, choose
from backfill_assets.core.choice.reasons import HARD
from backfill_assets.core.epoch.costs import Costs, Strategy, TableFacts, epochs_ran
from backfill_assets.core.epoch.limits import DEFAULT_CHUNK_ROWS
from backfill_assets.core.progress.driving import Driving
from backfill_assets.core.strategies.hashed_history import PARTS
from backfill_assets.declare.model import KafkaSource, MaterializedView
from backfill_assets.environment import spool_bytes
from backfill_assets.errors import NoStrategyError

__all__ = ["Chooser", "learned_costs"]

EPOCHS_LEARNED_FROM = 50
"""When a strategy is chosen, which happens once in a life."""
EPOCHS_PREDICTED_FROM = 5
"""When a run says how long its epochs will take. Each is one more file to read."""

_log = logging.getLogger(__name__)


def learned_costs(output: DeltaOutput, epochs: int = EPOCHS_PREDICTED_FROM) -> Costs:
    """The costs measured in the newest `epochs` of a table, in any of its lives."""
    return Costs.learned(epochs_ran(output.timed_records(epochs)))


@dataclass(frozen=True, kw_only=True)
class Chooser:
    """Chooses the strategy with which a life of one view begins. It reads only metadata, and writes nothing."""

    view: MaterializedView
    output: DeltaOutput
    spark: SparkResource
    sources: Sources
    inputs: ViewInputs

    def choice(self, *, chunk_rows: int = DEFAULT_CHUNK_ROWS) -> Choice:
        """The strategy, with the estimates of all.

        Errors: `UpstreamRefusedError` if an upstream does not exist, and the errors of a broker that does not answer.
        """
        view, facts = self.view, self._facts(chunk_rows)
        driving = self._driving(facts)
        return choose(
            facts,
            driving=() if driving is None else set(driving.places.values()),
            parts=PARTS if driving is not None and driving.hashes else 0,
            costs=learned_costs(self.output, EPOCHS_LEARNED_FROM),
            chunk_rows=chunk_rows,
            memory_bytes=self.spark.memory_bytes,
            spool_bytes=spool_bytes(),
            requested=None if view.strategy == "auto" else view.strategy,
            whole=view.whole,
        )

    def _driving(self, facts: Sequence[TableFacts]) -> Driving | None:
        """What would drive the history of a query over several tables, if they have so many rows."""
        return self.inputs.query.driving({each.name: each.rows for each in facts}) if self.view.whole else None

    def decided(self) -> Strategy:
        """The strategy to begin with. One that is forecast to fail is only used if it was requested by name.

        Errors: `NoStrategyError`, and those of `choice`.
        """
        choice = self.choice()
        if choice.chosen is None:
            first = choice.refusal
            assert first is not None
            raise NoStrategyError(
                f"view {self.view.name!r}: {choice.words}",
                hint=f"{first.remedy}; or name a strategy to accept that risk"
                if first.code not in HARD
                else first.remedy,
                reason=first.code,
                ruled_out=[each.model_dump(mode="json") for each in choice.ruled_out],
            )
        found = choice.estimate_of(choice.chosen)
        for risk in found.risks if found is not None else ():
            _log.warning("view %r, strategy %r: %s: %s", self.view.name, choice.chosen, risk.code, risk.message)
        return choice.chosen

    def _facts(self, chunk_rows: int) -> Sequence[TableFacts]:
        if self.view.sources:
            return [_topic_facts(self.sources, source) for source in self.view.sources]
        return _facts_of_tables(self.view, self.inputs.tables, chunk_rows)


def _facts_of_tables(
    view: MaterializedView, tables: Mapping[str, DeltaUpstream], chunk_rows: int
) -> Sequence[TableFacts]:
    now = time.time()
    return [
        table_facts(
            tables[each.name],
            kind="view" if isinstance(each, MaterializedView) else "table",
            chunk_rows=chunk_rows,
            now=now,
        )
        for each in view.tables
    ]


def _topic_facts(sources: Sources, source: KafkaSource) -> TableFacts:
    offer = sources.topic(source.name)
    rate = sources.client(source).arrival_rate(offer, now=datetime.now(UTC))
    return TableFacts(
        name=source.name,
        kind="topic",
        rows=sum(len(held) for held in offer.partitions.values()),
        bytes=0,
        append_only=True,
        log_retention_seconds=offer.retention_seconds,
        changes_per_second=rate,
        inserts_per_second=rate,
    )
