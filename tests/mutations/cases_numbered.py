"""Faults of copies that are numbered in this process."""

from tests.mutations.mutation import Mutation

__all__ = ["NUMBERED"]

HERE = "backfill_assets/adapters/compute/numbered_copies.py"
COPIES = "backfill_assets/adapters/compute/copies.py"
PURE = "tests/adapters/compute/test_numbered_copies.py"
MODEL = f"{PURE}::test_the_last_copies_go_and_new_ones_get_the_numbers_after_them"
LEFT = f"{PURE}::test_rows_that_are_not_equal_are_left_to_spark"
FOLLOWED = "tests/e2e/tables/test_relational.py::test_a_view_follows_what_changed_by_the_rule_for_its_query"

NUMBERED: tuple[Mutation, ...] = (
    Mutation(
        name="new copies get numbers that others have",
        file=HERE,
        old="    numbers = last[places] + 1 + np.arange(len(places)) - before[places]",
        new="    numbers = last[places] + np.arange(len(places)) - before[places]",
        tests=(MODEL, FOLLOWED),
    ),
    Mutation(
        name="copies with the first numbers go",
        file=HERE,
        old="np.lexsort((-copies, place))",
        new="np.lexsort((copies, place))",
        tests=(MODEL,),
    ),
    Mutation(
        name="one copy too many goes",
        file=HERE,
        old="    goes = np.arange(len(ordered)) - begins < -more[ordered]",
        new="    goes = np.arange(len(ordered)) - begins <= -more[ordered]",
        tests=(MODEL,),
    ),
    Mutation(
        name="different rows with one hash are numbered as one",
        file=HERE,
        old="    if (ordered[1:] == ordered[:-1]).any():",
        new="    if False:",
        tests=(LEFT,),
    ),
    Mutation(
        name="a row of the view is another one with the same hash",
        file=HERE,
        old="    if not _are_equal(met, rows, place, visible):",
        new="    if False:",
        tests=(LEFT,),
    ),
    Mutation(
        name="rows go that are not there",
        file=HERE,
        old="    if (np.bincount(place, minlength=len(more)) < -more).any():",
        new="    if False:",
        tests=(f"{PURE}::test_more_than_there_are_is_left_to_spark_which_refuses_it",),
    ),
    Mutation(
        name="values are cut to what the view holds",
        file=HERE,
        old="net.column(name).cast(schema.field(name).type)",
        new="net.column(name).cast(schema.field(name).type, safe=False)",
        tests=(f"{PURE}::test_a_value_that_the_view_cannot_hold_is_left_to_spark",),
    ),
    Mutation(
        name="rows are numbered here however large they are",
        file=COPIES,
        old="found is not None and found.bytes <= MOST_BYTES:",
        new="found is not None:",
        tests=("tests/e2e/tables/test_copies.py::test_large_changes_are_numbered_by_spark",),
    ),
    Mutation(
        name="a row of which many copies come is as large as one",
        file=COPIES,
        old="* greatest({_NET}, 1)",
        new="* 1",
        tests=("tests/e2e/tables/test_copies.py::test_many_copies_of_a_row_are_numbered_by_spark",),
    ),
)
