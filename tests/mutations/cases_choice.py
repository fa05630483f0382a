"""Faults in the choice of a strategy, and in whether tables are read in full."""

from tests.mutations.mutation import Mutation

__all__ = ["CHOICE"]

TABLES = "backfill_assets/core/strategies/table_views.py"
IN_FULL = "backfill_assets/core/strategies/full_refresh.py"
CHOOSE = "backfill_assets/core/choice/choose.py"

CHOICE: tuple[Mutation, ...] = (
    # Tables that are read in full
    Mutation(
        name="tables of many epochs are read in one that cannot be resumed",
        file=IN_FULL,
        old="return _changed(waiting) > TIMES_HELD * held and rows <= MAX_EPOCHS * budget",
        new="return _changed(waiting) > TIMES_HELD * held",
        tests=(
            "tests/core/strategies/test_full_refresh.py::test_a_table_of_many_epochs_is_followed_so_that_it_can_be_interrupted",
        ),
    ),
    Mutation(
        name="tables that are read in full are read at the version before the changes",
        file=IN_FULL,
        old="last=tables[name].version,",
        new="last=table.version,",
        tests=(
            "tests/core/strategies/test_full_refresh.py::test_changes_that_outweigh_their_table_are_not_followed",
            "tests/e2e/tables/test_full_refresh.py::test_a_view_is_replaced_and_what_comes_after_is_followed",
        ),
    ),
    Mutation(
        name="a table that only grew is read in full",
        file=IN_FULL,
        old="return deletes and _changed(waiting) > FEWEST_BYTES",
        new="return _changed(waiting) > FEWEST_BYTES",
        tests=("tests/core/strategies/test_full_refresh.py",),
    ),
    # The choice of a strategy
    Mutation(
        name="estimates are trusted to the last second",
        file=CHOOSE,
        old="if _fits(limit) < SAFETY]",
        new="if _fits(limit) < 1.0]",
        tests=("tests/core/choice/test_choose.py::test_twice_the_need_is_the_border_of_what_retention_allows",),
    ),
    Mutation(
        name="the simplest strategy is taken whatever it costs",
        file=CHOOSE,
        old="return next((each.strategy for each in left if each.cost_seconds <= TIE * least), None)",
        new="return next((each.strategy for each in left if least >= 0), None)",
        tests=("tests/core/choice/test_choose_situations.py::test_the_choice_is_the_expected_one",),
    ),
    Mutation(
        name="the age of the pinned commit does not count",
        file="backfill_assets/core/choice/expiry.py",
        old="left = None if kept is None else kept - table.newest_commit_age_seconds",
        new="left = kept",
        tests=(
            "tests/core/choice/test_choose.py::test_the_age_of_the_newest_commit_counts_against_a_snapshot_that_is_read_for_long",
        ),
    ),
    Mutation(
        name="a history that does not fit into memory is read at once",
        file=CHOOSE,
        old="""if each.strategy == "snapshot_once" and each.memory_bytes > work.memory_bytes:""",
        new="""if each.strategy == "snapshot_once" and each.memory_bytes > SAFETY * SAFETY * work.memory_bytes:""",
        tests=("tests/core/choice/test_choose_situations.py::test_the_choice_is_the_expected_one",),
    ),
    Mutation(
        name="a life does not begin with the strategy that was chosen",
        file=TABLES,
        old="strategy = self.choose()",
        new="""strategy = "snapshot" if self.strategy == "auto" else self.choose()""",
        tests=("tests/e2e/tables/test_auto.py::test_a_life_over_a_table_begins_with_the_strategy_that_plan_has_named",),
    ),
    Mutation(
        name="a strategy that was declared meanwhile takes over the middle of a history",
        file=TABLES,
        old="            self._check_strategy(position)\n",
        new="",
        tests=(
            "tests/core/strategies/test_snapshot.py::"
            "test_history_is_read_on_by_the_strategy_that_began_it_and_a_live_view_by_any",
            "tests/e2e/kills/test_contract.py::"
            "test_a_view_abandoned_mid_way_is_reset_to_another_strategy_and_ends_exact",
        ),
    ),
    Mutation(
        name="the load of a table counts as its rate of changes",
        file="backfill_assets/adapters/delta/table_facts.py",
        old="changes = sorted(found, key=lambda each: each.rows)[:-1]",
        new="changes = sorted(found, key=lambda each: each.rows)",
        tests=("tests/adapters/delta/test_table_facts.py",),
    ),
)
