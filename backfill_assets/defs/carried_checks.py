"""Check results that are still valid: a refresh that found nothing to do runs no checks, and repeats the last results.

Dagster plans the checks of a run when the run is created. The checks of an idle table are then skipped, and the asset would
show as not checked although nothing has changed since the last check.
"""

from collections.abc import Iterator

import dagster as dg

from backfill_assets.app.table_checks import CHECKS

__all__ = ["carried_checks"]

_LOOK_BACK = 10


def carried_checks(instance: dg.DagsterInstance, run_id: str, asset: dg.AssetKey) -> Iterator[dg.AssetCheckEvaluation]:
    """The latest result, passed or not, of each check of an idle asset that this run has planned and will skip."""
    for check in CHECKS:
        key = dg.AssetCheckKey(asset, check)
        newest = instance.get_latest_asset_check_evaluation_record(key)
        if newest is None or newest.run_id != run_id:
            continue
        history = instance.event_log_storage.get_asset_check_execution_history(key, limit=_LOOK_BACK)
        events = (each.event.dagster_event for each in history if each.run_id != run_id and each.event is not None)
        for event in events:
            if event is not None and event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
                yield event.asset_check_evaluation_data
                break
