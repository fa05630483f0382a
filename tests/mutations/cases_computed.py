"""Faults in keys that a query computes."""

from typing import Final

from tests.mutations.mutation import Mutation

__all__ = ["COMPUTED"]

KEYS: Final = "backfill_assets/query/computed_keys.py"
KINDS: Final = "backfill_assets/query/kinds.py"
CLASSES: Final = "backfill_assets/query/key_classes.py"
PARTITION: Final = "backfill_assets/query/partition.py"
RESTRICTED: Final = "backfill_assets/adapters/compute/restricted.py"

CASES: Final = "tests/query/test_key_classes.py"
EXACT: Final = "tests/query/test_rules_are_exact.py"
HOPPING: Final = "tests/query/test_hopping_windows.py"
WITH_SPARK: Final = "tests/e2e/tables/test_computed_keys.py"
SEVERAL: Final = f"{WITH_SPARK}::test_rows_in_several_windows_of_time_are_found_once_and_all_of_them"

COMPUTED: Final = (
    Mutation(
        name="a text that is written with a backslash is a constant like others",
        file=KEYS,
        old="(isinstance(value, exp.Literal) and _ESCAPED not in value.meta)",
        new="isinstance(value, exp.Literal)",
        tests=(CASES,),
    ),
    Mutation(
        name="what is compared with a CHAR chooses a key",
        file=KEYS,
        old='all(_is_plain(each) and not (isinstance(each, exp.Column) and each.is_type("char")) for each in values)',
        new="all(_is_plain(each) for each in values)",
        tests=(CASES,),
    ),
    Mutation(
        name="texts and numbers are compared without an error",
        file=KEYS,
        old='len(values) > 1 and kinds in ({"NUMBER"}, {"STRING"})',
        new="len(values) > 1 and len(kinds) > 0",
        tests=(CASES,),
    ),
    Mutation(
        name="a value for nulls is taken for the column",
        file="backfill_assets/query/covers.py",
        old="return spelled if inner == spelled or _CONSTANT.search(inner) else",
        new="return spelled if inner == spelled else",
        tests=(CASES,),
    ),
    Mutation(
        name="the column month is taken for the unit of time",
        file="backfill_assets/query/grammar.py",
        old='"DATE_TRUNC": _truncated("DATE_TRUNC", 0)',
        new='"DATE_TRUNC": SparkParser.FUNCTIONS["DATE_TRUNC"]',
        tests=(CASES,),
    ),
    Mutation(
        name="the first argument of trunc is taken for its unit",
        file="backfill_assets/query/grammar.py",
        old='_truncated("TRUNC", 1)',
        new='_truncated("TRUNC", 0)',
        tests=(CASES,),
    ),
    Mutation(
        name="texts of floats are keys",
        file=KEYS,
        old='    "STRING": TIMES | _TEXT | _WHOLE,\n',
        new='    "STRING": TIMES | _TEXT | _WHOLE | {""},\n',
        tests=(CASES,),
    ),
    Mutation(
        name="remainders of a division by a column are keys",
        file=KEYS,
        old="_is_plain(each)) for each in others):\n        return False\n",
        new="_is_plain(each)) for each in others):\n        return True\n",
        tests=(CASES,),
    ),
    Mutation(
        name="a division by zero is a key",
        file=KEYS,
        old="int(others[0].name) > 0",
        new="int(others[0].name) >= 0",
        tests=(CASES,),
    ),
    Mutation(
        name="a conversion that may overflow is a key",
        file=KEYS,
        old='fits = kind_of(node) != "INTEGER" or',
        new='fits = kind_of(node) != "" or',
        tests=(CASES,),
    ),
    Mutation(
        name="texts are converted to days for all rows",
        file=KEYS,
        old='    "DATE": TIMES,\n',
        new='    "DATE": TIMES | _TEXT,\n',
        tests=(CASES,),
    ),
    Mutation(
        name="units of time are those that sqlglot takes them for",
        file=KEYS,
        old=" or _OTHER_UNIT in node.meta:",
        new=":",
        tests=(CASES,),
    ),
    Mutation(
        name="sessions are windows that a row is in alone",
        file=KEYS,
        old='or call.name.lower() != "window":',
        new='or not call.name.lower().endswith("window"):',
        tests=(CASES,),
    ),
    Mutation(
        name="of hopping windows a row is in one",
        file=KEYS,
        old="        case [exp.Column() as at, exp.Literal(is_string=True)]:",
        new="        case [exp.Column() as at, exp.Literal(is_string=True), *_]:",
        tests=(f"{HOPPING}::test_what_has_several_values_is_no_key_where",),
    ),
    Mutation(
        name="of windows that end within a tile the last rows are not found",
        file=KEYS,
        old="count=-(-length // step)",
        new="count=length // step",
        tests=(f"{HOPPING}::test_windows_that_end_within_a_tile_have_one_more_and_ends_tell_them_too",),
    ),
    Mutation(
        name="the end of a window is taken for its start",
        file=KEYS,
        old="first = -length if",
        new="first = 0 if",
        tests=(f"{HOPPING}::test_windows_that_end_within_a_tile_have_one_more_and_ends_tell_them_too",),
    ),
    Mutation(
        name="a day that a window begins on is taken for the window",
        file=KEYS,
        old=' if isinstance(value, exp.Cast) and kind_of(value) == "TIMESTAMP" else None',
        new=" if isinstance(value, exp.Cast) else None",
        tests=(f"{HOPPING}::test_what_has_several_values_is_no_key_where",),
    ),
    Mutation(
        name="rows are joined by windows that they are not in yet",
        file=PARTITION,
        old="if not self.computed.hops.keys() & {*pair}]",
        new="]",
        tests=(f"{HOPPING}::test_what_has_several_values_is_no_key_where",),
    ),
    Mutation(
        name="rows are compared within windows that they are not in yet",
        file=PARTITION,
        old="self._check_windows(select, self.computed.of_one_value(carriers))",
        new="self._check_windows(select, carriers)",
        tests=(f"{HOPPING}::test_what_has_several_values_is_no_key_where",),
    ),
    Mutation(
        name="what is computed of some rows of a window is taken for all of it",
        file=RESTRICTED,
        old=" if self.key.hops else result",
        new=" if not self.key else result",
        tests=(SEVERAL,),
    ),
    Mutation(
        name="a row that is in two touched windows is found twice",
        file=RESTRICTED,
        old="            return count(Part(self._in_tiles(rows.every(), hops), few=False))",
        new="            return count(Part(self.only(rows.every(), self.key.of_occurrence(at)), few=bool(hops) is None))",
        tests=(SEVERAL,),
    ),
    Mutation(
        name="bounds of windows over local times are moments",
        file=KINDS,
        old='kind_of(call.expressions[0]) == "TIMESTAMP" else ""',
        new='kind_of(call.expressions[0]) else ""',
        tests=(CASES,),
    ),
    Mutation(
        name="days are cut to moments",
        file=KINDS,
        old='    if isinstance(node, exp.DateTrunc):\n        return "DATE"\n',
        new='    if isinstance(node, exp.DateTrunc):\n        return "TIMESTAMP"\n',
        tests=(f"{WITH_SPARK}::test_what_is_computed_for_all_rows_is_what_the_query_computes",),
    ),
    Mutation(
        name="groups keep what is computed from a column by which they are not made",
        file=KEYS,
        old="    if isinstance(node, exp.Column):\n        return False\n    return all(",
        new="    if isinstance(node, exp.Column):\n        return True\n    return all(",
        tests=(CASES, EXACT),
    ),
    Mutation(
        name="what is computed over a subquery is a key whether or not it gives it",
        file=KEYS,
        old="if inner in carriers and self.alias(each) == alias)",
        new="if inner and self.alias(each) == alias)",
        tests=(CASES, EXACT),
    ),
    Mutation(
        name="what is computed is looked for as a column",
        file=CLASSES,
        old="return value if number in self.computed else backquoted(value)",
        new="return backquoted(value)",
        tests=(WITH_SPARK,),
    ),
    Mutation(
        name="a computed key counts as much as a column",
        file=CLASSES,
        old="        return len(self.columns.keys() & {*left}), -len(self.computed), bool(self.output), len(self.columns)\n",
        new="        return len(self.columns.keys() & {*left}), 0, bool(self.output), len(self.columns)\n",
        tests=(CASES,),
    ),
)
