"""The state store on real files: what runs and operators store about each table, for many tables at once."""

import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backfill_assets.adapters.runtime.processes import process_of
from backfill_assets.adapters.state.state_store import LEASE_SECONDS, CheckPass, Lease, State, StateStore
from backfill_assets.core.epoch.ports import Controls
from backfill_assets.core.epoch.skips import KeySkip, OffsetSkip
from backfill_assets.errors import StoredFormatError

TARGETS = [f"views/v{number}" for number in range(100)]


@pytest.fixture
def state(tmp_path: Path) -> State:
    return StateStore(warehouse=str(tmp_path / "warehouse")).state()


def test_reading_a_missing_store_creates_nothing(state: State, tmp_path: Path) -> None:
    assert (state.leases(), state.lease(TARGETS[0])) == ({}, None)
    assert (state.all_controls(), state.controls(TARGETS[0])) == ({}, Controls())
    assert state.passed(TARGETS[0], "unique_key") is None
    state.forget(TARGETS[0], {"11111111"})
    assert not list(tmp_path.iterdir())


def test_runs_of_a_hundred_tables_at_once_do_not_touch_each_other(state: State) -> None:
    def work(target: str) -> None:
        for epoch in range(5):
            state.put_lease(target, f"run of {target}")
            state.set_passed(target, "unique_key", CheckPass(incarnation="1", epoch=epoch, version=9))
            state.set_controls(target, Controls(rows_per_second=epoch), by="test")
        if target != TARGETS[0]:
            state.free_lease(target)

    with ThreadPoolExecutor(len(TARGETS)) as threads:
        list(threads.map(work, TARGETS))
    assert {target: lease.run_id for target, lease in state.leases().items()} == {TARGETS[0]: f"run of {TARGETS[0]}"}
    assert {state.passed(target, "unique_key") for target in TARGETS} == {
        CheckPass(incarnation="1", epoch=4, version=9)
    }
    assert state.all_controls() == dict.fromkeys(TARGETS, Controls(rows_per_second=4))


def test_the_newest_setting_holds_in_another_process_and_a_pass_is_of_one_check(state: State) -> None:
    state.set_controls("views/a", Controls(paused=True), by="test")
    state.set_controls("views/a", Controls(paused=True, rows_per_second=2.5), by="test")
    state.set_passed("views/a", "unique_key", CheckPass(incarnation="1", epoch=4, version=9))
    again = State(state.warehouse)
    assert again.controls("views/a") == Controls(paused=True, rows_per_second=2.5)
    assert again.controls("views/ab") == Controls()
    assert again.passed("views/a", "exactly_once") is None


def test_each_row_that_is_left_out_is_a_document_of_its_own(state: State) -> None:
    skips = [OffsetSkip(source="orders", partition=0, offset=number) for number in range(20)]
    keys = [KeySkip(source="rows", key=(("a/b", text), ("c", None))) for text in ("1", "../1", "null", "")]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda each: state.add_skip("views/a", each, by="test"), [*skips, *keys]))
    assert set(State(state.warehouse).skips("views/a")) == {*skips, *keys}
    state.add_skip("views/a", skips[0], by="another")
    state.remove_skip("views/a", skips[1])
    state.remove_skip("views/a", skips[1])
    assert set(state.skips("views/a")) == {*skips, *keys} - {skips[1]}
    assert state.skips("views/ab") == []
    for skip in state.skips("views/a"):
        state.remove_skip("views/a", skip)
    assert (state.skips("views/a"), state._skips._known) == ([], {}), "what was taken back is not remembered"


def test_what_one_list_has_told_is_asked_again_only_if_that_is_wanted(state: State) -> None:
    other, found = State(state.warehouse), Controls(rows_per_second=2)
    state.set_controls("views/a", found, by="test")
    state.put_lease("views/a", "a-run")
    for again in (True, False):
        held = other.lease("views/a", again=again)
        assert held is not None
        assert (held.run_id, other.controls("views/a", again=False)) == ("a-run", found)
        state.free_lease("views/a")
        state.set_controls("views/a", Controls(paused=True), by="test")
    assert (other.controls("views/a"), other.lease("views/a", again=False)) == (Controls(paused=True), None)


def test_an_empty_setting_is_damaged_and_not_taken_for_none(state: State) -> None:
    state.set_controls("views/a", Controls(paused=True), by="test")
    state.warehouse.objects("_state/tables/views/a").put("controls.json", b"")
    with pytest.raises(StoredFormatError, match=r"object _state/tables/views/a/controls\.json"):
        state.controls("views/a")
    with pytest.raises(StoredFormatError):
        state.all_controls()["views/a"]
    assert state.forget_unreadable("views/a") == ["_state/tables/views/a/controls.json"]
    assert state.controls("views/a") == Controls()


@pytest.mark.parametrize("kind", ["controls/views/a.json", "skips/views/a/1.json"])
def test_settings_of_an_earlier_layout_are_refused_with_their_place(state: State, kind: str) -> None:
    state.set_controls("views/a", Controls(paused=True), by="test")
    state.check_layout()
    state.warehouse.objects("_state").put(kind, b"{}")
    with pytest.raises(StoredFormatError, match=f"expected them below _state/tables, found _state/{kind}"):
        state.check_layout()


def test_rows_that_are_left_out_are_listed_again_only_if_asked_for(state: State) -> None:
    first, second = (OffsetSkip(source="orders", partition=0, offset=number) for number in (1, 2))
    state.add_skip("views/a", first, by="test")
    assert state.skips("views/a", again=False) == [first]
    state.add_skip("views/a", second, by="test")
    assert state.skips("views/a", again=False) == [first]
    assert state.skips("views/a") == state.skips("views/a", again=False) == [first, second]


def test_a_lease_is_released_by_the_run_that_has_it_and_no_other(state: State) -> None:
    another = State(state.warehouse)
    state.put_lease("views/a", "a-run")
    state.release_lease("views/a", "a-run")
    assert another.lease("views/a") is None
    state.put_lease("views/a", "a-run")
    another.put_lease("views/a", "another-run")
    state.release_lease("views/a", "a-run")
    found = another.lease("views/a")
    assert found is not None
    assert found.run_id == "another-run"


def test_forgetting_a_table_removes_everything_of_it_and_nothing_of_others(state: State) -> None:
    for target in ("views/a", "views/ab"):
        state.put_lease(target, "a-run")
        state.set_controls(target, Controls(paused=True), by="test")
        state.set_passed(target, "unique_key", CheckPass(incarnation="1", epoch=4, version=9))
        state.add_skip(target, OffsetSkip(source="orders", partition=0, offset=1), by="test")
    state.forget("views/a", {"1"})
    assert (state.skips("views/a"), len(state.skips("views/ab"))) == ([], 1)
    assert (state.lease("views/a"), state.controls("views/a")) == (None, Controls())
    assert state.passed("views/a", "unique_key") is None
    assert list(state.leases()) == list(state.all_controls()) == ["views/ab"]
    assert state.passed("views/ab", "unique_key") == CheckPass(incarnation="1", epoch=4, version=9)


def lease(*, age: float, here: bool = True, runs: bool = True) -> tuple[bool, bool]:
    """Whether a lease that was renewed this many seconds ago is alive, and whether it is dead."""
    now = datetime.now(UTC)
    found = Lease(
        target=TARGETS[0],
        run_id="a-run",
        host=socket.gethostname() if here else "another host",
        pid=os.getpid(),
        process_started=process_of(os.getpid()).created - (0 if runs else 1_000),
        renewed_at=now - timedelta(seconds=age),
    )
    return found.alive(now), found.dead(now)


def test_a_lease_is_alive_while_it_is_renewed_and_its_process_exists() -> None:
    late = LEASE_SECONDS + 1
    assert lease(age=1) == (True, False)
    assert lease(age=1, runs=False) == (False, True)
    assert lease(age=late) == (False, False), "a process of this host that is only slow is not dead"
    assert lease(age=late, runs=False) == (False, True)
    assert lease(age=1, here=False, runs=False) == (True, False), "of another host's processes nothing is known"
    assert lease(age=late, here=False) == (False, True)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("lease", {"written_at": "2026-11-25T10:00:00"}),
        ("lease", {"written_at": "2026-11-25"}),
        ("lease", {"pid": "x"}),
        ("lease", {"pid": -5}),
        ("lease", {"host": None}),
        ("lease", {"process_started": "noon"}),
        ("controls", {"rows_per_second": "fast"}),
        ("controls", {"rows_per_second": -1}),
        ("controls", {"rows_per_second": float("nan")}),
        ("controls", {"paused": "never mind"}),
        ("controls", {"paused": []}),
    ],
)
def test_a_document_with_other_values_is_damaged(state: State, name: str, changed: dict[str, object]) -> None:
    state.put_lease("views/a", "a-run")
    state.set_controls("views/a", Controls(), by="test")
    folder = state.warehouse.objects("_state/tables/views/a")
    stored = json.loads(folder.get(f"{name}.json") or b"")
    folder.put(f"{name}.json", json.dumps({**stored, **changed}).encode())
    ask = State(state.warehouse)
    with pytest.raises(StoredFormatError, match=rf"object _state/tables/views/a/{name}\.json"):
        (ask.lease if name == "lease" else ask.controls)("views/a")
    assert ask.forget_unreadable("views/a") == [f"_state/tables/views/a/{name}.json"]


def test_a_document_that_is_nested_too_deeply_is_damaged(state: State) -> None:
    nested = b'{"format": 2, "x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    state.warehouse.objects("_state/tables/views/a").put("lease.json", nested)
    with pytest.raises(StoredFormatError, match="RecursionError"):
        state.lease("views/a")
    assert state.forget_unreadable("views/a") == ["_state/tables/views/a/lease.json"]


def test_a_lease_of_a_wrong_clock_blocks_nobody_for_long(state: State) -> None:
    state.put_lease("views/a", "a-run")
    lease = state.lease("views/a")
    assert lease is not None
    there = replace(lease, host="another")
    now = lease.renewed_at
    ages = {seconds: there.alive(now + timedelta(seconds=seconds)) for seconds in (-3700, -3500, 0, 59, 61)}
    assert ages == {-3700: False, -3500: True, 0: True, 59: True, 61: False}
