"""A warehouse on S3: created, refreshed, killed and resumed as on a disk."""

from collections import Counter
from collections.abc import Sequence

import pytest

from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.epoch.protocol import STEPS
from tests.support.commits import epochs
from tests.support.processes import Processes
from tests.support.project import Project
from tests.support.runner import declared, order_of

pytestmark = pytest.mark.e2e

EVENTS = [{"id": number, "amount": number / 4} for number in range(60)]
NAMES = ("orders", "large", "sums")
REFRESHES = [{"refresh": name} for name in NAMES]


def assert_exact(project: Project, events: Sequence[dict[str, float]]) -> None:
    assert project.rows("orders", "id", "amount") == Counter((each["id"], each["amount"]) for each in events)
    assert project.rows("large", "id", "twice") == Counter((each["id"], each["amount"] * 2) for each in events)
    thirds = [[each["amount"] for each in events if each["id"] % 3 == third] for third in range(3)]
    assert project.rows("sums", "third", "n", "total") == Counter(
        (third, len(amounts), sum(amounts)) for third, amounts in enumerate(thirds)
    )


def test_source_and_views_on_s3_are_exact_after_a_kill(on_s3: Project, processes: Processes) -> None:
    topic = on_s3.topic()
    on_s3.declare(*declared(topic))
    order = order_of(on_s3, topic)
    on_s3.produce(topic, EVENTS[:30])
    assert processes.run(order, *REFRESHES)[0] == 0
    on_s3.produce(topic, EVENTS[30:])
    processes.kill(order, {"refresh": "orders"}, "staged")
    assert processes.run(order, *REFRESHES)[0] == 0
    assert_exact(on_s3, EVENTS)


@pytest.mark.full
@pytest.mark.parametrize("step", STEPS)
def test_runs_that_are_killed_at_any_step_are_resumed_and_all_checks_pass(
    on_s3: Project, processes: Processes, step: str
) -> None:
    assert_resumed(on_s3, processes, step)


def assert_resumed(project: Project, processes: Processes, step: str) -> None:
    """A source and views of it in a new project are exact, and proved, though the run of each was killed at a step."""
    topic = project.topic()
    project.declare(*declared(topic))
    order = order_of(project, topic)
    project.produce(topic, EVENTS[:30])
    assert processes.run(order, *REFRESHES)[0] == 0
    project.produce(topic, EVENTS[30:])
    for job in REFRESHES:
        processes.kill(order, job, step)
        assert processes.run(order, job)[0] == 0
    assert_exact(project, EVENTS)
    code, said = processes.run(order, *({"verify": name} for name in NAMES))
    assert (code, said) == (0, [dict.fromkeys(CHECKS, True)] * len(NAMES))
    for name in NAMES:
        assert epochs(project, name) == sorted(set(epochs(project, name))), "one commit for each epoch"
