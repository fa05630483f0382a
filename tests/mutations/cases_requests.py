"""Faults in what spares requests to a store: logs that are copied."""

from tests.mutations.mutation import Mutation

__all__ = ["REQUESTS"]

COPY = "backfill_assets/adapters/storage/copied_log.py"
WAREHOUSE = "backfill_assets/adapters/storage/warehouse.py"
COPIED = "tests/adapters/storage/test_copied_log.py"

REQUESTS: tuple[Mutation, ...] = (
    # A log that is copied
    Mutation(
        name="another log in the place of the one that was copied is followed",
        file=COPY,
        old="if found.entries.get(at) != self.entries[at] or new != [*range(at + 1, at + 1 + len(new))]:",
        new="if new != [*range(at + 1, at + 1 + len(new))]:",
        tests=(f"{COPIED}::test_another_log_in_the_tables_place_is_loaded_anew",),
    ),
    Mutation(
        name="an entry of another is taken for the one that was put here",
        file=COPY,
        old="return number in self.put and self.put[number][0] == stored.tag",
        new="return number in self.put and bool(stored.tag)",
        tests=(f"{COPIED}::test_an_entry_that_was_put_here_is_not_requested_and_one_of_another_is",),
    ),
    Mutation(
        name="checkpoints that only delta-rs reads are passed over",
        file=COPY,
        old="if found.others or not found.entries",
        new="if not found.entries",
        tests=(f"{COPIED}::test_a_log_of_which_entries_are_missing_or_that_has_other_checkpoints_is_left_to_delta",),
    ),
    Mutation(
        name="a copy of a log is followed for ever",
        file=COPY,
        old="if len(self.entries) + len(new) > MANY:",
        new="if len(self.entries) < 0:",
        tests=(f"{COPIED}::test_a_copy_that_has_grown_long_is_made_anew",),
    ),
    Mutation(
        name="a commit is made on the copy of a log",
        file=WAREHOUSE,
        old="        if not isinstance(table, CopiedTable):\n",
        new="        if isinstance(table, CopiedTable):\n",
        tests=(f"{COPIED}::test_who_commits_gets_the_version_as_it_is_in_its_place",),
    ),
)
