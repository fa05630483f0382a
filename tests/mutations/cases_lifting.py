"""Faults in how changes lead to keys of a view by rows between, and in what NOT IN asks of nulls."""

from typing import Final

from tests.mutations.mutation import Mutation

__all__ = ["LIFTING"]

LIFTS: Final = "backfill_assets/query/lifting.py"
LEADING: Final = "backfill_assets/adapters/compute/leading_rows.py"
RESTRICTED: Final = "backfill_assets/adapters/compute/restricted.py"
PARTITION: Final = "backfill_assets/query/partition.py"

CASES: Final = "tests/query/test_lifting.py"
CLASSES: Final = "tests/query/test_key_classes.py"
GROUPED: Final = "tests/query/test_grouped_rows.py"
EXACT: Final = "tests/query/test_rules_are_exact.py"
AT_ONCE: Final = "tests/e2e/tables/test_places.py"
FOUND: Final = "tests/e2e/tables/test_found_rows.py"
NOT_IN: Final = "tests/e2e/tables/test_not_in.py"

LIFTING: Final = (
    Mutation(
        name="only rows that come lead to a key",
        file=LEADING,
        old="for rows in (changed.come, changed.go) if rows is not None]",
        new="for rows in (changed.come,)]",
        tests=(AT_ONCE,),
    ),
    Mutation(
        name="only rows that come lead to a key, where they are found in this process",
        file=LEADING,
        old="    rows = [local.come, local.go]\n",
        new="    rows = [local.come]\n",
        tests=("tests/e2e/tables/test_found_rows.py::test_rows_between_lead_to_the_keys_that_changes_touch",),
    ),
    Mutation(
        name="what changed is taken for a row that tells a key of the view",
        file=LIFTS,
        old="        found = next((way for at, _, way in ways if at in covered), None)\n",
        new="        found = next((way for _, _, way in ways), None)\n",
        tests=(CASES,),
    ),
    Mutation(
        name="rows that an outer join may leave out lead to a key",
        file=LIFTS,
        old='    if side == "LEFT" or kind in {"SEMI", "ANTI"}:\n        return left\n',
        new='    if side == "LEFT" or kind in {"SEMI", "ANTI"}:\n        return left | right\n',
        tests=(CASES,),
    ),
    Mutation(
        name="NOT IN asks nothing of nulls",
        file="backfill_assets/query/key_classes.py",
        old="if self.known in self.key.apart else ()",
        new="if not self.key.columns else ()",
        tests=(CASES, EXACT),
    ),
    Mutation(
        name="NOT IN asks nothing of what it compares with",
        file=PARTITION,
        old="            self.nulls |= places\n",
        new="            self.nulls |= set()\n",
        tests=(CLASSES, GROUPED, EXACT),
    ),
    Mutation(
        name="NOT IN asks nothing of what it compares",
        file=PARTITION,
        old="            self.nulls |= self.cover.keys() - places\n",
        new="            self.nulls |= set()\n",
        tests=(CLASSES, GROUPED, EXACT),
    ),
    Mutation(
        name="what may be null is taken for what is not",
        file="backfill_assets/query/conditions.py",
        old='        for each in conjuncts(select.args.get("where"))\n',
        new="        for each in select.find_all(exp.Not)\n",
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="NOT IN is a key of the view",
        file="backfill_assets/query/key_classes.py",
        old=" if asking or not found.apart else None",
        new="",
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="NOT IN is followed whatever is null",
        file="backfill_assets/core/strategies/rule_choice.py",
        old="    if changes.nulls():\n",
        new="    if changes.nulls is None:\n",
        tests=(NOT_IN,),
    ),
    Mutation(
        name="nulls are looked for in new rows alone",
        file="backfill_assets/adapters/compute/chosen_steps.py",
        old="sorted({read.first - 1, read.last})",
        new="[read.last]",
        tests=(NOT_IN,),
    ),
    Mutation(
        name="nulls are looked for in old rows alone",
        file="backfill_assets/adapters/compute/chosen_steps.py",
        old="sorted({read.first - 1, read.last})",
        new="[read.first - 1]",
        tests=(NOT_IN,),
    ),
    Mutation(
        name="a column of which nulls are not counted has none",
        file="backfill_assets/adapters/delta/key_statistics.py",
        old='    return any((file.stats.get("nullCount") or {}).get(stored) != 0 for file in version.files)\n',
        new='    return any((file.stats.get("nullCount") or {}).get(stored) for file in version.files)\n',
        tests=("tests/adapters/delta/test_files_of_keys.py",),
    ),
    Mutation(
        name="rows that NOT IN compares with are left out though nothing was asked of nulls",
        file=RESTRICTED,
        old="asks = at not in self.places and any(step.nulls for step in steps)",
        new="asks = at in self.places and not steps",
        tests=("tests/e2e/tables/test_not_in.py::test_nulls_decide_whether_not_in_is_followed[joined]",),
    ),
    Mutation(
        name="a view that may only follow changes is declared with NOT IN that may meet nulls",
        file="backfill_assets/query/steps.py",
        old='            "NOT IN compares no null": bool(self.nulls),',
        new='            "NOT IN compares no null": False,',
        tests=(CASES,),
    ),
)
