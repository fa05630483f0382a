"""Faults of views of the first rows."""

from tests.mutations.mutation import Mutation

__all__ = ["LIMITED"]

QUERY = "backfill_assets/query/limited.py"
COMPUTE = "backfill_assets/adapters/compute/first_rows.py"
WAYS = "backfill_assets/adapters/compute/ways.py"
PURE = "tests/query/test_limited.py"
TOLD = f"{PURE}::test_the_first_rows_are_told_or_too_few_are_known"
ENDS = (f"{PURE}::test_others_have_no_such_end", f"{PURE}::test_the_query_before_the_order_and_the_columns_of_that")
REAL = "tests/e2e/tables/test_first_rows.py"
LOST = f"{REAL}::test_a_view_that_lost_rows_is_computed_in_full_and_goes_on"

LIMITED: tuple[Mutation, ...] = (
    Mutation(
        name="rows after the last one of the view count as known",
        file=QUERY,
        old="        is_known = of_view < rows or seen < of_view",
        new="        is_known = of_view < rows or seen <= of_view",
        tests=(TOLD,),
    ),
    Mutation(
        name="a view without enough rows is taken for one that had them all",
        file=QUERY,
        old="    return found if left == 0 or of_view < rows else None",
        new="    return found if left == 0 or of_view <= rows else None",
        tests=(TOLD, LOST),
    ),
    Mutation(
        name="copies that went from beyond the view make room for others",
        file=QUERY,
        old="min(max(many, 0), left)",
        new="min(many, left)",
        tests=(TOLD,),
    ),
    Mutation(
        name="an OFFSET is passed over",
        file=QUERY,
        old="    if parse(text, tokenize(text)) != bare:",
        new="    if text == query:",
        tests=ENDS,
    ),
    Mutation(
        name="a name in ORDER BY is first looked up in the tables",
        file="backfill_assets/query/ordered_by.py",
        old="if is_name and (not words[0].table or",
        new="if is_name and not self.items and (not words[0].table or",
        tests=ENDS,
    ),
    Mutation(
        name="a plus before a value is passed over",
        file="backfill_assets/query/grammar.py",
        old="""        TokenType.PLUS: lambda self: exp.Anonymous(this="positive", expressions=[self._parse_unary()]),
""",
        new="",
        tests=(*ENDS, "tests/query/test_key_classes.py"),
    ),
    Mutation(
        name="years are written with four digits in keys, whatever the pattern",
        file="backfill_assets/query/grammar.py",
        old="""        node.set("format", arguments[1].copy())""",
        new="""        pass""",
        tests=(
            "tests/query/test_key_classes.py",
            "tests/query/test_grammar.py::test_other_values_are_spelled_otherwise",
        ),
    ),
    Mutation(
        name="the direction of an order is lost",
        file=COMPUTE,
        old="    if by.descending:",
        new="    if not by.descending:",
        tests=(LOST,),
    ),
    Mutation(
        name="rows that the view is to lose are not listed",
        file=COMPUTE,
        old=""".where(f"{_NET} > 0 OR {_HELD} > 0")""",
        new=""".where(f"{_NET} > 0")""",
        tests=(LOST,),
    ),
    Mutation(
        name="the rule is tried once more where rows are lacking",
        file=WAYS,
        old="""        if lacks_rows and way.steps.rule != "full":
            continue
""",
        new="",
        tests=(f"{REAL}::test_after_three_epochs_in_full_only_every_tenth_tries_the_rule",),
    ),
    Mutation(
        name="classes that no column of the view tells count for its first rows",
        file="backfill_assets/query/relational.py",
        old="        classes = classes.told",
        new="        pass",
        tests=(f"{PURE}::test_changes_are_followed_as_those_of_the_query_before_the_order",),
    ),
    Mutation(
        name="a strict view may have too few of its first rows",
        file="backfill_assets/query/steps.py",
        old='            "enough of the first rows are known": self.first,',
        new='            "enough of the first rows are known": False,',
        tests=(f"{PURE}::test_changes_are_followed_as_those_of_the_query_before_the_order",),
    ),
    Mutation(
        name="plans over wide tables take minutes",
        file="backfill_assets/adapters/compute/table_compute.py",
        old="_FOR_WIDE if is_wide else {}",
        new="{}",
        tests=("tests/adapters/compute/test_wide_tables.py",),
    ),
    Mutation(
        name="a session keeps settings that it had for a while",
        file="backfill_assets/adapters/spark/brief_settings.py",
        old="            conf.unset(name)\n",
        new="            pass\n",
        tests=("tests/adapters/compute/test_wide_tables.py",),
    ),
)
