"""A warehouse on S3: created, refreshed, killed and resumed as on a disk."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.processes import Processes
from tests.support.project import Project
from tests.support.runner import declared, order_of

pytestmark = pytest.mark.e2e

EVENTS = [{"id": number, "amount": number / 4} for number in range(60)]
NAMES = ("orders", "large", "sums")


@pytest.fixture
def runs(on_s3: Project, remote: str) -> Iterator[Processes]:
    """Runs of their own that find the store's keys in their environment; a session in this process has no connector."""
    assert on_s3.storage
    started = Processes(remote)
    yield started
    started.close()


def test_source_and_views_on_s3_are_exact_after_a_kill(on_s3: Project, runs: Processes) -> None:
    topic = on_s3.topic()
    on_s3.declare(*declared(topic))
    order = order_of(on_s3, topic)
    on_s3.produce(topic, EVENTS[:30])
    assert runs.run(order, *({"refresh": name} for name in NAMES))[0] == 0
    on_s3.produce(topic, EVENTS[30:])
    runs.kill(order, {"refresh": "orders"}, "staged")
    code, _ = runs.run(order, *({"refresh": name} for name in NAMES))
    assert code == 0
    assert on_s3.rows("orders", "id", "amount") == Counter((each["id"], each["amount"]) for each in EVENTS)
    assert on_s3.rows("large", "id", "twice") == Counter((each["id"], each["amount"] * 2) for each in EVENTS)
    assert on_s3.rows("sums", "third", "n", "total") == Counter(
        (third, 20, sum(each["amount"] for each in EVENTS[third::3])) for third in range(3)
    )
