"""The ledger on real files: runs that compete for one epoch, many tables at once, unknown outcomes, pruning."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from backfill_assets.adapters.state.ledger import ObjectLedger
from backfill_assets.adapters.storage.object_store import ObjectFolder
from backfill_assets.core.audit import KEPT_PLANS
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Plan
from backfill_assets.core.progress.positions import IngestPosition
from backfill_assets.errors import EnvironmentSetupError

TARGET, LIFE = "views/large", "11111111"


def position(offset: int) -> IngestPosition:
    return IngestPosition(topic="t", topic_id=None, history={0: 0}, begin={0: 0}, next={0: offset})


def plan(epoch: int, *, target: str = TARGET, until: int = 0) -> Plan:
    return Plan(
        target=target,
        incarnation=LIFE,
        epoch=epoch,
        fingerprint={},
        reads=(),
        before=position(epoch - 1),
        after=position(until or epoch),
        live=True,
    )


def committed(epoch: int) -> CommitRecord:
    return CommitRecord(
        kind=CommitKind.EPOCH,
        target=TARGET,
        incarnation=LIFE,
        epoch=epoch,
        attempt="a",
        plan_hash=plan(epoch).hash if epoch else "",
        fingerprint={},
        position=position(epoch),
        live=True,
        started_at=0,
        finished_at=0,
        created_at=0,
    )


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[], ObjectLedger]:
    """Opens the ledger like another run."""
    return lambda: ObjectLedger(ObjectFolder(uri=str(tmp_path / "plans")))


def test_reading_a_missing_ledger_creates_nothing(opened: Callable[[], ObjectLedger], tmp_path: Path) -> None:
    assert opened().newest(TARGET, LIFE) is None
    assert opened().plan(TARGET, LIFE, 1) is None
    assert opened().incarnations(TARGET) == set()
    assert not list(tmp_path.iterdir())


def test_one_of_several_competing_runs_plans_an_epoch(opened: Callable[[], ObjectLedger]) -> None:
    rivals = [opened() for _ in range(16)]
    for epoch in range(1, 20):
        for rival in rivals:
            assert rival.newest(TARGET, LIFE, since=epoch - 1) == (epoch - 1 or None)
        plans = [plan(epoch, until=end) for end in range(1, 17)]
        with ThreadPoolExecutor(len(rivals)) as threads:
            entered = list(threads.map(ObjectLedger.append, rivals, plans))
        assert entered.count(True) == 1
        assert opened().plan(TARGET, LIFE, epoch) == plan(epoch, until=1 + entered.index(True))


def test_a_hundred_tables_at_once_do_not_touch_each_other(opened: Callable[[], ObjectLedger]) -> None:
    epochs = 10

    def planned(number: int) -> list[bool]:
        ledger, target = opened(), f"views/v{number}"
        entered = []
        for epoch in range(1, epochs + 1):
            assert ledger.newest(target, LIFE, since=epoch - 1) == (epoch - 1 or None)
            entered.append(ledger.append(plan(epoch, target=target)))
        return entered

    with ThreadPoolExecutor(100) as threads:
        assert list(threads.map(planned, range(100))) == [[True] * epochs] * 100
    assert all(opened().newest(f"views/v{number}", LIFE) == epochs for number in range(100))


def test_the_requested_epochs_are_read_in_their_order(opened: Callable[[], ObjectLedger]) -> None:
    ledger = opened()
    for epoch in range(1, 40):
        assert ledger.append(plan(epoch))
    found = opened().entries(TARGET, LIFE, since=5, until=30)
    assert [(each.epoch, each.plan) for each in found] == [(epoch, plan(epoch)) for epoch in range(5, 31)]
    assert opened().plan(TARGET, LIFE, 30) == plan(30)


def test_the_plan_that_superseded_the_others_of_an_epoch_counts(
    opened: Callable[[], ObjectLedger],
) -> None:
    for end in (3, 5, 4):
        ledger = opened()
        ledger.newest(TARGET, LIFE)
        assert ledger.append(plan(1, until=end))
        assert opened().plan(TARGET, LIFE, 1) == plan(1, until=end)
    entries = opened().entries(TARGET, LIFE, since=1, until=1)
    assert [entry.plan_hash for entry in entries] == [plan(1, until=end).hash for end in (3, 5, 4)]
    assert all(entry.found_hash == entry.plan_hash for entry in entries)


def test_a_plan_that_a_rival_superseded_since_is_not_superseded_again(opened: Callable[[], ObjectLedger]) -> None:
    first, second = opened(), opened()
    first.newest(TARGET, LIFE)
    assert first.append(plan(1))
    assert second.newest(TARGET, LIFE) == 1
    assert first.append(plan(1, until=2))
    assert not second.append(plan(1, until=3))
    assert opened().plan(TARGET, LIFE, 1) == plan(1, until=2)


@dataclass(frozen=True, kw_only=True)
class Unreliable(ObjectFolder):
    """A folder whose store answers a write with an error, or not at all."""

    writes: bool
    answer: bool | None

    def put_if_absent(self, path: str, content: bytes) -> bool:
        if self.writes:
            ObjectFolder(uri=self.uri).put_if_absent(path, content)
        if self.answer is None:
            raise ConnectionError("no answer")
        return self.answer


@pytest.mark.parametrize("answer", [None, False], ids=["no answer", "taken, by a first try of the same request"])
def test_a_plan_that_was_written_without_an_answer_of_the_store_counts(tmp_path: Path, answer: bool | None) -> None:
    ledger = ObjectLedger(Unreliable(uri=str(tmp_path), writes=True, answer=answer))
    assert ledger.append(plan(1))
    assert ledger.plan(TARGET, LIFE, 1) == plan(1)


def test_a_plan_that_was_not_written_is_an_error_and_one_that_a_rival_wrote_is_lost(tmp_path: Path) -> None:
    ledger = ObjectLedger(Unreliable(uri=str(tmp_path), writes=False, answer=None))
    with pytest.raises(EnvironmentSetupError, match="found ConnectionError"):
        ledger.append(plan(1))
    assert ObjectLedger(ObjectFolder(uri=str(tmp_path))).append(plan(1, until=7))
    assert not ledger.append(plan(1))


def test_plans_far_below_the_last_commit_are_pruned_and_those_of_others_stay(
    opened: Callable[[], ObjectLedger],
) -> None:
    ledger, last = opened(), KEPT_PLANS + 5
    for epoch in range(1, last + 1):
        assert ledger.append(plan(epoch))
    assert ledger.append(plan(1, target="views/largest"))
    ledger.prune(committed(last - 5))
    assert len(ledger.entries(TARGET, LIFE, since=0, until=last)) == last, "all are near enough"
    ledger.prune(committed(last))
    kept = [entry.epoch for entry in ledger.entries(TARGET, LIFE, since=0, until=last)]
    assert kept == list(range(6, last + 1))
    assert opened().newest(TARGET, LIFE) == opened().newest(TARGET, LIFE, since=last) == last
    assert opened().newest("views/largest", LIFE) == 1


def test_the_newest_epoch_is_found_from_the_last_commit_on(opened: Callable[[], ObjectLedger]) -> None:
    ledger = opened()
    for epoch in (1, 2, 10):
        assert ledger.append(plan(epoch))
    assert [ledger.newest(TARGET, LIFE, since=since) for since in (0, 9, 10, 11)] == [10, 10, 10, None]


def test_a_plan_that_was_not_committed_is_noticed_as_what_a_run_left_behind(opened: Callable[[], ObjectLedger]) -> None:
    for epoch in (1, 2):
        assert opened().append(plan(epoch))
    first, second = opened(), opened()
    assert (first.newest(TARGET, LIFE, since=2), first.left_behind) == (2, False)
    assert (second.newest(TARGET, LIFE, since=1), second.left_behind) == (2, True)


def test_a_lost_ledger_continues_from_the_last_commit(opened: Callable[[], ObjectLedger]) -> None:
    ledger = opened()
    ledger.rebuild(committed(7))
    ledger.rebuild(committed(7))
    (entry,) = ledger.entries(TARGET, LIFE, since=0, until=99)
    assert (entry.epoch, entry.plan, entry.plan_hash) == (7, None, plan(7).hash)
    assert opened().plan(TARGET, LIFE, 7) is None
    run = opened()
    assert run.newest(TARGET, LIFE, since=7) == 7
    assert run.append(plan(8))
    run.rebuild(committed(7))
    assert len(run.entries(TARGET, LIFE, since=0, until=99)) == 2, "what is known is not entered again"


def test_all_plans_of_a_life_go_when_it_is_removed(opened: Callable[[], ObjectLedger]) -> None:
    ledger = opened()
    assert ledger.append(plan(1))
    assert ledger.append(plan(1, target="views/larger"))
    assert ledger.incarnations(TARGET) == {LIFE}
    assert ledger.append(plan(1).model_copy(update={"incarnation": "22222222"}))
    ledger.remove(TARGET, LIFE)
    assert ledger.incarnations(TARGET) == {"22222222"}
    assert opened().newest("views/larger", LIFE) == 1


def test_a_run_without_end_remembers_no_more_of_its_plans_than_of_the_epochs_at_work(
    opened: Callable[[], ObjectLedger],
) -> None:
    ledger = opened()
    for epoch in range(1, 60):
        assert ledger.newest(TARGET, LIFE, since=epoch - 1) == (epoch - 1 or None)
        assert ledger.append(plan(epoch))
        assert len(ledger._seen) <= 2
