"""Whatever happens to a log, a run fails exactly if a record that was read was replaced.

The oracle uses what no consumer can see: the serial number of the write at each offset.
"""

from copy import deepcopy
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backfill_assets.core.epoch.limits import Limits
from backfill_assets.errors import LogTruncatedError
from backfill_assets.testing.simulated_topic import SimulatedTopic
from backfill_assets.testing.simulation import World
from tests.support.settings import examples
from tests.support.truncated_logs import SOURCE, make, position


@dataclass
class History:
    """A topic whose logs are truncated and filled again, and what a source has read of them."""

    world: World
    topic: SimulatedTopic
    read: dict[int, list[int]] = field(default_factory=dict)

    def replaced(self) -> dict[int, tuple[int, int]]:
        """The offsets, by partition, that were read and whose records no longer exist."""
        found = {}
        for partition, read in self.read.items():
            now = self.topic.serials(partition)
            same = next((at for at, each in enumerate(read) if at >= len(now) or now[at] != each), len(read))
            if same < len(read):
                found[partition] = (same, len(read))
        return found

    def refresh(self, budget: int) -> bool:
        """One run, which must fail exactly if a record that was read was replaced; returns whether it succeeded."""
        replaced = self.replaced()
        limits = Limits(chunk_rows=budget, max_rows=budget)
        if replaced:
            version = self.world.table(SOURCE).version
            with pytest.raises(LogTruncatedError) as caught:
                self.world.refresh(SOURCE, limits)
            short = {partition for partition in replaced if self.topic.end(partition) < len(self.read[partition])}
            ranges = caught.value.facts["ranges"]
            assert ranges == replaced or (len(ranges) == 1 and ranges.keys() <= short)
            assert self.world.table(SOURCE).version == version
            return False
        self.world.refresh(SOURCE, limits)
        self.read = {
            partition: self.topic.serials(partition)[:end] for partition, end in position(self.world).next.items()
        }
        return True


PARTITION = st.integers(0, 1)
STEPS = st.one_of(
    st.tuples(st.just("append"), PARTITION, st.integers(1, 6)),
    st.tuples(st.just("abort"), PARTITION, st.integers(1, 12)),
    st.tuples(st.just("elect"), PARTITION, st.just(0)),
    st.tuples(st.just("truncate"), PARTITION, st.integers(0, 8)),
    st.tuples(st.just("compact"), PARTITION, st.integers(0, 20)),
    st.tuples(st.just("refresh"), PARTITION, st.integers(1, 9)),
)


@settings(max_examples=examples(100))
@given(steps=st.lists(STEPS, max_size=30))
def test_a_run_fails_exactly_if_something_that_was_read_was_replaced(
    steps: list[tuple[str, int, int]],
) -> None:
    world, topic = make(partitions=2)
    history = History(world, topic)
    for what, partition, number in [*steps, ("append", 0, 1), ("refresh", 0, 100)]:
        end = topic.end(partition)
        match what:
            case "append":
                topic.append(partition, "x" * number)
            case "abort":
                topic.abort(partition, number)
            case "elect":
                topic.elect(partition)
            case "truncate":
                topic.truncate(partition, max(0, end - number))
            case "compact":
                topic.compact(partition, range(min(number, end)))
            case _:
                if not history.refresh(number):
                    return


@given(
    before=st.integers(1, 5),
    read=st.integers(1, 5),
    refilled=st.integers(6, 12),
    restarts=st.integers(0, 3),
    elections=st.integers(0, 3),
)
def test_a_restored_cluster_is_found_whatever_its_epochs_are_where_the_last_record_was_read_since_the_backup(
    before: int, read: int, refilled: int, restarts: int, elections: int
) -> None:
    world, topic = make(rows="x" * before)
    backup = deepcopy(topic)
    for _ in range(elections):
        topic.elect(0)
    topic.append(0, "y" * read)
    world.refresh(SOURCE)
    topic.restore(backup, restarts=restarts)
    topic.append(0, "z" * refilled)
    with pytest.raises(LogTruncatedError) as caught:
        world.refresh(SOURCE)
    start, end = caught.value.facts["ranges"][0]
    assert (start <= before, end) == (True, before + read)
