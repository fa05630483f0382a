"""An operator's settings for the runs of a table: pause and throttle."""

from dataclasses import replace

from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import rate_of
from backfill_assets.core.epoch.ports import Controls

__all__ = ["set_controls"]


def set_controls(
    workspace: Workspace, name: str, *, paused: bool | None = None, throttle: float | str | None = None, by: str
) -> Controls:
    """Pause or resume a table, or set its throttle (rows per second, or `"off"`); other settings stay as they are.

    Errors: `DeclarationError` for a throttle that is neither; `EnvironmentSetupError` if the store cannot be read.
    """
    target = workspace.registry.find(name).target
    workspace.prepare_to_read()
    controls = workspace.state.controls(target)
    if paused is not None:
        controls = replace(controls, paused=paused)
    if throttle is not None:
        controls = replace(controls, rows_per_second=rate_of(throttle))
    workspace.state.set_controls(target, controls, by=by)
    return controls
