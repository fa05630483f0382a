"""What an operator tells runs of a table: to pause, or how fast to go."""

import math
from dataclasses import replace

from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.ports import Controls
from backfill_assets.errors import DeclarationError

__all__ = ["set_controls"]


def set_controls(
    workspace: Workspace, name: str, *, paused: bool | None = None, throttle: float | str | None = None, by: str
) -> Controls:
    """Pause or resume a table, or set its throttle (rows per second, or `"off"`); what is not named stays."""
    target = workspace.registry.find(name).target
    controls = workspace.state.controls(target)
    if paused is not None:
        controls = replace(controls, paused=paused)
    if throttle is not None:
        rate = None if throttle == "off" else float(throttle)
        if rate is not None and not (math.isfinite(rate) and rate >= 0):
            raise DeclarationError(
                f"throttle of {name!r}: expected rows per second, 0 or more, found {throttle!r}",
                hint="use a finite number, or 'off' for no limit",
                argument="rows_per_second",
            )
        controls = replace(controls, rows_per_second=rate)
    workspace.state.set_controls(target, controls, by=by)
    return controls
