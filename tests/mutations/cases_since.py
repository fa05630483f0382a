"""Faults in checks that prove what was written and read since they passed."""

from tests.mutations.mutation import Mutation

__all__ = ["SINCE_PASS"]

SCOPE = "backfill_assets/core/proof_scope.py"
VERIFY = "backfill_assets/adapters/proof/rows.py"
VERIFY_SINCE = "backfill_assets/adapters/proof/since.py"
INSERTED_AGAIN = (
    "tests/e2e/damage/test_checks_catch.py::"
    "test_an_epoch_that_inserts_old_offsets_again_is_seen_where_they_were_proved_before"
)
SINCE = "tests/e2e/damage/test_checks_since.py"

SINCE_PASS: tuple[Mutation, ...] = (
    Mutation(
        name="keys that were written are compared with each other alone",
        file=VERIFY_SINCE,
        old="held = rows_at(spark, written.table, written.now)",
        new="held = file_rows(spark, written, written.came)",
        tests=(INSERTED_AGAIN,),
    ),
    Mutation(
        name="offsets that were proved before may come again",
        file=VERIFY,
        old="""        actual.where(f"NOT {_inside(proof, proof.left_out)}"),""",
        new="""        actual.where(f"NOT {_inside(proof, proof.left_out)} AND NOT {_inside(proof, proof.proved)}"),""",
        tests=(INSERTED_AGAIN,),
    ),
    Mutation(
        name="what was written since a pass is taken for all that changed since",
        file=VERIFY_SINCE,
        old="    if written.nothing and not read.since.reads:\n",
        new="    if written.nothing:\n",
        tests=(f"{SINCE}::test_changes_that_were_passed_over_are_missed",),
    ),
    Mutation(
        name="rows of groups that nothing changed are not looked for where they were written",
        file=VERIFY_SINCE,
        old="touched = files.unionAll(groups)",
        new="touched = groups",
        tests=(f"{SINCE}::test_rows_that_are_inserted_again_should_not_be_there[totals]",),
    ),
    Mutation(
        name="a check since the last pass reads the first of several versions",
        file=SCOPE,
        old="some[0].version, some[-1].version",
        new="some[0].version, some[0].version",
        tests=("tests/core/test_proof_scope.py",),
    ),
    Mutation(
        name="a check since the last pass does not see that history is read by key",
        file=SCOPE,
        old='version of its own": before.expected or after.expected,',
        new='version of its own": after.expected and not before.expected,',
        tests=("tests/core/test_proof_scope.py",),
    ),
    Mutation(
        name="a check since the last pass reads missing files",
        file="backfill_assets/adapters/proof/written.py",
        old="if any(info.type is not pafs.FileType.File",
        new="if all(info.type is not pafs.FileType.File",
        tests=("tests/adapters/proof/test_written.py",),
    ),
)
