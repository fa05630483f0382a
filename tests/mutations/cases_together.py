"""Faults of how parts are put together, of lives, and of what was captured."""

from tests.mutations.mutation import Mutation

__all__ = ["TOGETHER"]

TOGETHER: tuple[Mutation, ...] = (
    Mutation(
        name="partitions are forgotten where files are read by another log",
        file="backfill_assets/adapters/delta/log_replay.py",
        old='"partitionValues": dict(self.action.get("partitionValues") or {}),',
        new='"partitionValues": {},',
        tests=(
            "tests/adapters/delta/test_log_replay.py::test_addresses_for_a_log_elsewhere_are_absolute_and_encoded_as_uris",
        ),
    ),
    Mutation(
        name="groups cannot be computed again while captured rows go",
        file="backfill_assets/adapters/compute/table_compute.py",
        old="follows = any(isinstance(read, ChangesRead | SpoolRead | SkipRead) for",
        new="follows = any(isinstance(read, ChangesRead | SkipRead) for",
        tests=(
            "tests/e2e/tables/test_rearranged.py::test_rows_and_groups_are_exact_after_each_part_of_what_was_captured",
        ),
    ),
    Mutation(
        name="what was drained counts as not read",
        file="backfill_assets/adapters/compute/recorded_rows.py",
        old="kept = table.spool is not None and table.version == table.pinned and bool(table.buckets)",
        new="kept = table.spool is not None and bool(table.buckets)",
        tests=(
            "tests/e2e/tables/test_rearranged.py::test_rows_and_groups_are_exact_after_each_part_of_what_was_captured",
        ),
    ),
    Mutation(
        name="Spark is not told of the stores of tables",
        file="backfill_assets/app/wiring/view_inputs.py",
        old="return ReachingRunner(self.shared, self._elsewhere)",
        new="return self.shared",
        tests=("tests/app/test_wiring.py::test_spark_reaches_the_stores_of_tables_before_it_reads_them",),
    ),
    Mutation(
        name="a ledger that was lost is not rebuilt",
        file="backfill_assets/app/lifecycle.py",
        old="            workspace.state.ledger().rebuild(look.record)\n",
        new="            pass\n",
        tests=(
            "tests/e2e/kills/test_survival.py::test_a_ledger_that_was_lost_is_rebuilt_and_a_drop_deletes_the_plans_of_all_lives",
        ),
    ),
    Mutation(
        name="a drop leaves the plans of lives before",
        file="backfill_assets/app/lifecycle.py",
        old="past = workspace.state.ledger().incarnations(table.target)",
        new="past = {look.record.incarnation} if look.record is not None else set()",
        tests=(
            "tests/e2e/kills/test_survival.py::test_a_ledger_that_was_lost_is_rebuilt_and_a_drop_deletes_the_plans_of_all_lives",
        ),
    ),
    Mutation(
        name="a spool may be of any size",
        file="backfill_assets/app/wiring/deciding.py",
        old="limit=spool_bytes()",
        new="limit=2**40",
        tests=("tests/app/test_wiring.py",),
    ),
    Mutation(
        name="maintaining compacts nothing",
        file="backfill_assets/app/lifecycle.py",
        old="    table.output.compact(2)\n",
        new="",
        tests=("tests/e2e/tables/test_view_chains.py::test_runs_shorten_the_log_of_a_table_and_forget_its_old_plans",),
    ),
    Mutation(
        name="rows of a range that was read later are new for certain",
        file="backfill_assets/core/strategies/table_plans.py",
        old="        or (isinstance(read, KeyRead) and read.version != pinned[read.source])\n",
        new="",
        tests=("tests/core/strategies/test_table_plans.py",),
    ),
    Mutation(
        name="histories of sources come in any order",
        file="backfill_assets/app/wiring/deciding.py",
        old="        upstreams=upstreams,\n        order=view.backfill_order,",
        new="        upstreams=upstreams,\n        order={},",
        tests=("tests/app/test_wiring.py::test_histories_are_read_in_the_order_that_is_declared",),
    ),
    Mutation(
        name="histories of tables come in any order",
        file="backfill_assets/app/wiring/deciding.py",
        old="        order=view.backfill_order,\n        strategy=view.strategy,",
        new="        order={},\n        strategy=view.strategy,",
        tests=("tests/app/test_wiring.py::test_histories_are_read_in_the_order_that_is_declared",),
    ),
)
