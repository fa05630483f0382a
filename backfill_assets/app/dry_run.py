"""What a refresh would do, without doing it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from backfill_assets.app.workspace import Workspace
from backfill_assets.core.choice.choose import Choice
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.ports import NextEpoch
from backfill_assets.core.epoch.protocol import check_look
from backfill_assets.core.epoch.records import CommitRecord, Position, Rule
from backfill_assets.core.epoch.run import plan_next
from backfill_assets.declare.model import MaterializedView
from backfill_assets.query.relational import RelationalQuery

__all__ = ["Planned", "plan"]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What a refresh would do. `record`: the newest commit (None: not created yet); `step`: the next epoch, which should
    take `expected_seconds` (None: nothing to do), and whether it `adds_columns` to the view; `choice`: for a view that is not
    live, the strategy of a new life; `query`: that of a view over whole tables, with total orders, and by which `rules`
    it follows changes of each upstream, of those that are `asked` only while NOT IN compares no null, of those with
    `parameters` only while subqueries for one value give the same one, of those with `first` only while enough of the first
    rows are known."""

    record: CommitRecord | None
    step: NextEpoch[Position] | None
    choice: Choice | None
    expected_seconds: float
    adds_columns: bool = False
    query: str = ""
    rules: Mapping[str, Rule] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    first: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """The same as plain JSON."""
        return {
            "exists": self.record is not None,
            "epoch": self.record.epoch if self.record else None,
            "reads": [read.model_dump(mode="json") for read in self.step.reads] if self.step else [],
            "expected_seconds": self.expected_seconds,
            "adds_columns": self.adds_columns,
            "choice": self.choice.model_dump(mode="json") if self.choice else None,
            "query": self.query,
            "rules": dict(self.rules),
            "rules_without_nulls": list(self.asked),
            "rules_with_same_parameters": list(self.parameters),
            "rules_with_enough_rows": list(self.first),
        }


def plan(workspace: Workspace, name: str, limits: Limits) -> Planned:
    """What a refresh would do next, and for a view that is not live the strategy of a new life; writes nothing.

    Errors: `EnvironmentSetupError` if the store cannot be read; those of the refresh before it writes, such as
    `DefinitionChangedError` and `UpstreamRefusedError`.
    """
    declared = workspace.registry.find(name)
    workspace.prepare_to_read()
    table = workspace.table(declared)
    look = table.output.look()
    record = check_look(table.parts, look, redefines=True).record if look.exists else None
    anew = record is not None and table.parts.decider.redefines(record)
    step = None if record is None else plan_next(table.parts, record, limits)
    choice, query, text = None, None, ""
    if isinstance(declared, MaterializedView) and declared.whole:
        query = workspace.inputs(declared).query.now if anew else workspace.bound(declared)
        text = declared.text if declared.reads_clock else query.text
    if isinstance(declared, MaterializedView) and (record is None or not record.live):
        choice = workspace.chooser(declared).choice()
    expected = 0.0 if step is None else table.parts.costs().expected_seconds(step.reads)
    planned = Planned(record=record, step=step, choice=choice, expected_seconds=expected, adds_columns=anew)
    if not isinstance(query, RelationalQuery):
        return planned
    steps = {name: query.steps([name]) for name in query.upstreams}
    return replace(
        planned,
        query=text,
        rules={name: each.rule for name, each in steps.items()},
        asked=tuple(name for name, each in steps.items() if each.nulls),
        parameters=tuple(name for name, each in steps.items() if each.parameters),
        first=tuple(name for name, each in steps.items() if each.first),
    )
