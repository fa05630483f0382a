"""Faults in a run from epoch to epoch, in how long it waits for others, and in how strings of a query are read."""

from tests.mutations.mutation import Mutation

__all__ = ["RUNS"]

RUN = "backfill_assets/core/epoch/run.py"
CONTROL = "backfill_assets/core/epoch/limits.py"
TABLES = "backfill_assets/core/strategies/table_views.py"
ARRANGEMENT = "backfill_assets/core/strategies/arrangement.py"
BY_KEY = "tests/core/strategies/test_arrangement.py"
LOOP = "tests/core/epoch/test_run_loop.py"
BUCKET = "tests/core/epoch/test_limits.py"
DECIDER = "tests/core/strategies/test_snapshot.py"
UNION_KEYS = (
    "tests/declare/test_declarations.py::"
    "test_parts_of_a_union_are_kept_by_a_key_that_all_have_and_otherwise_read_as_whole_tables"
)

RUNS: tuple[Mutation, ...] = (
    Mutation(
        name="a run builds upon an external write that came between its epochs",
        file=RUN,
        old="self.report.record = check_look(self.parts, look, redefines=True).record or self.report.record",
        new="self.report.record = look.record or self.report.record",
        tests=(f"{LOOP}::test_an_external_write_between_two_epochs_of_a_run_is_named_and_stops_it",),
    ),
    Mutation(
        name="a run ignores how far its view is behind",
        file=RUN,
        old="self.limits.chunk_rows * catch_up_factor(self.report.record)",
        new="self.limits.chunk_rows",
        tests=(f"{LOOP}::test_a_run_gives_a_view_behind_its_bound_more_rows_though_never_more_than_it_may_read",),
    ),
    Mutation(
        name="a life that a rival has just begun is ended",
        file=RUN,
        old="    if look.life == old:\n",
        new="    if look.life == old or look.exists:\n",
        tests=(f"{LOOP}::test_a_life_that_another_run_began_meanwhile_is_joined_and_not_ended",),
    ),
    Mutation(
        name="a dry run shows a plan that a run passes over",
        file=RUN,
        old="if plan is not None and may_repeat(parts, record, plan) and parts.decider.resumable(parts.planned(plan)):",
        new="if plan is not None and parts.decider.resumable(parts.planned(plan)):",
        tests=(f"{LOOP}::test_a_dry_run_passes_over_a_plan_that_began_elsewhere_as_a_run_does",),
    ),
    Mutation(
        name="a throttle may be no number",
        file="backfill_assets/core/epoch/limits.py",
        old="if rate is None or (math.isfinite(rate) and rate >= 0):",
        new="if rate is None or not rate < 0:",
        tests=(f"{BUCKET}::test_any_other_throttle_is_refused_and_quoted",),
    ),
    Mutation(
        name="a clock that goes back takes rows from a throttle",
        file=CONTROL,
        old="max(0.0, now - self._at) * self.rate",
        new="(now - self._at) * self.rate",
        tests=(f"{BUCKET}::test_a_clock_that_goes_back_removes_nothing_from_a_bucket",),
    ),
    Mutation(
        name="time that passed counts at a rate that was set later",
        file=CONTROL,
        old="            self._fill()\n            self.rate = rate",
        new="            self.rate = rate",
        tests=(f"{BUCKET}::test_what_was_saved_up_before_a_rate_was_set_is_counted_at_the_rate_of_then",),
    ),
    Mutation(
        name="a few versions of mere maintenance are never passed over",
        file=TABLES,
        old="or commits[-1].commit_ms - position.tables[name].commit_ms >= EMPTY_MS",
        new="",
        tests=(
            f"{DECIDER}::test_maintenance_that_is_old_is_passed_over_however_little_it_is_before_the_log_forgets_it",
        ),
    ),
    Mutation(
        name="a table that does not change keeps the bound of all from shrinking",
        file="backfill_assets/core/strategies/table_lag.py",
        old="elapsed = max(after.tables[name].commit_ms",
        new="elapsed = min(after.tables[name].commit_ms",
        tests=(f"{DECIDER}::test_a_bound_shrinks_by_the_table_that_was_followed_the_furthest",),
    ),
    Mutation(
        name="what was read by key counts as left",
        file=ARRANGEMENT,
        old="sum(table.expected) - sum(bucket.rows for bucket in table.buckets.values())",
        new="sum(table.expected)",
        tests=(f"{BY_KEY}::test_what_is_left_of_a_history_by_key_are_the_rows_of_ranges_that_were_not_read",),
    ),
    Mutation(
        name="changes with and without a feed are read together while history is read by key",
        file=ARRANGEMENT,
        old="for commits in split_reads(waiting):",
        new="for commits in [list(waiting)]:",
        tests=(f"{BY_KEY}::test_changes_with_and_without_a_feed_that_wait_together_are_read_apart",),
    ),
    Mutation(
        name="a text that a time is compared with may mean the clock's",
        file="backfill_assets/query/expressions.py",
        old="return found is not None and not holds_times(found[0].type)",
        new="return found is not None",
        tests=("tests/query/test_rowwise.py::test_what_is_not_row_wise_is_refused_with_its_code_and_a_hint",),
    ),
    Mutation(
        name="a star means the hidden columns of a view too",
        file="backfill_assets/query/expressions.py",
        old="""if not column.name.startswith("__"))""",
        new="if column.name)",
        tests=("tests/query/test_rowwise.py::test_a_star_over_a_view_leaves_its_hidden_columns_out",),
    ),
    Mutation(
        name="views over whole tables have the same key",
        file="backfill_assets/declare/model.py",
        old="found = self.own_key or (None if self.whole else key_of_text(self.text, keys))",
        new="found = self.own_key or (() if self.whole else key_of_text(self.text, keys))",
        tests=(UNION_KEYS,),
    ),
    Mutation(
        name="a view has the key of what it reads, whatever its query gives",
        file="backfill_assets/declare/model.py",
        old="else key_of_text(self.text, keys))",
        new="else keys[0][1])",
        tests=(UNION_KEYS,),
    ),
    Mutation(
        name="a view's own key does not keep the parts of a union",
        file="backfill_assets/declare/model.py",
        old="(len(upstreams) > 1 and not own_key and",
        new="(len(upstreams) > 1 and",
        tests=(UNION_KEYS,),
    ),
    Mutation(
        name="parts of a union may have different keys",
        file="backfill_assets/query/rowwise.py",
        old="found = {keys[scope.upstream] for scope in scopes}",
        new="found = {keys[scope.upstream] for scope in scopes[:1]}",
        tests=("tests/query/test_rowwise.py::test_parts_whose_tables_have_different_keys_are_refused",),
    ),
    Mutation(
        name="nested parts are distinguished by one column",
        file="backfill_assets/query/rowwise.py",
        old="return next(name for name in names if name not in hidden)",
        new="return next(name for name in names if name)",
        tests=("tests/query/test_rowwise.py::test_nested_parts_are_distinguished_by_a_column_of_their_own",),
    ),
    Mutation(
        name="a number in GROUP BY means the next column",
        file="backfill_assets/query/grouping.py",
        old="return items[position - 1]",
        new="return items[min(position, len(items) - 1)]",
        tests=("tests/query/test_aggregate_query.py::test_groups_are_found_by_expression_name_and_number",),
    ),
)
