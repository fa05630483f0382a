"""The Dagster resources of this deployment, one module for each environment; `BACKFILL_ENVIRONMENT` chooses one.

Copy this folder into your own project and change what differs there.

- `local`: the broker and the Spark server of `backfill up`, a warehouse in the project's folder
- `cluster`: brokers, Spark and an object store that others run, named by environment variables
"""

import os
from pathlib import Path
from typing import Any

from backfill_assets.errors import EnvironmentSetupError
from resources import cluster, local

__all__ = ["resources_for"]

ENVIRONMENTS = {"local": local.resources, "cluster": cluster.resources}


def resources_for(project: Path, environment: str | None = None) -> dict[str, Any]:
    """The resources of an environment, for `build_definitions(..., resources=...)`.

    Args:
        project: The project's root folder, at which relative paths start.
        environment: `local` or `cluster`. By default the value of `BACKFILL_ENVIRONMENT`, or `local` if that is not set.

    Returns:
        The resources by their Dagster keys.

    Raises:
        EnvironmentSetupError: There is no such environment, or a variable that it needs is not set.

    Examples:
        >>> sorted(resources_for(Path.cwd(), "local"))
        ['backfill_kafka', 'backfill_spark', 'backfill_state']
    """
    name = environment or os.environ.get("BACKFILL_ENVIRONMENT") or "local"
    if name not in ENVIRONMENTS:
        raise EnvironmentSetupError(
            f"there is no environment {name!r}: expected one of {', '.join(ENVIRONMENTS)}",
            hint="set BACKFILL_ENVIRONMENT to one of them, or add a module to the folder `resources`",
        )
    return ENVIRONMENTS[name](str(project))
