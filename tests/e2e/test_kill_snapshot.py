"""kill -9 at every step of the protocol, in a chunk of a snapshot and in a merge of its change log."""

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from backfill_assets.backfill.control import Limits
from backfill_assets.backfill.protocol import STEPS
from backfill_assets.proofs import CHECKS
from backfill_assets.resources.embedded import down, up
from tests.e2e.lake import Lake
from tests.e2e.runner import over_lake, start
from tests.e2e.test_kill import LIMIT, epochs, losers

pytestmark = pytest.mark.e2e

CHUNK = Limits(chunk_rows=10, max_rows=10)
FILES = len(STEPS) + 2


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Spark Connect server that all killed runs share."""
    root = tmp_path_factory.mktemp("spark")
    address = up(root, kafka=False).spark_remote
    assert address is not None
    yield address
    down(root)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table of files with ten rows each, and a view that has been created and has read the first of them."""
    lake = Lake(tmp_path)
    for file in range(FILES):
        lake.append("base", ({"id": at, "v": at % 10} for at in range(file * 10, file * 10 + 10)))
    lake.project.declare(*over_lake(tmp_path))
    lake.project.refresh("large", CHUNK)
    return lake


def killed(lake: Lake, remote: str, step: str) -> None:
    """A refresh in a process of its own that kills itself at a step of its first epoch, having left what it must."""
    before = lake.project.record("large").epoch
    order = {"refresh": "large", "chunk_rows": CHUNK.chunk_rows, "die": [step, 1]}
    process = start(lake.project, "", remote, order)
    output, _ = process.communicate(timeout=LIMIT)
    assert (process.returncode, output) == (-signal.SIGKILL, "")
    assert lake.project.record("large").epoch == before + (step == "committed")
    assert len(losers(lake.project, "large")) == int(step in {"staged", "verified"})


def test_a_kill_at_any_step_of_a_chunk_or_a_merge_loses_and_doubles_nothing(lake: Lake, remote: str):
    expected = {at: at % 10 * 2 for at in range(FILES * 10) if at % 10 != 3}
    for step in STEPS:
        killed(lake, remote, step)
        done = lake.project.refresh("large", CHUNK).report
        assert [each.rows_read for each in done.epochs] == [10], "the chunk is redone or the next one read"
        assert losers(lake.project, "large") == []
    assert lake.project.refresh("large").report.record.live
    assert lake.project.rows("large", "id", "twice") == Counter(expected.items())
    assert lake.project.check("large").passed

    for number, step in enumerate(STEPS):
        deleted, updated, new = number, number + 20, 1000 + number
        lake.sql("base", f"DELETE FROM {{t}} WHERE id = {deleted}", f"UPDATE {{t}} SET v = 50 WHERE id = {updated}")
        lake.append("base", [{"id": new, "v": 1}])
        killed(lake, remote, step)
        lake.project.refresh("large")
        expected.pop(deleted, None)
        expected.update({updated: 100, new: 2})
        assert lake.project.rows("large", "id", "twice") == Counter(expected.items()), step
        assert losers(lake.project, "large") == []
    assert epochs(lake.project, "large") == list(range(lake.project.record("large").epoch + 1)), "each epoch once"
    for check in CHECKS:
        outcome = lake.project.check("large", check)
        assert outcome.passed, (check, outcome)
