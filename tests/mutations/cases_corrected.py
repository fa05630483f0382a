"""Faults around rows that Spark refused and that are corrected in their table."""

from tests.mutations.mutation import Mutation

__all__ = ["CORRECTED"]

PROTOCOL = "backfill_assets/core/epoch/protocol.py"
NETTED = "backfill_assets/adapters/compute/netted_changes.py"
LOOP = "tests/core/epoch/test_corrected_plans.py"
RUN = "tests/core/strategies/test_arrangement_run.py"
ROWS = "tests/e2e/tables/test_corrected_rows.py"
GOES_ON = f"{ROWS}::test_a_row_that_came_and_went_stops_no_view"

COMPUTE = "backfill_assets/adapters/compute/table_compute.py"
WAYS = "backfill_assets/adapters/compute/ways.py"
ERRORS = "backfill_assets/adapters/compute/spark_errors.py"
SAID = "tests/adapters/compute/test_poison_errors.py"
MET = f"{ROWS}::test_rows_that_were_never_there_together_stop_no_view"

CORRECTED: tuple[Mutation, ...] = (
    Mutation(
        name="rows that were never there together stop a view",
        file=WAYS,
        old="    if plan.replaces and in_full:",
        new="    if not plan.reads:",
        tests=(MET,),
    ),
    Mutation(
        name="what may only follow changes is computed in full where values are refused",
        file=WAYS,
        old="    if plan.replaces and in_full:",
        new="    if plan.replaces:",
        tests=(f"{ROWS}::test_what_may_only_follow_changes_is_not_computed_in_full",),
    ),
    Mutation(
        name="why an epoch is in full is forgotten where values were refused",
        file=COMPUTE,
        old="why_full=done.why_full or chosen.why_full",
        new="why_full=chosen.why_full",
        tests=(MET,),
    ),
    Mutation(
        name="errors of functions without a SQLSTATE are taken for failures",
        file=ERRORS,
        old="        return bool(_COMPUTING.search(text)) and _OF_EXPRESSION.search(text) is not None",
        new="        return False",
        tests=(SAID,),
    ),
    Mutation(
        name="any error of Java is taken for one about values",
        file=ERRORS,
        old="        return bool(_COMPUTING.search(text)) and _OF_EXPRESSION.search(text) is not None",
        new="        return bool(_COMPUTING.search(text))",
        tests=(SAID,),
    ),
    Mutation(
        name="errors about values with the state of others are taken for failures",
        file=ERRORS,
        old="    if _NAMED_OTHERWISE.search(text):",
        new="    if not text:",
        tests=(SAID,),
    ),
    Mutation(
        name="a plan whose files are gone is repeated for ever",
        file=PROTOCOL,
        old="    except (PoisonRowError, VersionsLostError):",
        new="    except PoisonRowError:",
        tests=(f"{RUN}::test_changes_that_were_refused_are_read_with_all_later_ones_whatever_the_budget",),
    ),
    Mutation(
        name="variants are told by their text alone",
        file=NETTED,
        old="concat_ws(' ', schema_of_variant({quoted(name)}), CAST(",
        new="concat_ws(' ', CAST(",
        tests=(f"{ROWS}::test_variants_are_netted_by_what_they_hold",),
    ),
    Mutation(
        name="a Spark that died is asked for sessions",
        file="backfill_assets/adapters/spark/session.py",
        old="        SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None\n",
        new="        pass\n",
        tests=(
            "tests/adapters/spark/test_settled_session.py::test_a_spark_that_has_died_is_forgotten",
            "tests/e2e/kills/test_dead_spark.py",
        ),
    ),
    Mutation(
        name="a plan with a row that cannot be computed is repeated for ever",
        file=PROTOCOL,
        old="        if not isinstance(position, SnapshotPosition):",
        new="        if position is not None:",
        tests=(f"{RUN}::test_changes_that_were_refused_are_read_with_all_later_ones_whatever_the_budget",),
    ),
    Mutation(
        name="records of a topic that were refused are planned again and again",
        file=PROTOCOL,
        old="        if not isinstance(position, SnapshotPosition):",
        new="        if position is None:",
        tests=(f"{LOOP}::test_records_of_a_topic_that_were_refused_are_not_planned_again_as_they_stay_what_they_are",),
    ),
    Mutation(
        name="changes with a row that cannot be computed are planned again up to the budget",
        file=PROTOCOL,
        old="EVERYTHING if position.backfilled else budget)",
        new="budget)",
        tests=(f"{RUN}::test_changes_that_were_refused_are_read_with_all_later_ones_whatever_the_budget",),
    ),
    Mutation(
        name="a row that came and went among the changes of one table is computed",
        file="backfill_assets/adapters/compute/table_inputs.py",
        old="netted_changes(rows) if attempt.netted and self._may_go(attempt, name) else rows",
        new="rows",
        tests=(f"{ROWS}::test_a_row_that_came_and_went_stops_no_view",),
    ),
    Mutation(
        name="a row that came and went among the changes of a joined table is computed",
        file="backfill_assets/adapters/compute/relational_changes.py",
        old="netted_changes(every) if netted else every",
        new="every",
        tests=(GOES_ON,),
    ),
    Mutation(
        name="values that a query tells apart are netted",
        file=NETTED,
        old="grouped(alike, [*plain, *told, _TEXT], net, one)",
        new="grouped(alike, [*plain, *told], net, one)",
        tests=(f"{ROWS}::test_only_rows_that_no_query_tells_apart_are_netted",),
    ),
    Mutation(
        name="of equal rows that are left one remains",
        file=NETTED,
        old="CAST(abs({_NET}) AS INT)",
        new="CAST(signum(abs({_NET})) AS INT)",
        tests=(f"{ROWS}::test_only_rows_that_no_query_tells_apart_are_netted",),
    ),
    Mutation(
        name="what was captured of changes is not netted",
        file="backfill_assets/adapters/compute/plan_changes.py",
        old="isinstance(read, SpoolRead)\n        or (",
        new="False\n        or (",
        tests=(f"{ROWS}::test_a_row_that_was_corrected_in_what_was_captured_stops_no_view",),
    ),
)
