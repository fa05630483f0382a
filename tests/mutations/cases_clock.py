"""Faults in views whose queries read the clock."""

from tests.mutations.mutation import Mutation

__all__ = ["CLOCK"]

TEXT = "tests/query/test_clock.py"
RUNS = "tests/core/strategies/test_clock_views.py"
VIEWS = "tests/e2e/tables/test_clock_views.py::test_a_view_is_computed_and_proved_for_the_time_of_each_refresh"
DECIDER = "backfill_assets/core/strategies/table_views.py"

CLOCK: tuple[Mutation, ...] = (
    Mutation(
        name="a word that is a name, too, is taken for the clock",
        file="backfill_assets/query/clock.py",
        old="        if any(word in each for each in (*columns, *texts, *names)):",
        new="        if any(word in each for each in texts):",
        tests=(TEXT,),
    ),
    Mutation(
        name="a function of another schema is taken for the clock",
        file="backfill_assets/query/clock.py",
        old="        if not is_name or (at and tokens[at - 1].token_type == TokenType.DOT):",
        new="        if not is_name:",
        tests=(TEXT,),
    ),
    Mutation(
        name="a local time is one with a zone",
        file="backfill_assets/query/functions.py",
        old='    "localtimestamp": "TIMESTAMP_NTZ",',
        new='    "localtimestamp": "TIMESTAMP_LTZ",',
        tests=(TEXT,),
    ),
    Mutation(
        name="any view over whole tables may read the clock",
        file="backfill_assets/declare/declarations.py",
        old='clock=refresh_mode == "full")',
        new="clock=True)",
        tests=(TEXT,),
    ),
    Mutation(
        name="time alone does not make a refresh compute a view that reads the clock",
        file=DECIDER,
        old="(bool(skip_reads(before, position)) or self._is_old(position))",
        new="bool(skip_reads(before, position))",
        tests=(RUNS,),
    ),
    Mutation(
        name="a view that reads the clock has work for sensors all the time",
        file=DECIDER,
        old="        return changed or self._worth_passing(position, oldest)",
        new="        return changed or self._worth_passing(position, oldest) or self._is_old(position)",
        tests=(RUNS,),
    ),
    Mutation(
        name="the time of an epoch is not recorded again",
        file=DECIDER,
        old="        if self.now is not None and any(isinstance(each, FullRead) for each in reads):",
        new="        if self.now is not None and position.instant is None:",
        tests=(RUNS,),
    ),
    Mutation(
        name="a refresh ends with the time of an earlier run's plan",
        file="backfill_assets/core/epoch/run.py",
        old="        if _is_of_before(record, self.started):",
        new="        if record.epoch < 0:",
        tests=(RUNS,),
    ),
    Mutation(
        name="positions of views that read no clock have other hashes than before",
        file="backfill_assets/core/progress/positions.py",
        old='_MAY_BE_MISSING = frozenset({"driving", "instant"})',
        new='_MAY_BE_MISSING = frozenset({"driving"})',
        tests=(RUNS,),
    ),
    Mutation(
        name="a view is computed for another time than that of its plan",
        file="backfill_assets/app/wiring/view_inputs.py",
        old="query=lambda plan: self.query.at(plan.incarnation, plan.after, anew",
        new="query=lambda plan: self.query.at(plan.incarnation, plan.before, anew",
        tests=(VIEWS,),
    ),
    Mutation(
        name="a view is proved for another time than that of its commit",
        file="backfill_assets/app/proof_rows.py",
        old="    query = reads.query.at(case.record.incarnation, position)",
        new="    query = reads.query.present",
        tests=(VIEWS,),
    ),
    Mutation(
        name="times in a text that is taken apart are not the clock's",
        file="backfill_assets/query/clock_texts.py",
        old="    if _is_taken_apart(node) and any",
        new="    if False and any",
        tests=("tests/query/test_clock_texts.py",),
    ),
    Mutation(
        name="a text that is taken apart by types without times is the clock's",
        file="backfill_assets/query/clock_texts.py",
        old="(schema is None or holds_times(schema))",
        new="True",
        tests=("tests/query/test_clock_texts.py",),
    ),
    Mutation(
        name="a text inside of a type becomes no time",
        file="backfill_assets/query/clock_texts.py",
        old="any(each.is_type(*kinds) for each in all_of(parent.to, exp.DataType))",
        new="parent.is_type(*kinds)",
        tests=("tests/query/test_clock_texts.py",),
    ),
    Mutation(
        name="a time of day in a field stays a text wherever the field is",
        file="backfill_assets/query/clock_texts.py",
        old="by_name = is_named or self._is_time_by_name(node.root(), field)",
        new="by_name = is_named",
        tests=("tests/query/test_clock_texts.py::test_texts_that_may_become_times_are_refused",),
    ),
)
