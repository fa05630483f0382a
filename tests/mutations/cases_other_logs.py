"""Faults around logs that others have changed in ways that a log is not to be changed, and documents with odd content."""

from tests.mutations.mutation import Mutation

__all__ = ["OTHER_LOGS"]

COPIED = "backfill_assets/adapters/storage/copied_log.py"
STATE = "backfill_assets/adapters/state/state_store.py"
RESTORED = "tests/adapters/delta/test_restored_upstream.py"
COPIES = "tests/adapters/storage/test_copied_log.py"
DOCUMENTS = "tests/adapters/state/test_state_store.py"

OTHER_LOGS: tuple[Mutation, ...] = (
    Mutation(
        name="versions before a checkpoint are loaded of what is copied after it",
        file=COPIED,
        old="return max(0, self._checkpoint[0]) <= version <= self.table.version()",
        new="return 0 <= version <= self.table.version()",
        tests=(f"{COPIES}::test_versions_before_a_copied_checkpoint_are_left_to_delta",),
    ),
    Mutation(
        name="each version is loaded from the store",
        file=COPIED,
        old="return CopiedTable(self.folder, self.place, version)",
        new="return None",
        tests=(f"{COPIES}::test_versions_of_which_all_is_copied_are_loaded_without_a_request",),
    ),
    Mutation(
        name="what was read of a log before it was restored counts",
        file="backfill_assets/adapters/delta/upstream.py",
        old="        if self._kept.loads != self._log.loads:",
        new="        if self._kept.loads > self._log.loads:",
        tests=(
            f"{RESTORED}::test_a_run_that_has_looked_before_refuses_the_table_as_a_new_one_does",
            f"{RESTORED}::test_versions_that_were_looked_at_are_read_as_the_log_has_them_now",
        ),
    ),
    Mutation(
        name="entries of one size and second are taken for the same",
        file="backfill_assets/adapters/storage/warehouse.py",
        old="return None if head is None else (version, head)",
        new="return None if head is None else (version, Stored(head.size, head.modified, None))",
        tests=(f"{RESTORED}::test_entries_of_one_size_and_second_are_told_apart_by_their_tags",),
    ),
    Mutation(
        name="a checkpoint that only delta-rs reads stops a run",
        file=COPIED,
        old="        except DeltaError:",
        new="        except KeyError:",
        tests=(
            f"{COPIES}::test_a_checkpoint_without_content_is_left_to_delta",
            f"{COPIES}::test_a_checkpoint_whose_files_are_in_sidecars_is_left_to_delta_though_its_name_does_not_tell",
        ),
    ),
    Mutation(
        name="a long log without a newer checkpoint is copied at each look",
        file=COPIED,
        old=" > MANY and self._newer > self._checkpoint[0]:",
        new=" > MANY:",
        tests=(f"{COPIES}::test_a_log_that_has_no_newer_checkpoint_is_not_copied_again",),
    ),
    Mutation(
        name="a hint with a long number stops a run",
        file=COPIED,
        old="(\\d{1,18})(?!\\d)",
        new="(\\d+)",
        tests=(f"{COPIES}::test_a_hint_that_says_nothing_costs_only_a_longer_list",),
    ),
    Mutation(
        name="a tail that begins nowhere stops each run",
        file="backfill_assets/adapters/storage/log_tail.py",
        old='        if type(document["begins"]) is not int:',
        new='        if document["begins"] is ...:',
        tests=("tests/adapters/storage/test_log_tail.py::test_a_tail_that_begins_nowhere_is_passed_over",),
    ),
    Mutation(
        name="a lease that was renewed without a reply stays when it is given back",
        file=STATE,
        old="            with suppress(Exception):\n                if self._leases",
        new="            with suppress(Exception):\n                return\n                if self._leases",
        tests=(
            "tests/e2e/stores/test_s3_faults.py::test_a_lease_is_released_by_one_request_unless_another_run_has_it",
        ),
    ),
    Mutation(
        name="a lease of a clock that is ahead is never that of a dead run",
        file=STATE,
        old="if not -MOST_AHEAD <= (now",
        new="if not -1e12 <= (now",
        tests=(f"{DOCUMENTS}::test_a_lease_of_a_wrong_clock_blocks_nobody_for_long",),
    ),
    Mutation(
        name="settings count whatever they hold",
        file=STATE,
        old="found = _CONTROLS.validate_python(given)",
        new="found = Controls(**given)",
        tests=(f"{DOCUMENTS}::test_a_document_with_other_values_is_damaged",),
    ),
    Mutation(
        name="a checkpoint without content counts for one",
        file="backfill_assets/adapters/delta/log_replay.py",
        old="<= version and info.size:",
        new="<= version:",
        tests=(f"{COPIES}::test_a_checkpoint_without_content_is_left_to_delta",),
    ),
)
