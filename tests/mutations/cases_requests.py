"""Faults in what spares requests to a store: logs that are copied, and what is known to who wrote it."""

from tests.mutations.mutation import Mutation

__all__ = ["REQUESTS"]

COPY = "backfill_assets/adapters/storage/copied_log.py"
WAREHOUSE = "backfill_assets/adapters/storage/warehouse.py"
OUTPUT = "backfill_assets/adapters/delta/output.py"
COPIED = "tests/adapters/storage/test_copied_log.py"
PUT = "tests/adapters/storage/test_put_files.py"
ON_S3 = "tests/e2e/stores/test_s3_faults.py"

REQUESTS: tuple[Mutation, ...] = (
    # A log that is copied
    Mutation(
        name="another log in the place of the one that was copied is followed",
        file=COPY,
        old="if not self._holds(found, first) or not found.is_whole_since(at):",
        new="if not found.is_whole_since(at):",
        tests=(f"{COPIED}::test_another_log_in_the_tables_place_is_loaded_anew",),
    ),
    Mutation(
        name="another entry is taken for the one that is known",
        file=COPY,
        old="return path in self.known and self.known[path][0] == stored.tag",
        new="return path in self.known and bool(stored.tag)",
        tests=(
            "tests/adapters/storage/test_log_tail.py::test_what_is_kept_of_another_log_is_not_used",
            f"{COPIED}::test_an_entry_that_was_put_here_and_replaced_since_is_requested",
        ),
    ),
    Mutation(
        name="checkpoints that only delta-rs reads are passed over",
        file=COPY,
        old="return bool(self.needed) and not self.others and fits",
        new="return bool(self.needed) and fits",
        tests=(f"{COPIED}::test_a_log_of_which_entries_are_missing_or_that_has_other_checkpoints_is_left_to_delta",),
    ),
    Mutation(
        name="a copy of a log is followed for ever",
        file=COPY,
        old="if len(self.entries) + len(new) > MANY and",
        new="if len(self.entries) < 0 and",
        tests=(f"{COPIED}::test_a_copy_that_has_grown_long_is_made_anew",),
    ),
    Mutation(
        name="a commit is made on the copy of a log",
        file=WAREHOUSE,
        old="        if not isinstance(table, CopiedTable):\n",
        new="        if isinstance(table, CopiedTable):\n",
        tests=(f"{COPIED}::test_who_commits_gets_the_version_as_it_is_in_its_place",),
    ),
    Mutation(
        name="a version is replayed from entries of a log that is gone",
        file="backfill_assets/adapters/delta/log_replay.py",
        old="read_commit(location, number, again=True)",
        new="read_commit(location, number)",
        tests=(f"{COPIED}::test_a_version_is_replayed_from_the_log_as_it_is_now",),
    ),
    Mutation(
        name="the tail of a longer log hides the log that is there",
        file=COPY,
        old="return None if tail is None else cls.newest(place, objects)",
        new="return None",
        tests=("tests/adapters/storage/test_log_tail.py::test_what_is_kept_of_a_log_that_was_longer_is_passed_over",),
    ),
    Mutation(
        name="a log is never expired by runs",
        file="backfill_assets/app/heartbeat.py",
        old="if record.epoch % TIDY_EVERY == 0:",
        new="if record.epoch % TIDY_EVERY < 0:",
        tests=("tests/e2e/kills/test_rivals.py::test_maintenance_vacuum_and_expiry_remove_nothing_from_a_stalled_run",),
    ),
    # What is known to who wrote it
    Mutation(
        name="files are known to be there after a commit that failed",
        file=OUTPUT,
        old="            self.location.forget_files()\n",
        new="            pass\n",
        tests=(f"{PUT}::test_before_a_commit_is_tried_again_its_files_are_looked_for",),
    ),
    Mutation(
        name="files of any size are remembered",
        file=WAREHOUSE,
        old="len(content) <= _REMEMBERED and",
        new="len(content) >= 0 and",
        tests=(f"{PUT}::test_large_files_are_not_remembered",),
    ),
    Mutation(
        name="a lease is released whoever has it",
        file="backfill_assets/adapters/storage/object_store.py",
        old="obstore.put(self._store, path, content, mode=known)",
        new="obstore.put(self._store, path, content)",
        tests=(f"{ON_S3}::test_a_lease_is_released_by_one_request_unless_another_run_has_it",),
    ),
    Mutation(
        name="a version is replayed of a copy that does not have it",
        file=WAREHOUSE,
        old="yield self.location if copy is None or not copy.has(version) else",
        new="yield self.location if copy is None else",
        tests=(f"{COPIED}::test_an_upstreams_versions_are_replayed_from_the_copy_of_its_log",),
    ),
    Mutation(
        name="a copy goes while it is read",
        file=WAREHOUSE,
        old="""        copy = self._copy
        yield self.location if copy is None or not copy.has(version) else TableLocation(uri=str(copy.folder))
""",
        new="""        held = self._copy is not None and self._copy.has(version)
        yield TableLocation(uri=str(self._copy.folder)) if self._copy is not None and held else self.location
""",
        tests=(f"{COPIED}::test_a_copy_stays_while_a_version_of_it_is_replayed",),
    ),
    Mutation(
        name="an upstream is always told of what was loaded before",
        file="backfill_assets/adapters/delta/upstream.py",
        old="table = self._log.newest() if again else self.location.last()",
        new="table = self.location.last()",
        tests=(f"{COPIED}::test_an_upstreams_versions_are_replayed_from_the_copy_of_its_log",),
    ),
    Mutation(
        name="Spark is asked for a store of which it has read",
        file="backfill_assets/adapters/spark/reaching_runner.py",
        old="        self._runner.note_reached()\n",
        new="        self._runner.reach()\n",
        tests=(
            "tests/adapters/spark/test_reach.py::"
            "test_a_store_of_which_spark_has_read_what_only_this_process_has_written_is_not_asked",
        ),
    ),
    Mutation(
        name="on Azure, the mark of a folder stays",
        file="backfill_assets/adapters/storage/markers.py",
        old="[*empty, of] if is_azure and of else empty",
        new="empty",
        tests=("tests/adapters/storage/test_markers.py::test_on_azure_a_mark_is_an_object_of_the_folders_name",),
    ),
    Mutation(
        name="elsewhere, empty objects stay",
        file="backfill_assets/adapters/storage/markers.py",
        old="if size or not is_azure]",
        new="if size]",
        tests=("tests/adapters/storage/test_markers.py::test_elsewhere_an_empty_object_that_was_found_may_be_no_mark",),
    ),
    Mutation(
        name="temporary folders of processes that live are removed",
        file="backfill_assets/adapters/runtime/temporary_folders.py",
        old="    fcntl.flock(lock, fcntl.LOCK_EX)\n",
        new="",
        tests=("tests/adapters/runtime/test_temporary_folders.py",),
    ),
)
