"""Faults of noticing commits that others have put in the place of those of this project."""

from tests.mutations.mutation import Mutation

__all__ = ["REPLACED"]

EPOCHS = "backfill_assets/adapters/delta/epochs_in_log.py"
COPY = "backfill_assets/adapters/storage/copied_log.py"
COMMITS = "tests/adapters/delta/test_real_commits.py"
LOGS = "tests/adapters/storage/test_copied_log.py"
NAMED = f"{COMMITS}::test_a_commit_of_somebody_else_in_the_place_of_the_one_before_is_named"
AT_REST = f"{COMMITS}::test_maintenance_between_two_epochs_is_no_external_write_nor_is_a_log_that_begins_later"
FAULTS = "tests/e2e/stores/test_s3_faults.py"
ON_S3 = f"{FAULTS}::test_a_commit_that_another_writer_has_replaced_is_noticed_before_or_after_the_next_one"
ANEW = f"{LOGS}::test_an_entry_that_is_replaced_below_a_newest_one_that_stays_is_requested_again"

REPLACED: tuple[Mutation, ...] = (
    Mutation(
        name="what came between two epochs is not looked at",
        file=EPOCHS,
        old="found = (self._before(record, commits), external,",
        new="found = (None, external,",
        tests=(NAMED, ON_S3),
    ),
    Mutation(
        name="only data in the place of an epoch is noticed",
        file=EPOCHS,
        old="                return changed if continues else changed or others",
        new="                return changed",
        tests=(f"{COMMITS}::test_an_entry_that_changed_no_data_in_the_place_of_an_epoch_is_named_as_well",),
    ),
    Mutation(
        name="an epoch that is restated continues the one before it",
        file=EPOCHS,
        old="        before = record.epoch - (record.kind is CommitKind.EPOCH)",
        new="        before = record.epoch - 1",
        tests=(AT_REST,),
    ),
    Mutation(
        name="a new life depends on what was there before",
        file=EPOCHS,
        old="        if record.kind not in {CommitKind.EPOCH, CommitKind.RESTATE}:",
        new="        if record.kind is CommitKind.DROP:",
        tests=(NAMED,),
    ),
    Mutation(
        name="maintenance between two epochs is an external write",
        file=EPOCHS,
        old="            changed = version if changes_data(actions) else changed",
        new="            changed = version",
        tests=(AT_REST,),
    ),
    Mutation(
        name="entries below the newest are not compared",
        file=COPY,
        old="        first = max(0, at - COMPARED)",
        new="        first = at",
        tests=(ANEW,),
    ),
    Mutation(
        name="an entry that expired is another log",
        file=COPY,
        old="            if number >= first and not expired and there != stored:",
        new="            if number >= first and there != stored:",
        tests=(f"{LOGS}::test_entries_that_expire_are_not_another_log",),
    ),
)
