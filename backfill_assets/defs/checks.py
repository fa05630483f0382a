"""Asset checks: each can be run alone, and shows what it compared and the first violations."""

from collections.abc import Iterator, Mapping

import dagster as dg

from backfill_assets.adapters.storage.store_errors import mask
from backfill_assets.app.table_checks import CHECKS, Checking, Outcome
from backfill_assets.declare.model import Declared
from backfill_assets.defs.assets import RESOURCE_KEYS, workspace_of
from backfill_assets.defs.dead_runs import mark_run
from backfill_assets.errors import BackfillError

__all__ = ["CHEAP_TAG", "build_checks"]

CHEAP_TAG = "backfill/checks"
"""Run tag: with the value `since_last_pass`, checks do not prove again what they have proved before."""


def build_checks(declared: Mapping[str, Declared]) -> list[dg.AssetChecksDefinition]:
    """The checks of all declared tables: one step for each table, so that they share a Spark session."""
    return [_checks_of(each, declared) for each in declared.values()]


def _checks_of(table: Declared, declared: Mapping[str, Declared]) -> dg.AssetChecksDefinition:
    @dg.multi_asset_check(
        name=f"check_{table.target.replace('/', '_')}",
        specs=[
            dg.AssetCheckSpec(check, asset=table.key, description=(prove.__doc__ or "").strip())
            for check, prove in CHECKS.items()
        ],
        can_subset=True,
        required_resource_keys=RESOURCE_KEYS,
    )
    def checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        mark_run(context.instance, context.run.run_id)
        workspace = workspace_of(context.resources, declared)
        selected = {key.name for key in context.selected_asset_check_keys}
        checking = Checking(workspace, table.name)
        for check in CHECKS:
            if check in selected:
                outcome = _outcome(context, checking, check)
                yield dg.AssetCheckResult(
                    asset_key=table.key,
                    check_name=check,
                    passed=outcome.passed,
                    severity=dg.AssetCheckSeverity.WARN if outcome.unproved else dg.AssetCheckSeverity.ERROR,
                    description=outcome.summary,
                    metadata=_metadata(outcome),
                )

    return checks


def _outcome(context: dg.AssetCheckExecutionContext, checking: Checking, check: str) -> Outcome:
    """The result of a check. One that cannot be carried out has not passed, and does not prevent the next one."""
    try:
        return checking.run(check, full=_full(context))
    except Exception as error:
        mask(error)
        context.log.exception("%s of %s could not be checked", check, checking.name)
        what = str(error) if isinstance(error, BackfillError) else f"{type(error).__name__}: {error}".partition("\n")[0]
        return Outcome(passed=False, summary=f"could not be checked: {what}")


def _full(context: dg.AssetCheckExecutionContext) -> bool:
    """Runs that also materialize prove what is new; runs of checks alone prove everything."""
    run = context.run
    return run.tags.get(CHEAP_TAG) != "since_last_pass" and not run.asset_selection


def _metadata(outcome: Outcome) -> dict[str, dg.MetadataValue]:
    shown = {name: _value(value) for name, value in outcome.facts.items()}
    if outcome.violations:
        shown["violations"] = dg.MetadataValue.json([_plain(each) for each in outcome.violations[:10]])
    return shown


def _value(value: object) -> dg.MetadataValue:
    match value:
        case bool():
            return dg.MetadataValue.bool(value)
        case int():
            return dg.MetadataValue.int(value)
        case str():
            return dg.MetadataValue.text(value)
        case _:
            return dg.MetadataValue.json({"value": _plain(value)} if not isinstance(value, dict) else _texts(value))


def _texts(value: Mapping[object, object]) -> dict[str, object]:
    return {str(name): _plain(each) for name, each in value.items()}


def _plain(value: object) -> object:
    match value:
        case dict():
            return _texts(value)
        case list() | tuple():
            return [_plain(each) for each in value]
        case None | bool() | int() | float() | str():
            return value
        case bytes() | bytearray():
            return bytes(value).decode("utf-8", "backslashreplace")
        case _:
            return str(value)
