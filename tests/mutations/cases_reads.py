"""Faults in counting what Spark reads several times, or only in part, and in what is said where it cannot read."""

from tests.mutations.mutation import Mutation

__all__ = ["READS"]

AGAIN = "tests/e2e/damage/test_reads_again.py"

READS: tuple[Mutation, ...] = (
    Mutation(
        name="a name of WITH is read once, however often it is used",
        file="backfill_assets/query/place_reads.py",
        old="any(used[name] > 1 for name in defined)",
        new="any(used[name] > 9 for name in defined)",
        tests=("tests/query/test_place_reads.py",),
    ),
    Mutation(
        name="of several reads of a place only one is counted",
        file="backfill_assets/adapters/compute/table_compute.py",
        old="return replace(scans, ends_early=early, again=query.reads_again)",
        new="return replace(scans, ends_early=early)",
        tests=(f"{AGAIN}::test_a_column_that_only_one_of_several_reads_takes_is_missed",),
    ),
    Mutation(
        name="all rows have to be read where one is looked for",
        file="backfill_assets/adapters/compute/table_compute.py",
        old="early = scans.ends_early or name in query.read_in_part",
        new="early = scans.ends_early",
        tests=(f"{AGAIN}::test_where_one_row_is_looked_for_not_all_are_read",),
    ),
    Mutation(
        name="groups that were not read are said to be wrong",
        file="backfill_assets/adapters/compute/scans.py",
        old="            if is_of_values(error):\n                self.check()",
        new="            is_of_values(error)",
        tests=(f"{AGAIN}::test_groups_of_which_rows_go_are_not_said_to_be_wrong_where_they_were_not_read",),
    ),
    Mutation(
        name="conditions on a union with a correlated subquery are left to Spark",
        file="backfill_assets/adapters/proof/rows.py",
        old="        with kept(counted) as once:",
        new="        if once := counted:",
        tests=(f"{AGAIN}::test_a_check_names_rows_that_are_missing_and_files_that_cannot_be_read",),
    ),
    Mutation(
        name="an error of Spark is passed on by a check as it is",
        file="backfill_assets/app/table_checks.py",
        old="        if not is_of_spark(error):\n            raise",
        new="        if error:\n            raise",
        tests=(f"{AGAIN}::test_a_check_names_rows_that_are_missing_and_files_that_cannot_be_read",),
    ),
    Mutation(
        name="a commit that nobody disturbed failed because of other writers",
        file="backfill_assets/core/epoch/protocol.py",
        old="alone=found.version == look.version)",
        new="alone=found.version != look.version)",
        tests=("tests/core/epoch/test_protocol_cases.py::test_every_commit_ends_as_its_case_says",),
    ),
    Mutation(
        name="a file that cannot be read is read again and again",
        file="backfill_assets/adapters/compute/poison.py",
        old="    if _UNREADABLE not in str(error):",
        new="    if error:",
        tests=("tests/adapters/compute/test_poison_errors.py",),
    ),
    Mutation(
        name="of several reads of groups only one is counted",
        file="backfill_assets/adapters/compute/table_compute.py",
        old="scans = replace(attempt.scans, again=groups)",
        new="scans = attempt.scans",
        tests=(f"{AGAIN}::test_a_column_of_groups_that_only_some_reads_take_is_missed",),
    ),
)
