"""What a finished run did, in plain values, from the events that Dagster recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

__all__ = ["CheckSummary", "RunSummary", "summarize"]


@dataclass(frozen=True, kw_only=True)
class CheckSummary:
    """One evaluated check."""

    name: str
    check: str
    passed: bool
    summary: str


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One run: its tables by name with their metadata, its checks, its errors."""

    run_id: str
    success: bool
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    checks: list[CheckSummary] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def summarize(result: dg.ExecuteInProcessResult, keys: Mapping[dg.AssetKey, str]) -> RunSummary:
    """Summarize a run over the assets `keys` (with their tables' names)."""
    tables: dict[str, dict[str, Any]] = {}
    checks: list[CheckSummary] = []
    errors: list[str] = []
    for event in result.all_events:
        match event.event_specific_data:
            case dg.AssetCheckEvaluation() as check:
                name = keys.get(check.asset_key, check.asset_key.to_user_string())
                checks.append(
                    CheckSummary(
                        name=name, check=check.check_name, passed=check.passed, summary=check.description or ""
                    )
                )
            case data if event.asset_key in keys and hasattr(data, "materialization"):
                tables[keys[event.asset_key]] = _plain(data.materialization.metadata)
            case data if event.asset_key in keys and hasattr(data, "asset_observation"):
                tables[keys[event.asset_key]] = _plain(data.asset_observation.metadata)
            case data if event.is_step_failure and hasattr(data, "error_display_string"):
                errors.append(
                    data.user_failure_data.description or "" if data.user_failure_data else data.error_display_string
                )
    if result.success and not checks:
        for name in keys.values():
            tables.setdefault(name, {"stopped_reason": "caught_up", "epochs": 0, "rows_written": 0})
    return RunSummary(run_id=result.run_id, success=result.success, tables=tables, checks=checks, errors=errors)


def _plain(metadata: Mapping[str, dg.MetadataValue[Any]]) -> dict[str, Any]:
    return {
        name: value.value
        for name, value in metadata.items()
        if isinstance(value.value, str | int | float | bool) or value.value is None
    }
