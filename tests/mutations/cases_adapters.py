"""Faults in the adapters for Delta: commits, merges, staged files, the ledger and the operators' settings."""

from tests.mutations.mutation import Mutation

__all__ = ["ADAPTERS"]

KILLED = "tests/e2e/kills/test_kill.py::test_a_killed_run_is_resumed_with_at_most_one_epoch_redone"
DELTA = "backfill_assets/adapters/delta/output.py"
LEDGER = "backfill_assets/adapters/state/ledger.py"
STAGING = "backfill_assets/adapters/delta/staging.py"
STAGED_FILES = "backfill_assets/adapters/delta/staged_files.py"
REAL_COMMITS = "tests/adapters/delta/test_real_commits.py"
NUMBERED = "test_each_commit_carries_the_number_of_its_epoch_and_a_new_life_uses_up_those_of_the_old"
VERIFIED = "test_staged_files_must_hold_the_rows_that_were_counted_and_be_as_long_as_they_were"
REAL_LOGS = "tests/adapters/delta/test_real_logs.py"
PLANS = "tests/adapters/state/test_ledger.py"
SWEEPING = f"{REAL_LOGS}::test_sweeping_spares_the_epoch_in_the_making_and_every_folder_of_a_life_that_begins_meanwhile"
ODD_KEYS = (
    "tests/e2e/tables/test_snapshot_keys.py::"
    "test_composite_hidden_keys_with_null_nan_negative_zero_and_keywords_by_either_engine"
)
EVERY_CHANGE = "tests/e2e/tables/test_snapshot.py::test_history_is_read_in_chunks_and_changes_of_every_kind_follow"

ADAPTERS: tuple[Mutation, ...] = (
    # The spool
    Mutation(
        name="files of the spool need not be as long as they were",
        file="backfill_assets/adapters/delta/spool.py",
        old="if sizes is None or found != sizes:",
        new="if sizes is None or found.keys() != sizes.keys():",
        tests=("tests/adapters/delta/test_spool.py",),
    ),
    # Commits
    Mutation(
        name="commits carry no transaction number",
        file=DELTA,
        old="app_transactions=[Transaction(app, number) for app, number in self._numbers(record).items()],",
        new="app_transactions=[],",
        tests=(f"{REAL_COMMITS}::{NUMBERED}",),
    ),
    Mutation(
        name="a life that ends leaves its numbers to a merge of a dead run",
        file=DELTA,
        old="            numbers[app_id(record.target, self._epochs.life)] = NO_MORE_EPOCHS\n",
        new="            pass\n",
        tests=(f"{REAL_COMMITS}::{NUMBERED}",),
    ),
    Mutation(
        name="a new life keeps the rows of the one before",
        file=DELTA,
        old='"overwrite" if staged.replaces else "append",',
        new='"append",',
        tests=(
            f"{REAL_LOGS}::test_a_slow_drop_deletes_nothing_of_the_life_that_came_after_it",
            "tests/e2e/kills/test_survival.py::test_drop_leaves_nothing_and_what_is_created_again_is_exact",
        ),
    ),
    Mutation(
        name="columns that somebody else added are not seen",
        file="backfill_assets/adapters/delta/epochs_in_log.py",
        old="external, self._reshaped(at, described))",
        new="external)",
        tests=(f"{REAL_LOGS}::test_columns_that_somebody_else_added_are_an_external_write_and_properties_are_not",),
    ),
    Mutation(
        name="a table whose log was cleaned up is taken for a new one",
        file=DELTA,
        old="and found.version >= 0 and read_commit(self.location, 0) is None:",
        new="and found.version >= 0 and read_commit(self.location, found.version) is None:",
        tests=(
            "tests/e2e/kills/test_survival.py::"
            "test_positions_outlive_log_cleanup_once_restated_and_are_never_guessed_without",
        ),
    ),
    Mutation(
        name="missing staged files are not noticed",
        file=DELTA,
        old="missing = sorted(path for path, size in sizes.items() if found.get(path) != size)",
        new="missing = sorted(path for path, size in sizes.items() if found.get(path, size) != size)",
        tests=(
            f"{REAL_COMMITS}::{VERIFIED}",
            "tests/e2e/kills/test_commit_outcomes.py::test_every_commit_ends_as_its_case_says[VACUUM_without_retention]",
        ),
    ),
    Mutation(
        name="a put-if-absent replaces what is there",
        file="backfill_assets/adapters/storage/object_store.py",
        old='mode="create")',
        new='mode="overwrite")',
        tests=("tests/adapters/delta/test_created_tables.py",),
    ),
    Mutation(
        name="statistics of floats leave out NaN",
        file="backfill_assets/adapters/delta/file_bounds.py",
        old='and each.type.type not in {"float", "double"}',
        new='and each.type.type not in {"binary"}',
        tests=(
            "tests/e2e/kills/test_survival.py::"
            "test_reset_accepts_other_columns_and_their_files_can_be_compacted_and_filtered",
        ),
    ),
    # Merging by key
    Mutation(
        name="null is no key to delta-rs",
        file="backfill_assets/adapters/delta/same_key.py",
        old='IS NOT DISTINCT FROM "\n',
        new='= "\n',
        tests=("tests/adapters/delta/test_same_key.py",),
    ),
    Mutation(
        name="null is no key to Spark's merge",
        file="backfill_assets/adapters/compute/merge.py",
        old="equal = left[quoted(name)].eqNullSafe(named[_KEY.format(at)])",
        new="equal = left[quoted(name)] == named[_KEY.format(at)]",
        tests=(ODD_KEYS,),
    ),
    Mutation(
        name="deletes are left out of a merge",
        file=DELTA,
        old=""").when_matched_delete(f"s.{OPERATION} = 'delete'")""",
        new=""").when_matched_delete("s.__op = 'remove'")""",
        tests=(
            "tests/adapters/delta/test_merged_rows.py::test_a_table_that_asks_more_of_its_writers_is_merged_by_delta_rs",
        ),
    ),
    # Staging and sweeping
    Mutation(
        name="the files of the epoch in the making are swept",
        file="backfill_assets/core/epoch/staged_folders.py",
        old="folder.epoch <= epoch and",
        new="folder.epoch <= epoch + 1 and",
        tests=(
            "tests/core/epoch/test_staged_folders.py",
            "tests/e2e/kills/test_rivals.py::test_maintenance_vacuum_and_expiry_remove_nothing_from_a_stalled_run",
        ),
    ),
    Mutation(
        name="segments that a position still needs are swept",
        file="backfill_assets/core/epoch/staged_folders.py",
        old="(folder.epoch <= epoch and folder.name not in needed)",
        new="folder.epoch <= epoch",
        tests=(
            "tests/core/strategies/test_rearranged.py",
            "tests/e2e/tables/test_rearranged.py::"
            "test_it_finishes_exact_though_log_and_files_are_cleaned_away_behind_it",
        ),
    ),
    Mutation(
        name="folders that were committed are swept",
        file=STAGING,
        old="swept = sorted({each.name for each in allowed} - _maybe_committed(location, looked, allowed))",
        new="swept = sorted({each.name for each in allowed})",
        tests=(
            SWEEPING,
            "tests/e2e/kills/test_survival.py::"
            "test_files_that_were_committed_outlive_a_sweep_though_the_log_forgot_their_commits",
        ),
    ),
    Mutation(
        name="folders are swept whose commits the log has forgotten",
        file=STAGING,
        old="    if oldest > 0:\n",
        new="    if oldest < 0:\n",
        tests=(
            "tests/e2e/kills/test_survival.py::"
            "test_files_that_were_committed_outlive_a_sweep_though_the_log_forgot_their_commits",
        ),
    ),
    Mutation(
        name="what a drop deletes is listed after the table was read",
        file=STAGING,
        old="""    listed = _inside(location, "")
    spooled = spooled_folders(location)
    looked = look()
""",
        new="""    looked = look()
    listed = _inside(location, "")
    spooled = spooled_folders(location)
""",
        tests=(
            f"{REAL_LOGS}::test_a_drop_deletes_what_existed_before_it_began_and_nothing_staged_since",
            f"{REAL_LOGS}::test_a_drop_deletes_the_spool_but_for_what_a_life_begun_since_has_captured",
        ),
    ),
    Mutation(
        name="segments of the spool that are still needed are swept",
        file=STAGING,
        old="if may_go(each, needed=needed))",
        new="if may_go(each))",
        tests=(
            "tests/e2e/tables/test_rearranged.py::"
            "test_it_finishes_exact_though_log_and_files_are_cleaned_away_behind_it",
        ),
    ),
    Mutation(
        name="staged files that hold rows are left out",
        file=STAGED_FILES,
        old="return tuple(sorted((each for each in staged if each.rows), key=lambda each: each.path))",
        new="return tuple(sorted((each for each in staged if not each.rows), key=lambda each: each.path))",
        tests=(
            f"{REAL_LOGS}::test_values_that_python_cannot_hold_have_no_bounds_but_are_staged",
            "tests/e2e/kafka/test_first_path.py::test_history_and_new_events_reach_the_view_each_once",
        ),
    ),
    # Ledger and settings
    Mutation(
        name="plans of rivals replace each other",
        file=LEDGER,
        old="self.folder.put_if_absent(name, content):",
        new="self.folder.put(name, content):",
        tests=(f"{PLANS}::test_one_of_several_competing_runs_plans_an_epoch",),
    ),
    Mutation(
        name="a plan that a rival superseded is superseded again unseen",
        file=LEDGER,
        old="revision = self._seen.get(key, -1) + 1",
        new="revision = len(self.entries(*key[:2], since=key[2], until=key[2]))",
        tests=(f"{PLANS}::test_a_plan_that_a_rival_superseded_since_is_not_superseded_again",),
    ),
    Mutation(
        name="a plan whose entry was not answered counts as lost",
        file=LEDGER,
        old="        return stored == content",
        new="        return fault is None and stored == content",
        tests=(f"{PLANS}::test_a_plan_that_was_written_without_an_answer_of_the_store_counts",),
    ),
    Mutation(
        name="a plan that a store's client wrote twice counts as another run's",
        file=LEDGER,
        old="        return stored == content",
        new="        return fault is not None and stored == content",
        tests=(f"{PLANS}::test_a_plan_that_was_written_without_an_answer_of_the_store_counts",),
    ),
    Mutation(
        name="the plan of the last commit is pruned",
        file=LEDGER,
        old="if epoch <= record.epoch - KEPT_PLANS",
        new="if epoch <= record.epoch",
        tests=(f"{PLANS}::test_plans_far_below_the_last_commit_are_pruned_and_those_of_others_stay",),
    ),
    Mutation(
        name="plans that may have been pruned are missed",
        file="backfill_assets/core/audit.py",
        old="unplanned = max(rebuilt, last - KEPT_PLANS)",
        new="unplanned = rebuilt",
        tests=("tests/core/test_audit.py::test_plans_that_may_have_been_pruned_are_not_missed_and_younger_ones_are",),
    ),
    Mutation(
        name="no plan is missed",
        file="backfill_assets/core/audit.py",
        old="unplanned = max(rebuilt, last - KEPT_PLANS)",
        new="unplanned = max(rebuilt, last)",
        tests=("tests/core/test_audit.py::test_a_plan_that_is_missing_in_the_ledger_is_named",),
    ),
    Mutation(
        name="the lease of a dead process holds until it expires",
        file="backfill_assets/adapters/state/state_store.py",
        old="return self.host != socket.gethostname() or self._process_runs()",
        new="return True",
        tests=("tests/e2e/dagster/test_sensors.py::test_only_a_run_whose_process_is_gone_is_reported", KILLED),
    ),
    Mutation(
        name="a commit is repeated on a version that was not read",
        file="backfill_assets/adapters/delta/output.py",
        old="max_commit_retries=0,",
        new="max_commit_retries=15,",
        tests=(f"{REAL_COMMITS}::test_a_commit_on_a_version_that_is_not_the_newest_any_more_fails_and_leaves_no_row",),
    ),
    Mutation(
        name="rows of staged files are not verified",
        file="backfill_assets/adapters/delta/output.py",
        old="if rows != staged.rows:",
        new="if rows < 0:",
        tests=(f"{REAL_COMMITS}::{VERIFIED}",),
    ),
    Mutation(
        name="sizes of staged files are not verified",
        file="backfill_assets/adapters/delta/output.py",
        old="if found.get(path) != size)",
        new="if found.get(path) is None)",
        tests=(f"{REAL_COMMITS}::{VERIFIED}",),
    ),
    Mutation(
        name="a superseded plan is taken for the one in force",
        file=LEDGER,
        old="return planned[-1] if planned",
        new="return planned[0] if planned",
        tests=(f"{PLANS}::test_the_plan_that_superseded_the_others_of_an_epoch_counts",),
    ),
    Mutation(
        name="a table that was recreated between plan and commit is not noticed",
        file="backfill_assets/core/strategies/table_views.py",
        old="        for each in self.upstreams:\n            self._offer(each.name, plan.before.tables[each.name])\n",
        new="        pass\n",
        tests=(
            "tests/core/strategies/test_snapshot.py::test_a_table_that_was_recreated_between_plan_and_commit_is_detected",
        ),
    ),
)
