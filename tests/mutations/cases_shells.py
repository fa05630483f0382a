"""Faults in operations on a table: refresh and maintenance, and what Dagster and the command line show of them."""

from tests.mutations.mutation import Mutation

__all__ = ["SHELLS"]

PROOF_ROWS = "backfill_assets/app/proof_rows.py"
REFRESH = "backfill_assets/app/refresh.py"
LIFECYCLE = "backfill_assets/app/lifecycle.py"
READERS = "backfill_assets/app/dependents.py"
UPSTREAMS = "backfill_assets/app/wiring/table_upstreams.py"
CHOOSING = "backfill_assets/app/wiring/choosing.py"
ASSETS = "backfill_assets/defs/assets.py"
SENSORS = "backfill_assets/defs/sensors.py"
CLI = "backfill_assets/cli/commands.py"
DAGSTER = "tests/e2e/dagster/test_dagster.py"
SENSOR = "tests/e2e/dagster/test_sensors.py"
CHAINS = "tests/e2e/tables/test_view_chains.py"
NOTHING_SAFE = "tests/e2e/tables/test_auto.py::test_where_nothing_is_safe_nothing_is_written_unless_a_strategy_is_named"
COMMANDS = "tests/e2e/cli/test_cli.py"

SHELLS: tuple[Mutation, ...] = (
    # Lease and controls
    Mutation(
        name="the lease of another run is ignored",
        file=REFRESH,
        old="if lease is not None and lease.run_id != run_id and lease.alive(datetime.now(UTC)):",
        new="if lease is not None and lease.run_id == run_id and lease.alive(datetime.now(UTC)):",
        tests=(
            f"{DAGSTER}::test_a_run_that_finds_another_one_at_work_stops",
            "tests/e2e/kills/test_rivals.py::test_the_lease_of_a_living_run_makes_a_second_one_stop",
        ),
    ),
    Mutation(
        name="a run does not give its lease back",
        file=REFRESH,
        old="        if heartbeat.held:\n            workspace.state.release_lease(table.target, run_id)\n",
        new="",
        tests=("tests/e2e/kafka/test_first_path.py::test_history_and_new_events_reach_the_view_each_once",),
    ),
    Mutation(
        name="what a dead run left behind is not swept",
        file="backfill_assets/app/heartbeat.py",
        old="if self.tidy_due or ledger.left_behind or self.spooled - spooled:",
        new="self.tidy_due = False\n        if self.spooled - spooled:",
        tests=("tests/e2e/kills/test_kill.py::test_a_killed_run_is_resumed_with_at_most_one_epoch_redone",),
    ),
    Mutation(
        name="a table that is resumed by a job stays paused",
        file="backfill_assets/defs/jobs.py",
        old="set_controls(workspace, config.view, paused=False,",
        new="set_controls(workspace, config.view, paused=None,",
        tests=(f"{DAGSTER}::test_the_operator_pauses_throttles_resumes_resets_and_drops_by_jobs",),
    ),
    Mutation(
        name="what could not be proved at all passes",
        file=PROOF_ROWS,
        old="if lost and not (result.rows_expected and derived.reads)",
        new="if lost and result.rows_expected < 0",
        tests=(
            "tests/e2e/kafka/test_kafka_realities.py::test_a_topic_that_was_recreated_is_never_taken_for_the_old_one",
        ),
    ),
    # What views need of the tables that they read
    Mutation(
        name="a view begins over a view that is not live",
        file=UPSTREAMS,
        old="        if not record.live and isinstance(upstream, MaterializedView):\n            raise UpstreamNotLiveError(",
        new="        if record.epoch < 0:\n            raise UpstreamNotLiveError(",
        tests=(f"{CHAINS}::test_a_child_waits_for_its_parent_and_writes_nothing_before",),
    ),
    Mutation(
        name="keys are not checked when a life begins",
        file=UPSTREAMS,
        old="if declared or key == query.primary_key]",
        new="if key == query.primary_key]",
        tests=(
            "tests/e2e/tables/test_snapshot_refusals.py::"
            "test_a_key_that_is_not_unique_is_refused_at_the_snapshot_and_when_it_comes_later",
        ),
    ),
    Mutation(
        name="files are vacuumed that a view has still to read",
        file=LIFECYCLE,
        old="        check_unneeded(workspace, name, hours=vacuum_hours)\n",
        new="        pass\n",
        tests=(f"{CHAINS}::test_a_vacuum_that_would_take_what_a_view_has_still_to_read_is_refused",),
    ),
    Mutation(
        name="a log expires under a view that has still to read it",
        file=READERS,
        old="if (read.reads_pinned or version < look.version) and commit_ms / 1000 < oldest:",
        new="if read.reads_pinned and commit_ms / 1000 < oldest:",
        tests=(f"{CHAINS}::test_a_log_does_not_expire_under_a_view_that_has_still_to_read_it",),
    ),
    Mutation(
        name="a table does not wait for a view that is behind its bound",
        file=READERS,
        old='if behind else ""',
        new='if record.live and behind else ""',
        tests=(
            f"{CHAINS}::test_a_parent_that_yields_to_its_views_ends_early_while_one_is_behind_its_bound_and_at_work",
        ),
    ),
    Mutation(
        name="a table that others read is opened again by each of them",
        file="backfill_assets/app/workspace.py",
        old="        if declared.name not in self._read:\n",
        new="        if declared.name:\n",
        tests=("tests/app/test_wiring.py::test_tables_that_are_read_are_opened_once_a_run",),
    ),
    # Which strategy a life begins with
    Mutation(
        name="a strategy that is forecast to fail is begun without a request",
        file=CHOOSING,
        old="        choice = self.choice()\n",
        new="""        choice = self.choice()
        if choice.chosen is None and choice.least_bad is not None:
            return choice.least_bad
""",
        tests=(NOTHING_SAFE,),
    ),
    Mutation(
        name="a strategy that is named is not taken",
        file=CHOOSING,
        old="""requested=None if view.strategy == "auto" else view.strategy,""",
        new="requested=None,",
        tests=(NOTHING_SAFE,),
    ),
    # Dagster
    Mutation(
        name="the failure of a table is swallowed",
        file=ASSETS,
        old="""            raise dg.Failure("\\n".join(failed), allow_retries=False)""",
        new="""            context.log.error("\\n".join(failed))""",
        tests=(
            f"{DAGSTER}::test_a_table_that_fails_says_why_and_does_not_stop_the_others",
            f"{COMMANDS}::test_a_failed_run_is_a_message_with_advice_and_exit_code_1",
        ),
    ),
    Mutation(
        name="a view is materialized before it is live",
        file=ASSETS,
        old="return done.report.record.live and (done.first_live or bool(done.report.epochs))",
        new="return done.first_live or bool(done.report.epochs)",
        tests=(f"{DAGSTER}::test_until_a_view_is_live_its_stops_are_observations_and_nothing_below_it_starts",),
    ),
    Mutation(
        name="a dry run is a run",
        file=ASSETS,
        old="    if limits.dry_run:\n",
        new="    if limits.dry_run and limits.max_rows == 0:\n",
        tests=(f"{DAGSTER}::test_every_planned_stop_is_a_success_with_its_reason",),
    ),
    Mutation(
        name="a run that failed is never requested again",
        file=SENSORS,
        old="""run_key=f"{transition}:{look.version}:{tries}",""",
        new="""run_key=f"{transition}:{look.version}",""",
        tests=(f"{SENSOR}::test_runs_that_fail_are_requested_again_but_not_at_once",),
    ),
    Mutation(
        name="a sensor asks for a run with every tick",
        file=SENSORS,
        old="""run_key=f"{transition}:{look.version}:{tries}",""",
        new="""run_key=f"{transition}:{datetime.now(UTC).timestamp()}:{tries}",""",
        tests=(f"{SENSOR}::test_a_source_with_new_records_is_refreshed_with_its_live_views",),
    ),
    Mutation(
        name="a sensor asks for what is throttled to nothing",
        file=SENSORS,
        old="if controls.paused or controls.rows_per_second == 0:",
        new="if controls.paused:",
        tests=(f"{SENSOR}::test_what_is_paused_or_throttled_to_nothing_is_left_alone",),
    ),
    Mutation(
        name="a view that is still backfilling goes along with its source",
        file=SENSORS,
        old="return not isinstance(seen, str) and seen[1].live",
        new="return not isinstance(seen, str)",
        tests=(f"{SENSOR}::test_a_view_that_is_still_backfilling_gets_a_run_of_its_own",),
    ),
    Mutation(
        name="a sensor asks for a table that a run is at work on",
        file=SENSORS,
        old="if lease is not None and lease.alive(datetime.now(UTC)):",
        new="if lease is not None and lease.dead(datetime.now(UTC)):",
        tests=(f"{SENSOR}::test_a_table_that_a_run_is_working_on_is_left_alone",),
    ),
    Mutation(
        name="a process is another one once the clock was set",
        file="backfill_assets/adapters/runtime/processes.py",
        old="    if not psutil.LINUX:\n",
        new="    if pid:\n",
        tests=("tests/adapters/runtime/test_processes.py::test_a_process_is_the_same_after_the_clock_was_set",),
    ),
    Mutation(
        name="a run that lives is reported as dead",
        file="backfill_assets/defs/dead_runs.py",
        old="if not lease.dead(now) or",
        new="if",
        tests=(f"{SENSOR}::test_only_a_run_whose_process_is_gone_is_reported",),
    ),
    Mutation(
        name="the table name that a user gives an asset is not used",
        file=ASSETS,
        old='metadata={"dagster/table_name": table_name(declared), **labels.metadata},',
        new='metadata={**labels.metadata, "dagster/table_name": table_name(declared)},',
        tests=("tests/defs/test_definitions.py",),
    ),
    Mutation(
        name="a materialization does not tell by which rule its rows came",
        file="backfill_assets/defs/metadata.py",
        old="        **_rule(report.record),\n",
        new="",
        tests=("tests/e2e/dagster/test_view_sensors.py",),
    ),
    # The command line
    Mutation(
        name="a refresh that stopped early ends with 0",
        file=CLI,
        old="""if any(found.get("stopped_reason") != "caught_up" for""",
        new="""if any(found.get("stopped_reason") == "fenced" for""",
        tests=(f"{COMMANDS}::test_pause_resume_and_throttle_hold_until_they_are_changed",),
    ),
    Mutation(
        name="to verify ends with 0 though a check failed",
        file=CLI,
        old="""    result = LocalProject(module).verify(name)
    _say(asdict(result), as_json=as_json, text=lambda: run_text(result))
    if not result.success or not all(check.passed or check.unproved for check in result.checks):""",
        new="""    result = LocalProject(module).verify(name)
    _say(asdict(result), as_json=as_json, text=lambda: run_text(result))
    if not result.success:""",
        tests=(f"{COMMANDS}::test_a_failed_run_is_a_message_with_advice_and_exit_code_1",),
    ),
    Mutation(
        name="wrong usage ends as a failure does",
        file=CLI,
        old="        _fail(error, Exit.USAGE)",
        new="        _fail(error, Exit.FAILED)",
        tests=(f"{COMMANDS}::test_wrong_usage_is_a_message_with_advice_and_exit_code_2",),
    ),
)
