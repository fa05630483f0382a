"""What tests share: one broker for the whole run, and a project of its own for each test."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.e2e.project import Project

# A test says whether something is right; how long a busy machine takes for it says nothing.
settings.register_profile("backfill", deadline=None, print_blob=True)
settings.load_profile("backfill")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real broker that lives as long as the test run."""
    from backfill_assets.resources.embedded import down, up

    root = tmp_path_factory.mktemp("broker")
    servers = up(root, spark=False).bootstrap_servers
    assert servers is not None
    yield servers
    down(root)


@pytest.fixture
def project(broker: str, tmp_path: Path) -> "Project":
    """An empty project on the broker."""
    from tests.e2e.project import Project

    return Project(root=tmp_path, servers=broker)
