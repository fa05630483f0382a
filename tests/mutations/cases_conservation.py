"""Faults in what is checked of an epoch's rows and files before its commit, and of Spark's reading by another reader."""

from tests.mutations.mutation import Mutation

__all__ = ["CONSERVATION"]

STAGED_COLUMNS = "tests/core/epoch/test_staged_columns.py"
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
)
