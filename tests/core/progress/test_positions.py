"""Partition states on ranges of offsets do what the two transition tables of the row-by-row reference do."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.progress.positions import PartitionState, Phase


@dataclass(frozen=True)
class Ref:
    """The reference's state of a partition, with inclusive offsets: `b` last emitted, `target` last to be read."""

    state: str = "Backfilling"
    b: int | None = None
    target: int | None = None


def handle_upstream_row(ref: Ref, o: int) -> tuple[Ref, bool]:
    match ref.state:
        case "Backfilling":
            if ref.b is None or ref.b < o:
                return replace(ref, target=o), False
            return (replace(ref, state="Finished"), False) if ref.b == o else (replace(ref, state="CatchingUp"), False)
        case "CatchingUp":
            assert ref.b is not None
            if ref.b < o:
                return replace(ref, state="Finished"), True
            return (replace(ref, state="Finished"), False) if ref.b == o else (ref, False)
        case _:
            return ref, True


def handle_backfill_row(ref: Ref, o: int) -> tuple[Ref, bool]:
    if ref.state != "Backfilling":
        return ref, False
    reached = ref.target is not None and o >= ref.target
    return replace(ref, state="CatchingUp" if reached else "Backfilling", b=o), True


def handle_backfill_progress(ref: Ref, o: int) -> Ref:
    """Partition EOF: like a row without data; while catching up it may raise `b`."""
    if ref.state == "CatchingUp":
        assert ref.b is not None
        return replace(ref, b=max(ref.b, o))
    return handle_backfill_row(ref, o)[0]


def as_partition(ref: Ref, *, live: int) -> PartitionState:
    following = 0 if ref.b is None else ref.b + 1
    phase = {"Backfilling": Phase.BACKFILLING, "CatchingUp": Phase.CATCHING_UP, "Finished": Phase.FINISHED}[ref.state]
    target = 0 if ref.target is None else ref.target + 1
    return PartitionState(phase=phase, start=0, next=following, live=live, target=target)


def assert_corresponds(partition: PartitionState, ref: Ref, *, start: int) -> None:
    following = start if ref.b is None else ref.b + 1
    match ref.state:
        case "Backfilling":
            assert (partition.phase, partition.next, partition.target) == (
                Phase.BACKFILLING,
                following,
                (ref.target or 0) + 1,
            )
        case "CatchingUp" if partition.live < following:
            assert (partition.phase, partition.next) == (Phase.CATCHING_UP, following)
        case _:  # the reference notices only at a later live row that live has caught up; a range notices at once
            assert partition.phase is Phase.FINISHED


UPSTREAM_ROWS = {
    "not started: the target follows live": (Ref(target=9), 5, 5, Ref(target=5), False),
    "history behind live: the target follows live, even down": (Ref(b=3, target=9), 5, 5, Ref(b=3, target=5), False),
    "history exactly at live: finished": (Ref(b=5, target=9), 5, 5, Ref("Finished", 5, 9), False),
    "history ahead of live: stop, and hide live rows": (Ref(b=7, target=9), 5, 5, Ref("CatchingUp", 7, 9), False),
    "catching up, live jumps past b: visible": (Ref("CatchingUp", 5, 5), 5, 8, Ref("Finished", 5, 5), True),
    "catching up, live delivers b: hidden": (Ref("CatchingUp", 5, 5), 5, 5, Ref("Finished", 5, 5), False),
    "catching up, live behind b: hidden": (Ref("CatchingUp", 5, 5), 3, 3, Ref("CatchingUp", 5, 5), False),
    "finished: visible": (Ref("Finished", 4, 5), 5, 5, Ref("Finished", 4, 5), True),
}


@pytest.mark.parametrize(("ref", "live", "offset", "after", "visible"), UPSTREAM_ROWS.values(), ids=UPSTREAM_ROWS)
def test_live_rows_move_a_partition_as_each_row_of_the_table_says(
    ref: Ref, live: int, offset: int, after: Ref, visible: bool
) -> None:
    assert handle_upstream_row(ref, offset) == (after, visible)
    before = as_partition(ref, live=live)
    moved = before.see_live(offset + 1)
    assert_corresponds(moved, after, start=0)
    shown = moved.phase is Phase.FINISHED and moved.next <= offset < moved.live
    assert shown is visible


BACKFILL_ROWS = {
    "not started, at the target: emitted, then catching up": (Ref(target=0), 0, Ref("CatchingUp", 0, 0)),
    "at the target: emitted, then catching up": (Ref(b=3, target=4), 4, Ref("CatchingUp", 4, 4)),
    "not started, before the target: emitted": (Ref(target=9), 0, Ref(b=0, target=9)),
    "before the target: emitted": (Ref(b=3, target=9), 4, Ref(b=4, target=9)),
}


@pytest.mark.parametrize(("ref", "offset", "after"), BACKFILL_ROWS.values(), ids=BACKFILL_ROWS)
def test_history_moves_a_partition_as_each_row_of_the_table_says(ref: Ref, offset: int, after: Ref) -> None:
    assert handle_backfill_row(ref, offset) == (after, True)
    assert_corresponds(as_partition(ref, live=0).read_history(offset + 1), after, start=0)


@pytest.mark.parametrize("state", ["CatchingUp", "Finished"])
def test_history_read_past_the_hand_over_is_hidden_by_the_seed_and_never_read_here(state: str) -> None:
    ref = Ref(state, 4, 4)
    assert handle_backfill_row(ref, 5) == (ref, False)
    assert as_partition(ref, live=5).phase is not Phase.BACKFILLING


def test_the_end_of_a_partition_moves_a_history_without_rows_to_its_target() -> None:
    ref = handle_backfill_progress(Ref(b=3, target=9), 9)
    assert ref == Ref("CatchingUp", 9, 9)
    assert_corresponds(as_partition(Ref(b=3, target=9), live=0).read_history(10), ref, start=0)


@dataclass
class Both:
    """One partition in both worlds. `log[o]` says whether offset `o` delivers a record; `dense` events include gaps."""

    log: list[bool]
    start: int
    live: int
    end: int
    dense: bool

    def __post_init__(self) -> None:
        self.partition = PartitionState.begin(start=self.start, live=self.live, end=self.end)
        finished = self.start >= self.end
        self.ref = Ref("Finished" if finished else "Backfilling", None, self.end - 1)
        self.mine: list[int] = []
        self.theirs: list[int] = []

    def bronze_moves(self, by: int) -> None:
        to = min(self.live + by, len(self.log))
        for o in range(self.live, to):
            if self.log[o] or self.dense:
                self.ref, visible = handle_upstream_row(self.ref, o)
                self._show(visible, o)
        self.live = to
        before, self.partition = self.partition, self.partition.see_live(to)
        if self.partition.phase is Phase.FINISHED:
            self.mine += [o for o in range(self.partition.next, to) if self.log[o]]
            self.partition = self.partition.read_live(max(to, self.partition.next))
        self._check(before)

    def history_is_read(self, by: int) -> None:
        first = self.start if self.ref.b is None else self.ref.b + 1
        for o in range(first, min(first + by, len(self.log))):
            if self.log[o]:
                self.ref, visible = handle_backfill_row(self.ref, o)
                self._show(visible, o)
            elif self.dense or o + 1 in {first + by, len(self.log)}:
                self.ref = handle_backfill_progress(self.ref, o) if self.ref.state == "Backfilling" else self.ref
        before = self.partition
        if before.phase is Phase.BACKFILLING:
            end = min(before.next + by, before.target)
            self.mine += [o for o in range(before.next, end) if self.log[o]]
            self.partition = before.read_history(end)
        self._check(before)

    def _show(self, visible: bool, o: int) -> None:
        if visible and self.log[o]:
            self.theirs.append(o)

    def _check(self, before: PartitionState) -> None:
        assert self.partition.next >= before.next, "next went back"
        assert before.phase is not Phase.FINISHED or self.partition.phase is Phase.FINISHED, "left finished"
        if self.dense:
            assert sorted(self.mine) == sorted(self.theirs)
            assert_corresponds(self.partition, self.ref, start=self.start)


@st.composite
def partitions(draw: st.DrawFn, *, dense: bool) -> Both:
    log = draw(st.lists(st.booleans(), max_size=25))
    end = draw(st.integers(0, len(log)))
    live = draw(st.integers(0, end))
    return Both(log=log, start=draw(st.integers(0, live)), live=live, end=end, dense=dense)


Moves = list[tuple[str, int]]
moves = st.lists(st.tuples(st.sampled_from(["bronze_moves", "history_is_read"]), st.integers(1, 6)), max_size=20)


@given(partitions(dense=True), moves)
def test_ranges_emit_the_same_rows_in_the_same_states_as_the_seed_offset_by_offset(both: Both, walk: Moves) -> None:
    for move, by in walk:
        getattr(both, move)(by)


@given(partitions(dense=False), moves)
def test_where_only_rows_and_partition_ends_are_events_both_emit_every_row_exactly_once(
    both: Both, walk: Moves
) -> None:
    for move, by in [*walk, ("bronze_moves", 99), ("history_is_read", 99)]:
        getattr(both, move)(by)
    expected = [o for o, delivered in enumerate(both.log) if delivered and o >= both.start]
    assert sorted(both.mine) == expected
    assert sorted(both.theirs) == expected
    assert both.partition.phase is Phase.FINISHED
