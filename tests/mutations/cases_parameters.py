"""Faults in what is known of subqueries that give one value."""

from typing import Final

from tests.mutations.mutation import Mutation

__all__ = ["PARAMETERS"]

FOUND: Final = "tests/query/test_parameters.py"
EXACT: Final = "tests/query/test_rules_are_exact.py::test_subqueries_for_one_value_are_left_alone_while_it_stays"
VIEWS: Final = "tests/e2e/tables/test_parameters.py"
CHOICE: Final = "backfill_assets/core/strategies/rule_choice.py"
CHOSEN: Final = "tests/core/strategies/test_rule_choice.py"
PURE: Final = "backfill_assets/query/parameters.py"
VALUES: Final = "backfill_assets/adapters/compute/parameter_values.py"

PARAMETERS: Final = (
    Mutation(
        name="a subquery that looks at a row around it is taken for one value",
        file=PURE,
        old="    return bool(inside) and not any(map(_looks_out, inside))\n",
        new="    return bool(inside)\n",
        tests=(FOUND,),
    ),
    Mutation(
        name="a subquery in FROM is taken for one value",
        file=PURE,
        old="if isinstance(each.parent, _AROUND))",
        new="if each.parent)",
        tests=(FOUND,),
    ),
    Mutation(
        name="the text of a subquery is that of one within it",
        file=PURE,
        old="        return bool(parse(text, tokenize(text)) == node)\n",
        new="        return bool(parse(text, tokenize(text)))\n",
        tests=(FOUND,),
    ),
    Mutation(
        name="rows of a table are not followed that has a value, too",
        file="backfill_assets/query/relational.py",
        old="[number for number in places if number not in inside]",
        new="[number for number in places if self.occurrences[number] not in {self.occurrences[at] for at in inside}]",
        tests=(EXACT,),
    ),
    Mutation(
        name="a rule that counts on a value does not ask for it",
        file="backfill_assets/query/relational.py",
        old="replace(beside, parameters=asked)",
        new="beside",
        tests=(FOUND, EXACT),
    ),
    Mutation(
        name="a view follows changes though a subquery gives another value",
        file=VALUES,
        old="if before is None or before != value(one, []):",
        new="if before is None:",
        tests=(VIEWS,),
    ),
    Mutation(
        name="a value is looked up over new rows alone",
        file=VALUES,
        old="before = value(one, changed)",
        new="before = value(one, [])",
        tests=(VIEWS,),
    ),
    Mutation(
        name="a value that moved again and again is not asked for any more",
        file=CHOICE,
        old=" and (records[0].epoch + 1) % _TRIED_EVERY != 0",
        new="",
        tests=(CHOSEN,),
    ),
    Mutation(
        name="a value is expected to move as it did with changes of other tables",
        file=CHOICE,
        old="pairwise(records) if _changed(before, after) == set(changed)]",
        new="pairwise(records)]",
        tests=(CHOSEN,),
    ),
    Mutation(
        name="a value that moved is asked for in each epoch",
        file=CHOICE,
        old="(is_auto and changes.moved, ",
        new="(False, ",
        tests=(CHOSEN,),
    ),
)
