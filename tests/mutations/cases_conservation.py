"""Faults in checking an epoch's rows and files before its commit, and in comparing Spark with another reader."""

from tests.mutations.mutation import Mutation

__all__ = ["CONSERVATION"]

STAGED_COLUMNS = "tests/core/epoch/test_staged_columns.py"
READER = "backfill_assets/adapters/proof/second_reader.py"
FILE_SAMPLES = "backfill_assets/adapters/proof/file_samples.py"
TOPIC_SAMPLES = "backfill_assets/adapters/proof/topic_samples.py"
PROOF_SAMPLES = "backfill_assets/app/proof_samples.py"
SAMPLING = "backfill_assets/core/sampling.py"
SECOND = "tests/e2e/damage/test_second_reader.py"
HIDDEN = f"{SECOND}::test_rows_that_a_session_hides_from_product_and_proof_are_missed"
HIDDEN_RECORDS = f"{SECOND}::test_records_that_a_session_hides_from_product_and_proof_are_missed"
OTHER_RECORDS = f"{SECOND}::test_records_read_again_are_in_the_source_and_in_its_views_as_they_are"
REFUSED = f"{STAGED_COLUMNS}::test_files_with_other_columns_are_refused_before_the_commit"

CONSERVATION: tuple[Mutation, ...] = (
    # Columns of staged files
    Mutation(
        name="staged files may have any columns",
        file="backfill_assets/adapters/delta/output.py",
        old="if staged.files and self._table is not None:",
        new="if staged.files and self._table is None:",
        tests=(REFUSED,),
    ),
    Mutation(
        name="columns that a staged file has not are not missed",
        file="backfill_assets/core/epoch/staged_columns.py",
        old="for name in (*expected, *found):",
        new="for name in found:",
        tests=(STAGED_COLUMNS,),
    ),
    Mutation(
        name="columns that only a staged file has are not seen",
        file="backfill_assets/core/epoch/staged_columns.py",
        old="for name in (*expected, *found):",
        new="for name in expected:",
        tests=(STAGED_COLUMNS,),
    ),
    Mutation(
        name="a time of any unit is a time",
        file="backfill_assets/adapters/delta/arrow_types.py",
        old="""if pa.types.is_timestamp(kind) and kind.unit == "us":""",
        new="if pa.types.is_timestamp(kind):",
        tests=(STAGED_COLUMNS,),
    ),
    Mutation(
        name="a time without a zone is one with it",
        file="backfill_assets/adapters/delta/arrow_types.py",
        old="""return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP\"""",
        new="""return "TIMESTAMP\"""",
        tests=(STAGED_COLUMNS,),
    ),
    # Another reader than Spark
    Mutation(
        name="rows that Spark lacks are not missed",
        file=READER,
        old="lacking, surplus = (found - by_spark).total(), (by_spark - found).total()",
        new="lacking, surplus = 0, (by_spark - found).total()",
        tests=(HIDDEN,),
    ),
    Mutation(
        name="rows that only Spark has are not seen",
        file=READER,
        old="lacking, surplus = (found - by_spark).total(), (by_spark - found).total()",
        new="lacking, surplus = (found - by_spark).total(), 0",
        tests=(f"{SECOND}::test_days_that_a_session_moves_are_seen",),
    ),
    Mutation(
        name="a file that only Spark can read is passed over",
        file=READER,
        old="        if file.rows is None\n",
        new="        if file.rows is not None\n",
        tests=(f"{SECOND}::test_a_damaged_file_that_a_session_passes_over_is_named",),
    ),
    Mutation(
        name="results of the query over rows read again are not looked up in the view",
        file=READER,
        old="    if not found.missing:\n",
        new="    if found.missing >= 0:\n",
        tests=(f"{SECOND}::test_what_the_query_makes_of_rows_read_again_must_be_in_the_view",),
    ),
    Mutation(
        name="rows are read at other places than were selected",
        file=FILE_SAMPLES,
        old="skip=places.start - first,",
        new="skip=places.start,",
        tests=("tests/adapters/proof/test_file_samples.py",),
    ),
    Mutation(
        name="rows from the middle of a file are slices",
        file=FILE_SAMPLES,
        old="        yield batch.take(pa.array(range(start, end), pa.int64()))",
        new="        yield batch.slice(start, end - start)",
        tests=("tests/adapters/proof/test_file_samples.py",),
    ),
    Mutation(
        name="files with hidden rows are read again as they are",
        file=FILE_SAMPLES,
        old="if simple and not file.deleted and",
        new="if simple and",
        tests=("tests/adapters/proof/test_file_samples.py",),
    ),
    Mutation(
        name="each proof reads the same places again",
        file=SAMPLING,
        old="""sha256(f"{seed}/{name}".encode())""",
        new="sha256(name.encode())",
        tests=("tests/core/test_sampling.py",),
    ),
    Mutation(
        name="records that the table lacks are not missed",
        file=TOPIC_SAMPLES,
        old="        if row is None:\n            yield",
        new="        if row is None:\n            continue\n            yield",
        tests=("tests/adapters/proof/test_topic_samples.py", HIDDEN_RECORDS),
    ),
    Mutation(
        name="values of records are believed as Spark parsed them",
        file=TOPIC_SAMPLES,
        old="        pairs |= {name:",
        new="        _ = {name:",
        tests=("tests/adapters/proof/test_topic_samples.py", OTHER_RECORDS),
    ),
    Mutation(
        name="no records of a topic are read again",
        file=PROOF_SAMPLES,
        old="ranges = sample_offsets(held, case.seed)",
        new="ranges = sample_offsets({}, case.seed)",
        tests=(HIDDEN_RECORDS,),
    ),
    Mutation(
        name="the full proof reads nothing again",
        file="backfill_assets/app/table_checks.py",
        old="""uuid.uuid4().hex[:12]) if full and seed is not None else""",
        new="""uuid.uuid4().hex[:12]) if not full else""",
        tests=(HIDDEN,),
    ),
)
