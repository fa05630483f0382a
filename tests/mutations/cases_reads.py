"""Faults in counting what Spark reads several times, or only in part, and in what is said where it cannot read."""

from tests.mutations.mutation import Mutation

__all__ = ["READS"]

SCANS = "tests/adapters/compute/test_scans.py"
AGAIN = "tests/e2e/damage/test_reads_again.py"

READS: tuple[Mutation, ...] = (
    Mutation(
        name="half of the rows, read twice, are all rows",
        file="backfill_assets/core/epoch/conservation.py",
        old="if scan.least <= found.rows <= scan.most and not found.again:",
        new="if scan.least <= found.rows <= scan.most:",
        tests=(
            "tests/core/epoch/test_conservation.py::test_rows_that_are_read_again_prove_nothing_however_many_they_are",
            f"{AGAIN}::test_half_of_the_rows_read_twice_are_not_all_rows",
        ),
    ),
    Mutation(
        name="rows that are read twice are not seen to be",
        file="backfill_assets/adapters/compute/scans.py",
        old="(not metrics[_PARITY] or common",
        new="(common",
        tests=(f"{AGAIN}::test_half_of_the_rows_read_twice_are_not_all_rows", SCANS),
    ),
    Mutation(
        name="rows that are read three times are not seen to be",
        file="backfill_assets/adapters/compute/scans.py",
        old=" or common & (common - 1) != 0)",
        new=")",
        tests=(SCANS,),
    ),
    Mutation(
        name="changes that Delta's own reader finds are not counted",
        file="backfill_assets/adapters/compute/table_rows.py",
        old="return unfiltered(count(_fed(spark, upstream, read, place), there))",
        new="return unfiltered(_fed(spark, upstream, read, place)) if there else None  # type: ignore[return-value]",
        tests=(f"{AGAIN}::test_changes_that_deltas_own_reader_finds_are_counted",),
    ),
    Mutation(
        name="of several reads of a place only one is counted",
        file="backfill_assets/adapters/compute/table_inputs.py",
        old="return replace(scans, ends_early=early, every_value=True)",
        new="return replace(scans, ends_early=early)",
        tests=(f"{AGAIN}::test_a_column_that_only_one_of_several_reads_takes_is_missed",),
    ),
    Mutation(
        name="all rows have to be read where one is looked for",
        file="backfill_assets/adapters/compute/table_inputs.py",
        old="early = scans.ends_early or name in query.read_in_part",
        new="early = scans.ends_early",
        tests=(f"{AGAIN}::test_where_one_row_is_looked_for_not_all_are_read",),
    ),
    Mutation(
        name="groups that were not read are said to be wrong",
        file="backfill_assets/adapters/compute/scans.py",
        old="            if is_of_values(error):\n                self._check_alone()",
        new="            is_of_values(error)",
        tests=(f"{AGAIN}::test_groups_of_which_rows_go_are_not_said_to_be_wrong_where_they_were_not_read",),
    ),
    Mutation(
        name="what a failed action has counted is held to be all that there is",
        file="backfill_assets/adapters/compute/scans.py",
        old="                self._check_alone()",
        new="                self.check()",
        tests=("tests/e2e/tables/test_poison_rows.py::test_what_cannot_be_named_or_is_named_wrongly_is_refused",),
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
        old="        if not (is_of_spark(error) or isinstance(error, OSError | pa.ArrowException)):",
        new="        if not isinstance(error, OSError | pa.ArrowException):",
        tests=(f"{AGAIN}::test_a_check_names_rows_that_are_missing_and_files_that_cannot_be_read",),
    ),
    Mutation(
        name="an error of another reader is passed on by a check as it is",
        file="backfill_assets/app/table_checks.py",
        old="        if not (is_of_spark(error) or isinstance(error, OSError | pa.ArrowException)):",
        new="        if not is_of_spark(error):",
        tests=(f"{AGAIN}::test_a_check_names_rows_that_are_missing_and_files_that_cannot_be_read",),
    ),
    Mutation(
        name="a commit that nobody disturbed failed because of other writers",
        file="backfill_assets/core/epoch/commit.py",
        old="alone=found.version == look.version)",
        new="alone=found.version != look.version)",
        tests=("tests/core/epoch/test_protocol_cases.py::test_every_commit_ends_as_its_case_says",),
    ),
    Mutation(
        name="a file that cannot be read is read again and again",
        file="backfill_assets/adapters/compute/poison.py",
        old="    if not any(each in str(error) for each in _UNREADABLE):",
        new="    if error:",
        tests=("tests/adapters/compute/test_poison_errors.py",),
    ),
    Mutation(
        name="of several reads of groups only one is counted",
        file="backfill_assets/adapters/compute/table_compute.py",
        old="scans = replace(attempt.scans, every_value=not isinstance(self.query(attempt.plan), RowwiseQuery))",
        new="scans = attempt.scans",
        tests=(f"{AGAIN}::test_a_column_of_groups_that_only_some_reads_take_is_missed",),
    ),
)
