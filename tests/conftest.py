"""What tests share: one broker for the whole run, and a project of its own for each test."""

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support.exercised import EXERCISED
from tests.support.servers import FOLDER, Guard
from tests.support.settings import FULL, JAVA, examples

if TYPE_CHECKING:
    from tests.support.project import Project

# A test shows whether something is right, not how long it takes on a busy machine. Every run of the gate tries the same
# examples; the full proof tries new ones each time, and prints how to repeat one that fails.
settings.register_profile(
    "backfill",
    deadline=None,
    print_blob=True,
    derandomize=not FULL,
    max_examples=examples(60, 1_000),
)
settings.load_profile("backfill")

_FIRST = [("e2e", "kafka"), ("e2e", "cluster")]
"""The folders whose tests come first. The cluster is second: by then the gate's short demo, whose Spark needs memory, too,
has ended."""


def pytest_configure(config: pytest.Config) -> None:
    """The process that began the run watches over the servers of all its workers, and of the runs within it.

    A shell that starts a run in the background makes it ignore interrupts, which tests send. A run that is asked to end lets
    its tests stop the servers that they have started on their own.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("the run was asked to end", returncode=143))
    if JAVA:
        os.environ["JDK_JAVA_OPTIONS"] = JAVA
    if FOLDER not in os.environ:
        guard = Guard()
        config.add_cleanup(guard.close)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests in an order in which both processes end together, and need little memory: a Spark cluster while the others
    are small, and at the end many short files."""
    items.sort(key=lambda item: _turn(item.path.relative_to(Path(__file__).parent)))


def _turn(file: Path) -> int:
    folders = file.parts[:2]
    return _FIRST.index(folders) if folders in _FIRST else len(_FIRST) + (folders[0] != "e2e")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what random queries have tried, also in the processes of xdist."""
    for report in (each for kind in ("passed", "failed") for each in terminalreporter.stats.get(kind, ())):
        for name, said in getattr(report, "user_properties", ()):
            if name == EXERCISED and report.when == "call":
                terminalreporter.write_line(f"{report.nodeid}: {said}")


@pytest.fixture(scope="session")
def broker() -> str:
    """The address of a real broker that lives as long as the test run."""
    from tests.support.servers import servers

    address = servers(kafka=True).bootstrap_servers
    assert address is not None
    return address


@pytest.fixture
def project(broker: str, tmp_path: Path) -> "Project":
    """An empty project on the broker."""
    from tests.support.project import Project

    return Project(root=tmp_path, servers=broker)
