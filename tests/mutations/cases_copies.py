"""Faults in what becomes of the rows and groups that a rule gives: copies and their numbers, constants, long decimals."""

from tests.mutations.mutation import Mutation

__all__ = ["COPIES"]

FOLLOWED = "tests/e2e/tables/test_relational.py::test_a_view_follows_what_changed_by_the_rule_for_its_query"
CLASSES = "tests/query/test_key_classes.py"
AT_ONCE = "tests/e2e/tables/test_places.py"
APPLY = "backfill_assets/adapters/sql/apply_relational.py"
NUMBERS = "tests/e2e/tables/test_copies.py::test_copies_come_and_go_and_their_numbers_are_never_shared"

COPIES: tuple[Mutation, ...] = (
    Mutation(
        name="what a rule gives is not cached before it is taken into a view",
        file="backfill_assets/adapters/compute/rules.py",
        old="        changes = Part(stack.enter_context(kept(feed.frame, cut=query.is_lateral)), feed.few)\n",
        new="        changes = feed\n",
        tests=(f"{FOLLOWED}[correlated]",),
    ),
    Mutation(
        name="of equal rows only one is kept",
        file="backfill_assets/adapters/compute/copies.py",
        old='    new = f"sequence(__last + __earlier + 1, __last + __earlier + {_NET})"',
        new='    new = "array(__last + __earlier + 1)"',
        tests=(f"{FOLLOWED}[self_join]", NUMBERS),
    ),
    Mutation(
        name="all copies of a row go with one",
        file="backfill_assets/adapters/compute/copies.py",
        old="IF(__place <= -__more,",
        new="IF(__more < 0,",
        tests=(f"{FOLLOWED}[self_join]", NUMBERS),
    ),
    Mutation(
        name="a copy that comes gets a number that rows with its hash have",
        file="backfill_assets/adapters/compute/copies.py",
        old="F.coalesce(F.max(COPY).over(with_hash.rowsBetween(*every)), F.lit(0))",
        new="F.coalesce(F.max(COPY).over(equal.rowsBetween(*every)), F.lit(0))",
        tests=(NUMBERS,),
    ),
    Mutation(
        name="two rows that come with the same hash get the same number",
        file="backfill_assets/adapters/compute/copies.py",
        old="F.coalesce(earlier, F.lit(0))",
        new="F.lit(0)",
        tests=(NUMBERS,),
    ),
    Mutation(
        name="rows that are to go and are not there are passed over",
        file="backfill_assets/adapters/compute/copies.py",
        old="WHEN __copies < -{_NET} THEN",
        new="WHEN FALSE THEN",
        tests=("tests/e2e/tables/test_copies.py::test_a_row_that_is_to_go_and_is_not_there_is_an_error",),
    ),
    Mutation(
        name="constants for each row are taken for one group of all",
        file="backfill_assets/query/grouped_rows.py",
        old="    if of_all and not groups.calls:",
        new="    if of_all and not groups:",
        tests=("tests/query/test_grouped_rows.py::test_groups_that_no_sum_or_count_keeps_are_not_cut", AT_ONCE),
    ),
    Mutation(
        name="decimals of more than 34 digits are rounded as they go",
        file="backfill_assets/adapters/sql/apply_aggregate.py",
        old='    gone = f"-{name}" if precision <= _LONGEST_NEGATED else _negative(name, scale)',
        new='    gone = f"-{name}"',
        tests=(
            "tests/e2e/tables/test_aggregate_maintenance.py::test_decimals_that_go_take_all_their_digits_with_them",
        ),
    ),
    Mutation(
        name="averages of decimals are made of sums rounded to 34 digits",
        file="backfill_assets/adapters/sql/apply_aggregate.py",
        old="concat(TRIM(LEADING '-' FROM CAST({total} AS STRING)), 'E{scale}')",
        new="concat(CAST(abs({total}) AS STRING), 'E{scale}')",
        tests=("tests/e2e/tables/test_aggregate_maintenance.py::test_averages_of_decimals_are_exactly_those_of_spark",),
    ),
    Mutation(
        name="the last half of a long quotient loses its zeros",
        file="backfill_assets/adapters/sql/apply_aggregate.py",
        old="lpad(CAST({last} AS STRING), 19, '0')",
        new="CAST({last} AS STRING)",
        tests=("tests/e2e/tables/test_aggregate_maintenance.py::test_averages_of_decimals_are_exactly_those_of_spark",),
    ),
    Mutation(
        name="averages of long decimals are divided as short ones are",
        file="backfill_assets/adapters/sql/apply_aggregate.py",
        old="_divided(whole, divisor) if precision <= _LONGEST_QUOTIENT else _divided_long(whole, divisor)",
        new="_divided(whole, divisor)",
        tests=("tests/e2e/tables/test_aggregate_maintenance.py::test_averages_of_decimals_are_exactly_those_of_spark",),
    ),
    Mutation(
        name="averages have four more digits even where there is no room",
        file="backfill_assets/adapters/sql/apply_aggregate.py",
        old="wider = min(scale + 4, _MOST_DIGITS)",
        new="wider = scale + 4",
        tests=("tests/e2e/tables/test_aggregate_maintenance.py::test_averages_of_decimals_are_exactly_those_of_spark",),
    ),
    Mutation(
        name="intervals of months are no intervals",
        file="backfill_assets/adapters/sql/apply_aggregate.py",
        old='return "MONTH" if re.search("year|month", kind) else',
        new='return "" if re.search("year|month", kind) else',
        tests=(
            "tests/e2e/tables/test_aggregate_maintenance.py::"
            "test_after_every_batch_of_a_random_history_the_view_is_the_batch_answer[intervals-1]",
        ),
    ),
    Mutation(
        name="a struct with a day in it is an interval",
        file="backfill_assets/adapters/sql/apply_aggregate.py",
        old="""if not kind.startswith("interval "):""",
        new="""if "day" not in kind:""",
        tests=(
            "tests/e2e/tables/test_aggregate_maintenance.py::"
            "test_after_every_batch_of_a_random_history_the_view_is_the_batch_answer[extremes-1]",
        ),
    ),
    Mutation(
        name="equal rows share a number",
        file=APPLY,
        old="F.row_number().over(same)",
        new="F.rank().over(same)",
        tests=("tests/e2e/tables/test_apply.py::test_equal_rows_have_numbers_of_their_own",),
    ),
)
