"""The project of the command line: the definitions in a module of the current folder, and the project's Dagster instance."""

import gc
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backfill_assets.environment import project_root
from backfill_assets.errors import DeclarationError, EnvironmentSetupError

if TYPE_CHECKING:
    import dagster as dg

    from backfill_assets.app.workspace import Workspace
    from backfill_assets.cli.summary import RunSummary

__all__ = ["LocalProject", "dagster_home", "load_definitions"]

_log = logging.getLogger(__name__)


class LocalProject:
    """The definitions of one module, and the Dagster instance of the project."""

    def __init__(self, module: str) -> None:
        self.root = project_root(Path.cwd())
        self.definitions = load_definitions(module)

    def workspace(self) -> "Workspace":
        """The declared tables, with the definitions' own resources."""
        from backfill_assets.defs.assets import workspace_in

        return workspace_in(self.definitions)

    def refresh(self, names: list[str], config: dict[str, Any]) -> "RunSummary":
        """Refresh some tables in one run of the instance."""
        from backfill_assets.defs.jobs import TABLES_JOB, refresh_run_config

        workspace = self.workspace()
        keys = {workspace.registry.find(name).key: name for name in names}
        return self._execute(
            TABLES_JOB, keys, refreshed=names, run_config=refresh_run_config(config), asset_selection=list(keys)
        )

    def submitted(self, workspace: "Workspace") -> "set[dg.AssetKey]":
        """The tables that submitted runs of the instance will refresh; none if the instance cannot be read."""
        from backfill_assets.defs.jobs import queued

        try:
            with open_instance(dagster_home(self.root)) as instance:
                return queued(instance, workspace.declared.values())
        except Exception as error:  # the state of the tables is known without it
            _log.warning("Dagster cannot be asked for submitted runs: %s", error)
            return set()

    def verify(self, name: str) -> "RunSummary":
        """Run every check of one table in one run of the instance."""
        from backfill_assets.defs.jobs import QUIET

        return self._execute(f"verify_{name}", {self.workspace().registry.find(name).key: name}, run_config=QUIET)

    def _execute(
        self, job: str, keys: "dict[dg.AssetKey, str]", *, refreshed: Sequence[str] = (), **arguments: Any
    ) -> "RunSummary":
        from backfill_assets.cli.summary import summarize

        with open_instance(dagster_home(self.root)) as instance:
            result = self.definitions.resolve_job_def(job).execute_in_process(
                instance=instance, raise_on_error=False, **arguments
            )
            return summarize(result, keys, refreshed=refreshed)


def open_instance(home: Path) -> "dg.DagsterInstance":
    """The Dagster instance of a folder. A lock ensures that only one process at a time creates its SQLite databases."""
    import dagster as dg
    from filelock import FileLock

    with FileLock(home / ".opening.lock"):
        instance = dg.DagsterInstance.from_config(str(home))
        instance.get_asset_keys(limit=1)  # the first use creates the database of the event log
        return instance


def load_definitions(module: str) -> "dg.Definitions":
    """The one `Definitions` object of a module, imported with the current folder first on the path."""
    import dagster as dg
    from dagster.components.definitions import LazyDefinitions

    sys.path.insert(0, str(Path.cwd()))
    gc.disable()  # imports create many objects and no garbage; collecting it would take a quarter of the time
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise DeclarationError(
            f"there is no module {module!r} in {Path.cwd()} or on the path",
            hint="run from the project's folder, or name the module with -m",
            argument="module",
        ) from None
    finally:
        gc.freeze()
        gc.set_threshold(50_000)  # the run itself imports many modules too
        gc.enable()
    found = [value for value in vars(loaded).values() if isinstance(value, dg.Definitions | LazyDefinitions)]
    if len(found) != 1:
        raise DeclarationError(
            f"module {module!r} holds {len(found)} Definitions objects, expected one",
            hint="assign build_definitions(...), merged with your own, to one name such as `defs`",
            argument="module",
        )
    (only,) = found
    return only() if isinstance(only, LazyDefinitions) else only


def dagster_home(root: Path) -> Path:
    """The folder of the Dagster instance and of its settings, `dagster.yaml`; created if necessary.

    It is `DAGSTER_HOME`, or `.dagster/` in the project. Errors: `EnvironmentSetupError` if it cannot be created.
    """
    home = Path(os.environ.setdefault("DAGSTER_HOME", str(root / ".dagster")))
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentSetupError(
            f"the folder of the Dagster instance, {home}, cannot be created: {error}",
            hint="set DAGSTER_HOME to a folder that this user may write",
        ) from None
    return home
