"""Faults in the rules that random queries have to find by themselves."""

from typing import Final

from tests.mutations.mutation import Mutation

__all__ = ["DRAWN"]

HISTORIES: Final = "tests/query/test_histories_are_exact.py"
VIEWS: Final = "tests/e2e/tables/test_drawn_histories.py"
PARTITION: Final = "backfill_assets/query/partition.py"
RESTRICTED: Final = "backfill_assets/adapters/compute/restricted.py"
LEADING: Final = "backfill_assets/adapters/compute/leading_rows.py"
CLASSES: Final = "backfill_assets/query/key_classes.py"

DRAWN: tuple[Mutation, ...] = (
    Mutation(
        name="of several places of one key only the first touches its values",
        file=CLASSES,
        old="            found.setdefault(self.of[number], []).append(number)\n",
        new="            found.setdefault(self.of[number], [number])\n",
        tests=(HISTORIES,),
    ),
    Mutation(
        name="a join need not compare by the key of both of its sides",
        file=PARTITION,
        old="        if left.covered and right.covered and not links:\n",
        new='        if left.covered and right.covered and not links and side == "FULL":\n',
        tests=(HISTORIES,),
    ),
    Mutation(
        name="groups by something else than the key are computed in part",
        file=PARTITION,
        old="        if not left:\n            self.refuse(select)\n        return left",
        new="        if not keys:\n            self.refuse(select)\n        return left or carriers",
        tests=(HISTORIES,),
    ),
    Mutation(
        name="a FULL JOIN gives the key in the column of either side",
        file=PARTITION,
        old='        carriers = either if side == "FULL" else',
        new='        carriers = either | left.carriers if side == "FULL" else',
        tests=(HISTORIES,),
    ),
    Mutation(
        name="a LEFT JOIN gives the key in the column of its right side",
        file=PARTITION,
        old="        if is_inner:\n            carriers = closed",
        new='        if is_inner or side == "LEFT":\n            carriers = closed',
        tests=(HISTORIES,),
    ),
    Mutation(
        name="only rows that come touch values of a key",
        file=LEADING,
        old="    rows = [local.come, local.go]\n",
        new="    rows = [local.come]\n",
        tests=(VIEWS,),
    ),
    Mutation(
        name="rows of the view with a touched value are still there beside the new ones",
        file=RESTRICTED,
        old="        gone = go.frame.drop(COPY, ROW_HASH)",
        new='        gone = go.frame.drop(COPY, ROW_HASH).where("1 = 0")',
        tests=(VIEWS,),
    ),
    Mutation(
        name="rows that go take nothing out of a view of joined rows",
        file="backfill_assets/adapters/compute/relational_changes.py",
        old="            if rows is not None:\n                bound = [Part(rows(), one.few)",
        new='            if rows is not None and kind == "insert":\n                bound = [Part(rows(), one.few)',
        tests=(VIEWS,),
    ),
)
