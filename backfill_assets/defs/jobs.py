"""Jobs: refresh and verify for each table, and the operator's controls with the table's name in their config."""

import uuid
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, TypeVar

import dagster as dg
from pydantic import Field

from backfill_assets.adapters.storage.store_errors import masking
from backfill_assets.app.controls import set_controls
from backfill_assets.app.lifecycle import drop, reset
from backfill_assets.app.replacing import forget_replaced, replace_view, undo_replacement
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.declare.model import Declared
from backfill_assets.defs.assets import OP_NAME, RESOURCE_KEYS, workspace_of
from backfill_assets.defs.checks import CHEAP_TAG
from backfill_assets.errors import BackfillError

if TYPE_CHECKING:
    # Dagster exports this type only from here.
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

__all__ = ["QUIET", "TABLES_JOB", "build_jobs", "queued", "refresh_run_config"]

_DESCRIPTIONS = {"replace": "Build a view's changed definition beside it, and switch in one commit; or undo that."}
"""What control jobs do that do not take effect between two epochs."""

TABLES_JOB = "backfill_tables"
"""The job over all tables, of which sensors and the command line select some."""


class ViewConfig(dg.Config):
    """The table of a control job."""

    view: str = Field(description="Name of the source or view.")


class ReplaceConfig(ViewConfig):
    """The view, and whether it is to become what it was before, or what lies beside it is to be deleted."""

    undo: bool = Field(default=False, description="Put back what the view was before its last replacement.")
    forget: bool = Field(
        default=False, description="Delete what is kept for undo, and a replacement that is not finished."
    )


class ThrottleConfig(ViewConfig):
    """The table, and its highest rate."""

    rows_per_second: float | None = Field(default=None, description="None: no limit; 0: none at all.")


QUIET: Mapping[str, object] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""Run config for the command line, which prints the outcome and errors itself."""


def refresh_run_config(config: Mapping[str, object]) -> dict[str, object]:
    """Run config of a refresh from the command line."""
    return {**QUIET, "ops": {OP_NAME: {"config": dict(config)}}}


def queued(instance: dg.DagsterInstance, declared: Collection[Declared]) -> set[dg.AssetKey]:
    """The tables that will be refreshed by runs that are submitted and have not begun."""
    waiting = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING]
    whole = {f"refresh_{each.name}": {each.key} for each in declared} | {TABLES_JOB: {each.key for each in declared}}
    found: set[dg.AssetKey] = set()
    for run in instance.get_runs(dg.RunsFilter(statuses=waiting)):
        found |= whole.get(run.job_name, set()) if run.asset_selection is None else run.asset_selection
    return found


def build_jobs(
    declared: Mapping[str, Declared], executor: dg.ExecutorDefinition
) -> "list[dg.JobDefinition | UnresolvedAssetJobDefinition]":
    """All jobs of all declared tables."""
    everything = dg.AssetSelection.assets(*(each.key for each in declared.values()))
    jobs: list[dg.JobDefinition | UnresolvedAssetJobDefinition] = [
        dg.define_asset_job(
            TABLES_JOB,
            selection=everything,
            executor_def=executor,
            tags={CHEAP_TAG: "since_last_pass"},
            description="Bring all sources and views up to date, then check what is new.",
        )
    ]
    for table in declared.values():
        of_table = dg.AssetSelection.assets(table.key)
        jobs.append(
            dg.define_asset_job(
                f"refresh_{table.name}",
                selection=of_table,
                executor_def=executor,
                tags={CHEAP_TAG: "since_last_pass"},
                description=f"Bring {table.target} up to date, then check what is new.",
            )
        )
        jobs.append(
            dg.define_asset_job(
                f"verify_{table.name}",
                selection=dg.AssetSelection.checks_for_assets(table.key),
                executor_def=executor,
                description=f"Prove all of {table.target}, writing nothing.",
            )
        )
    return [*jobs, *_controls(declared)]


def _controls(declared: Mapping[str, Declared]) -> list[dg.JobDefinition]:
    def throttle(workspace: Workspace, config: ThrottleConfig) -> None:
        rate = "off" if config.rows_per_second is None else config.rows_per_second
        set_controls(workspace, config.view, throttle=rate, by="job")

    def pause(workspace: Workspace, config: ViewConfig) -> None:
        set_controls(workspace, config.view, paused=True, by="job")

    def resume(workspace: Workspace, config: ViewConfig) -> None:
        set_controls(workspace, config.view, paused=False, by="job")

    def replace(workspace: Workspace, config: ReplaceConfig) -> None:
        if config.undo:
            undo_replacement(workspace, config.view)
        if config.forget:
            forget_replaced(workspace, config.view)
        if config.undo or config.forget:
            return
        done = replace_view(workspace, config.view, Limits(), run_id=uuid.uuid4().hex)
        if not done.switched:
            why = done.report.detail or done.report.stopped.value
            raise dg.Failure(f"{config.view} is read as before: its replacement has not caught up: {why}")

    return [
        _control(declared, "pause", ViewConfig, pause),
        _control(declared, "resume", ViewConfig, resume),
        _control(declared, "throttle", ThrottleConfig, throttle),
        _control(declared, "replace", ReplaceConfig, replace),
        _control(declared, "reset", ViewConfig, lambda workspace, config: reset(workspace, config.view)),
        _control(declared, "drop", ViewConfig, lambda workspace, config: drop(workspace, config.view)),
    ]


C = TypeVar("C", bound=ViewConfig)


def _control(
    declared: Mapping[str, Declared], verb: str, config_type: type[C], act: Callable[[Workspace, C], object]
) -> dg.JobDefinition:
    @dg.op(
        name=f"{verb}_table",
        config_schema=config_type.to_config_schema().as_field(),
        required_resource_keys=RESOURCE_KEYS,
        out=dg.Out(dg.Nothing),
    )
    def carry_out(context: dg.OpExecutionContext) -> None:
        config = config_type(**context.op_config)
        try:
            with masking({}):
                act(workspace_of(context.resources, declared), config)
        except BackfillError as error:
            raise dg.Failure(str(error), allow_retries=False) from None
        context.log.info("%s of %s: done", verb, config.view)

    @dg.job(
        name=f"backfill_{verb}",
        executor_def=dg.in_process_executor,
        description=_DESCRIPTIONS.get(verb, f"{verb.capitalize()} a source or view; takes effect between two epochs."),
    )
    def control() -> None:
        carry_out()

    return control
