"""What a finished run did, as plain values, from the events that Dagster recorded."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

__all__ = ["CheckSummary", "RunSummary", "summarize"]


NO_KEY = dg.AssetKey([])


@dataclass(frozen=True, kw_only=True)
class CheckSummary:
    """One evaluated check."""

    name: str
    check: str
    passed: bool
    unproved: bool
    summary: str


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One run: its tables by name with their metadata, its checks, its errors."""

    run_id: str
    success: bool
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    checks: list[CheckSummary] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def summarize(
    result: dg.ExecuteInProcessResult, keys: Mapping[dg.AssetKey, str], *, refreshed: Collection[str] = ()
) -> RunSummary:
    """Summarize a run over the assets `keys` (with their tables' names), some of which were to be `refreshed`."""
    tables: dict[str, dict[str, Any]] = {}
    checks: list[CheckSummary] = []
    errors: list[str] = []
    for event in result.all_events:
        if event.is_step_failure:
            errors.append(_failure(event.step_failure_data))
        elif event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            check = event.asset_check_evaluation_data
            name = keys.get(check.asset_key, check.asset_key.to_user_string())
            checks.append(
                CheckSummary(
                    name=name,
                    check=check.check_name,
                    passed=check.passed,
                    unproved=not check.passed and check.severity is dg.AssetCheckSeverity.WARN,
                    summary=check.description or "",
                )
            )
        elif (name_of := keys.get(event.asset_key or NO_KEY)) is None:
            continue
        elif event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
            tables[name_of] = _plain(event.step_materialization_data.materialization.metadata)
        elif event.event_type is dg.DagsterEventType.ASSET_OBSERVATION:
            tables[name_of] = _plain(event.asset_observation_data.asset_observation.metadata)
    if result.success:
        for name in refreshed:  # an idle refresh has no event
            tables.setdefault(name, {"stopped_reason": "caught_up", "epochs": 0, "rows_written": 0})
    return RunSummary(run_id=result.run_id, success=result.success, tables=tables, checks=checks, errors=errors)


def _failure(failure: Any) -> str:
    """The message of a failure that was raised on purpose; otherwise the whole error."""
    meant = failure.user_failure_data
    return str(meant.description if meant and meant.description else failure.error_display_string)


def _plain(metadata: Mapping[str, dg.MetadataValue[Any]]) -> dict[str, Any]:
    return {
        name: value.value
        for name, value in metadata.items()
        if isinstance(value.value, str | int | float | bool) or value.value is None
    }
