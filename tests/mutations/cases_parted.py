"""Faults in the history of a query that is divided by the hashes of a key."""

from tests.mutations.mutation import Mutation

__all__ = ["PARTED"]

HISTORY = "backfill_assets/core/strategies/hashed_history.py"
PURE = "tests/core/strategies/test_joined_history.py"
PARTS = "tests/query/test_parts_are_exact.py"
CHUNKS = (
    "tests/e2e/tables/test_hashed_history.py::test_each_part_adds_what_it_gives_and_changes_wait_until_history_is_read"
)
WINDOW = f"{CHUNKS}[window]"

PARTED: tuple[Mutation, ...] = (
    Mutation(
        name="a part of the hashes is passed over",
        file=HISTORY,
        old='update={"next": end, "rows": after}',
        new='update={"next": min(end + 1, bucket.parts), "rows": after}',
        tests=(PURE, WINDOW),
    ),
    Mutation(
        name="the last of the parts that were read is read again",
        file="backfill_assets/adapters/sql/keys.py",
        old="AND {part} < {taken.end}",
        new="AND {part} <= {taken.end}",
        tests=(WINDOW,),
    ),
    Mutation(
        name="parts of the hashes are taken of one table alone",
        file=HISTORY,
        old="    for name, rows in held.items():",
        new="    for name, rows in list(held.items())[:1]:",
        tests=(PURE,),
    ),
    Mutation(
        name="proofs within history take all parts of the hashes",
        file="backfill_assets/adapters/proof/tables.py",
        old="done = OffsetRange(start=0, end=inputs.read.next)",
        new="done = OffsetRange(start=0, end=inputs.read.parts)",
        tests=(WINDOW,),
    ),
    Mutation(
        name="parts that were read count for nothing in the proof of positions",
        file="backfill_assets/core/audit.py",
        old="if isinstance(table, SnapshotRead | KeyRead | HashRead):",
        new="if isinstance(table, SnapshotRead | KeyRead):",
        tests=(WINDOW,),
    ),
    Mutation(
        name="rows that are in several windows are divided by these",
        file="backfill_assets/query/relational.py",
        old="fit = [key for key in self.classes.classes if not key.hops]",
        new="fit = list(self.classes.classes)",
        tests=(f"{PARTS}::test_rows_that_are_in_several_windows_are_not_divided_by_these",),
    ),
    Mutation(
        name="history is divided by the key of the fewest rows",
        file="backfill_assets/query/relational.py",
        old="        return max(fit, key=lambda key: sum(",
        new="        return min(fit, key=lambda key: sum(",
        tests=(f"{PARTS}::test_of_several_keys_the_one_that_covers_most_rows_divides_them",),
    ),
    Mutation(
        name="parts of the hashes are estimated as if each read its own rows alone",
        file="backfill_assets/core/choice/estimates.py",
        old="(0 if work.parts else driven)",
        new="driven",
        tests=("tests/core/choice/test_choose_joined.py::test_each_part_of_the_hashes_of_a_key_reads_all_rows",),
    ),
    Mutation(
        name="epochs of two kinds move what is learned twice as far",
        file="backfill_assets/core/epoch/costs.py",
        old="least = _near(median(small), default)",
        new="least = _near(median(small), fixed[1])",
        tests=(
            "tests/core/choice/test_choose_properties.py::"
            "test_epochs_of_two_kinds_move_a_constant_no_further_than_those_of_one",
        ),
    ),
)
