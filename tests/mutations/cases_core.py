"""Faults in the core: the protocol, judging a commit, a run with its limits, positions, bounds, forecasts."""

from tests.mutations.mutation import Mutation

__all__ = ["CORE"]

COMMIT = "backfill_assets/core/epoch/commit.py"
PROTOCOL = "backfill_assets/core/epoch/protocol.py"
EPOCH = "backfill_assets/core/epoch/records.py"
RUN = "backfill_assets/core/epoch/run.py"
CONTROL = "backfill_assets/core/epoch/limits.py"
POSITIONS = "backfill_assets/core/progress/positions.py"
LAG = "backfill_assets/core/progress/lag.py"
OUTCOMES = "tests/core/epoch/test_protocol_cases.py::test_every_commit_ends_as_its_case_says"
NEXT_RUN = "tests/core/epoch/test_protocol_cases.py::test_the_next_run_makes_it_right_or_refuses_what_is_not_ours"
REAL_OUTCOMES = "tests/e2e/kills/test_commit_outcomes.py::test_every_commit_ends_as_its_case_says"
LIVES = "tests/core/epoch/test_lives.py"
LOOP = "tests/core/epoch/test_run_loop.py"
BUCKET = "tests/core/epoch/test_limits.py"
STALLED = "tests/e2e/kills/test_rivals.py::test_a_stalled_run_never_commits_over_what_others_did"

CORE: tuple[Mutation, ...] = (
    # Look
    Mutation(
        name="a changed declaration is not seen",
        file=PROTOCOL,
        old="changed_parts(record.fingerprint, parts.decider.fingerprint)",
        new="changed_parts(record.fingerprint, record.fingerprint)",
        tests=(
            f"{LIVES}::test_a_changed_declaration_is_refused_and_names_the_parts_that_changed",
            "tests/e2e/kills/test_survival.py::test_a_changed_declaration_is_refused_by_name",
        ),
    ),
    Mutation(
        name="an epoch is built upon an external write",
        file=PROTOCOL,
        old="if look.external is not None:",
        new="if look.external is not None and look.external < look.at:",
        tests=(
            f"{LIVES}::test_restating_never_hides_an_external_write_nor_revives_a_dropped_table",
            NEXT_RUN,
        ),
    ),
    Mutation(
        name="a run continues in the life that a reset began",
        file=RUN,
        old="if look.life != (self.report.record.incarnation, True):",
        new="if not look.exists:",
        tests=(f"{LOOP}::test_a_run_whose_table_is_reset_or_dropped_is_fenced_and_writes_nothing_into_the_new_life",),
    ),
    # Plan
    Mutation(
        name="an epoch continues although the ledger refused its plan",
        file=PROTOCOL,
        old="""    if not parts.ledger.append(plan):
        raise fenced(last.target, f"epoch {plan.epoch} was planned by another run at the same moment")
    return plan""",
        new="""    parts.ledger.append(plan)
    return plan""",
        tests=(f"{LIVES}::test_the_slower_of_two_runs_that_plan_at_the_same_time_is_fenced",),
    ),
    Mutation(
        name="an epoch that a dead run planned is planned again",
        file=PROTOCOL,
        old="if plan is not None and may_repeat(parts, last, plan) and _feasible(parts, plan):",
        new="if plan is not None and not may_repeat(parts, last, plan) and _feasible(parts, plan):",
        tests=(
            f"{LOOP}::test_a_crash_passes_through_the_run_and_redoes_at_most_one_epoch",
            "tests/e2e/kills/test_contract.py::"
            "test_an_epoch_that_is_killed_at_step_after_step_is_committed_once[rearranged]",
        ),
    ),
    Mutation(
        name="a plan is redone without asking whether its inputs are still there",
        file=PROTOCOL,
        old="may_repeat(parts, last, plan) and _feasible(parts, plan):",
        new="may_repeat(parts, last, plan):",
        tests=(
            "tests/core/strategies/test_source_reads.py::"
            "test_a_planned_epoch_whose_history_kafka_lost_since_is_read_from_bronze_instead",
        ),
    ),
    Mutation(
        name="a ledger that is an epoch behind is not seen",
        file=PROTOCOL,
        old="newest = parts.ledger.newest(target, incarnation, since=last.epoch)",
        new="newest = parts.ledger.newest(target, incarnation, since=last.epoch - 1)",
        tests=(f"{LIVES}::test_a_ledger_from_an_older_backup_is_an_error",),
    ),
    Mutation(
        name="a table that was restored by two epochs is continued",
        file=PROTOCOL,
        old="if newest is not None and newest > epoch:",
        new="if newest is not None and newest > epoch + 1:",
        tests=(f"{LIVES}::test_a_table_restored_by_more_than_one_epoch_is_an_error",),
    ),
    Mutation(
        name="rows that were refused are planned again without what corrects them",
        file=PROTOCOL,
        old="corrected = _corrected(parts, look.record, plan, EVERYTHING)\n",
        new="corrected = _corrected(parts, look.record, plan, 1)\n",
        tests=(
            "tests/core/epoch/test_corrected_plans.py::"
            "test_a_plan_whose_rows_were_refused_is_superseded_once_something_came_that_may_correct_them",
            "tests/e2e/tables/test_snapshot_refusals.py::"
            "test_a_key_that_is_not_unique_is_refused_at_the_snapshot_and_when_it_comes_later",
        ),
    ),
    Mutation(
        name="ranges that were refused are not read again, as no row is counted that came to them",
        file=PROTOCOL,
        old="step is None or step.reads == refused.reads:",
        new="step is None or parts.decider.offsets(step.after) == parts.decider.offsets(parts.planned(refused).after):",
        tests=(
            "tests/core/strategies/test_arrangement_run.py::"
            "test_ranges_that_were_refused_are_read_again_once_there_is_a_newer_version_of_them",
        ),
    ),
    # Stage
    Mutation(
        name="an upstream that was recreated while it was read is not noticed",
        file=PROTOCOL,
        old="""        parts.decider.confirm(parts.planned(plan))
        parts.on_step("staged")""",
        new="""        parts.on_step("staged")""",
        tests=("tests/core/strategies/test_ingest.py::test_a_topic_recreated_between_plan_and_read_is_refused",),
    ),
    Mutation(
        name="a run whose files a rival swept fails instead of being fenced",
        file=PROTOCOL,
        old="found.record.epoch >= plan.epoch:",
        new="found.record.epoch > plan.epoch:",
        tests=(
            f"{LOOP}::test_a_run_whose_inputs_a_rival_swept_after_committing_the_epoch_is_fenced_and_has_not_failed",
        ),
    ),
    # Verify
    Mutation(
        name="staged files are not verified",
        file=COMMIT,
        old="        _verify(parts, record, staged, look)\n",
        new="",
        tests=(OUTCOMES, f"{REAL_OUTCOMES}[VACUUM_without_retention]"),
    ),
    Mutation(
        name="staged files are verified once and not before every try",
        file=COMMIT,
        old="""    for _ in range(COMMIT_TRIES):
        _verify(parts, record, staged, look)
""",
        new="""    _verify(parts, record, staged, look)
    for _ in range(COMMIT_TRIES):
""",
        tests=(OUTCOMES, f"{REAL_OUTCOMES}[VACUUM_without_retention]"),
    ),
    # Commit
    Mutation(
        name="an error of a commit is swallowed",
        file=COMMIT,
        old="            errors.append(error)\n",
        new="            errors.append(error)\n            return\n",
        tests=(OUTCOMES, f"{REAL_OUTCOMES}[OPTIMIZE_by_Spark]"),
    ),
    Mutation(
        name="an error of a commit is believed",
        file=COMMIT,
        old="            errors.append(error)\n",
        new="            raise\n",
        tests=(
            OUTCOMES,
            "tests/e2e/kills/test_commit_outcomes.py::test_a_commit_that_succeeded_but_was_reported_as_failed_counts_once",
        ),
    ),
    Mutation(
        name="a commit that maintenance came before is not tried again",
        file=COMMIT,
        old="COMMIT_TRIES = 8",
        new="COMMIT_TRIES = 1",
        tests=(OUTCOMES, f"{REAL_OUTCOMES}[OPTIMIZE_by_Spark]"),
    ),
    Mutation(
        name="a life that went on is given up all the same",
        file=COMMIT,
        old="if gives_up and _epoch(found) != _epoch(look):",
        new="if gives_up and found.life != look.life:",
        tests=(
            "tests/core/strategies/test_snapshot_once.py::test_a_creation_that_a_slow_run_commits_while_it_is_given_up_continues",
        ),
    ),
    Mutation(
        name="rows that replace others are counted twice",
        file=PROTOCOL,
        old="staged.rows_written - staged.rows_updated - deleted,",
        new="staged.rows_written - deleted,",
        tests=("tests/e2e/tables/test_snapshot.py::test_history_is_read_in_chunks_and_changes_of_every_kind_follow",),
    ),
    # Judging a commit
    Mutation(
        name="a commit counts as landed where another attempt did",
        file=EPOCH,
        old="""    return (record.kind, record.incarnation, record.epoch, record.attempt) == (
        mine.kind,
        mine.incarnation,
        mine.epoch,
        mine.attempt,
    )""",
        new="    return (record.kind, record.incarnation, record.epoch) == (mine.kind, mine.incarnation, mine.epoch)",
        tests=(OUTCOMES, f"{REAL_OUTCOMES}[a_rival_commits_the_same_plan]", f"{STALLED}[staged-rival_commits]"),
    ),
    Mutation(
        name="an external write between look and commit is written over",
        file=EPOCH,
        old="return Verdict.RETRY if found.external is None else Verdict.EXTERNAL",
        new="return Verdict.RETRY",
        tests=(OUTCOMES,),
    ),
    Mutation(
        name="an epoch of an old life is tried again on the new one",
        file=EPOCH,
        old="if record is None or found.life != look.life or record.epoch > mine.epoch:",
        new="if record is None or record.epoch > mine.epoch:",
        tests=(OUTCOMES, STALLED),
    ),
    Mutation(
        name="of two resets at once both are carried out",
        file=EPOCH,
        old="return Verdict.RETRY if found.life == look.life else Verdict.FENCED",
        new="return Verdict.RETRY",
        tests=(f"{LIVES}::test_one_of_two_concurrent_resets_is_fenced",),
    ),
    Mutation(
        name="rows that a commit added beside an external write are taken for sound",
        file=COMMIT,
        old="if record.kind is CommitKind.EPOCH and found.external is not None:",
        new="if record.kind is CommitKind.RESTATE and found.external is not None:",
        tests=(
            "tests/core/epoch/test_epoch_commits.py::"
            "test_an_external_write_right_after_the_commit_stops_the_run_that_made_it",
        ),
    ),
    # Report: a run, its controls and limits
    Mutation(
        name="a run does not tell of its epochs",
        file=RUN,
        old="                self.between.after_epoch(record)\n",
        new="",
        tests=(
            f"{LOOP}::test_a_pause_is_seen_between_epochs_and_resuming_goes_on_where_it_stopped",
            "tests/e2e/dagster/test_dagster.py::test_a_long_run_reports_its_progress",
        ),
    ),
    Mutation(
        name="a pause is ignored",
        file=RUN,
        old="if controls.paused or wait == math.inf:",
        new="if wait == math.inf:",
        tests=(
            f"{LOOP}::test_a_pause_is_seen_between_epochs_and_resuming_goes_on_where_it_stopped",
            "tests/e2e/kills/test_contract.py::"
            "test_what_an_operator_set_holds_between_epochs_and_in_other_processes[source]",
        ),
    ),
    Mutation(
        name="the stored throttle is ignored",
        file=RUN,
        old="slowest(self.limits.rows_per_second, controls.rows_per_second)",
        new="self.limits.rows_per_second",
        tests=(
            f"{LOOP}::test_a_throttle_lets_its_rows_through_each_second_and_no_more",
            "tests/e2e/kills/test_survival.py::test_what_an_operator_set_survives_restarts_and_holds_between_epochs",
        ),
    ),
    Mutation(
        name="rows that were taken beyond the throttle are not waited off",
        file=CONTROL,
        old="            self._tokens -= rows",
        new="            self._tokens = max(0.0, self._tokens - rows)",
        tests=(f"{BUCKET}::test_a_token_bucket_holds_one_second_and_pays_debts_off",),
    ),
    Mutation(
        name="the last epoch of a run goes beyond max_rows",
        file=RUN,
        old="chunk = min(chunk, self.limits.max_rows - self.report.offsets)",
        new="chunk = min(chunk, self.limits.max_rows)",
        tests=(f"{LOOP}::test_max_rows_is_never_exceeded_and_reached_if_there_are_as_many",),
    ),
    Mutation(
        name="a creation that may not be resumed is resumed",
        file=RUN,
        old="return plan is not None and not parts.decider.resumable(parts.planned(plan))",
        new="return plan is not None and plan.epoch > 1 and not parts.decider.resumable(parts.planned(plan))",
        tests=(
            "tests/core/strategies/test_snapshot_once.py::"
            "test_a_creation_that_died_is_given_up_for_a_new_life_unless_it_had_planned_nothing_or_was_committed",
            "tests/e2e/tables/test_snapshot_once.py::"
            "test_a_creation_that_is_killed_at_any_step_starts_over_over_what_is_newest_and_leaves_nothing",
        ),
    ),
    Mutation(
        name="a view far behind its bound takes batches as small as ever",
        file=RUN,
        old="MAX_CATCH_UP_FACTOR = 8",
        new="MAX_CATCH_UP_FACTOR = 1",
        tests=(f"{LOOP}::test_a_view_behind_its_bound_takes_larger_batches_the_further_it_is_behind",),
    ),
    # Positions
    Mutation(
        name="a partition finishes before bronze is level with its history",
        file=POSITIONS,
        old="if phase is Phase.CATCHING_UP and self.live >= self.next:",
        new="if phase is Phase.CATCHING_UP and self.live >= self.next - 1:",
        tests=("tests/core/progress/test_positions.py",),
    ),
    Mutation(
        name="a partition that joins begins where bronze is",
        file=POSITIONS,
        old="return cls(phase=Phase.FINISHED, start=start, next=start, live=live, target=start)",
        new="return cls(phase=Phase.FINISHED, start=start, next=live, live=live, target=start)",
        tests=(
            "tests/core/strategies/test_source.py::test_a_new_partition_joins_finished_and_comes_from_bronze_alone",
            "tests/core/test_simulation.py",
        ),
    ),
    Mutation(
        name="history that is ahead of bronze does not stop",
        file=POSITIONS,
        old="""return moved.model_copy(update={"phase": Phase.CATCHING_UP}).settle()""",
        new="return moved.settle()",
        tests=(
            "tests/core/progress/test_positions.py",
            "tests/core/strategies/test_source.py::test_history_ahead_of_a_moving_bronze_stops_there",
        ),
    ),
    Mutation(
        name="what small shares leave of a budget is given to nobody",
        file=POSITIONS,
        old="share = min(want, left // (len(waiting) - index))",
        new="share = min(want, budget // len(waiting))",
        tests=("tests/core/strategies/test_shares.py",),
    ),
    # The lag bound and the forecast of retention
    Mutation(
        name="a lag bound grows again",
        file=LAG,
        old="        if pending_lag < left:\n",
        new="        if pending_lag != left:\n",
        tests=("tests/core/progress/test_lag.py::test_the_bound_never_grows",),
    ),
    Mutation(
        name="a lag bound gives way by the whole time consumed",
        file=LAG,
        old="left = max(0, self.max_lag - half)",
        new="left = max(0, self.max_lag - elapsed)",
        tests=("tests/core/progress/test_lag.py",),
    ),
    Mutation(
        name="a lag that shrinks too slowly counts as converging",
        file=LAG,
        old="converging=lags[-1] <= allowed,",
        new="converging=lags[-1] <= max(allowed, lags[0]),",
        tests=("tests/core/progress/test_lag.py",),
    ),
    Mutation(
        name="a view's bound starts again with every epoch",
        file="backfill_assets/core/strategies/table_lag.py",
        old="bound = before.bound.start(at_first) if before.bound.max_lag is None else before.bound",
        new="bound = before.bound.start(at_first)",
        tests=(
            "tests/core/strategies/test_snapshot.py::test_a_bound_shrinks_by_the_table_that_was_followed_the_furthest",
        ),
    ),
    Mutation(
        name="a forecast forgets that the change log expires",
        file="backfill_assets/core/progress/retention.py",
        old="safe = min(files.safe, log.safe)",
        new="safe = files.safe",
        tests=("tests/core/progress/test_retention.py::test_the_change_log_may_be_what_is_lost_first",),
    ),
)
