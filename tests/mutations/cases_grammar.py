"""Faults in reading what sqlglot reads otherwise than Spark, and in the columns that joins make one of."""

from tests.mutations.mutation import Mutation

__all__ = ["GRAMMAR"]

PARSING = "backfill_assets/query/parsing.py"
RESOLVED = "backfill_assets/query/resolved.py"
ORDERED = "backfill_assets/query/ordered_by.py"
MERGED = "backfill_assets/query/merged_columns.py"
SPELLED = "tests/query/test_grammar.py::test_other_values_are_spelled_otherwise"
NAMES = "tests/query/test_names_inside_columns.py"
NOT_FIRST = "tests/query/test_merged_columns.py::test_no_merged_column_is_that_of_the_first_table_if"
ENDS = "tests/query/test_limited.py::test_others_have_no_such_end"
FUNCTIONS = "backfill_assets/query/spark_functions.py"
CALLED = "tests/query/test_spark_functions.py"
LATERAL = "tests/e2e/tables/test_lateral_columns.py"

GRAMMAR: tuple[Mutation, ...] = (
    Mutation(
        name="the fields of what a function gives are taken for its name",
        file=FUNCTIONS,
        old="isinstance(around, exp.Dot) and around.expression is node:",
        new="isinstance(around, exp.Dot):",
        tests=(f"{CALLED}::test_what_else_stands_before_brackets_is_no_function",),
    ),
    Mutation(
        name="bits that are moved without their sign are taken for those that are moved with it",
        file="backfill_assets/query/grammar.py",
        old="""return exp.Anonymous(this="shiftrightunsigned", expressions=[super()._parse_term(parse_mod)])""",
        new="""return super()._parse_term(parse_mod)""",
        tests=(SPELLED,),
    ),
    Mutation(
        name="a number in a format is taken for its text, and a text for its JSON",
        file=RESOLVED,
        old="""[text, *map(repr, lost)]""",
        new="""[text]""",
        tests=(SPELLED, "tests/query/test_key_classes.py::test_what_sqlglot_spells_as_a_key_does_not_tell_it"),
    ),
    Mutation(
        name="GROUP BY ALL does not group by a column of that name",
        file=RESOLVED,
        old="""return is_said and "all" in""",
        new="""return is_said and "every" in""",
        tests=(f"{NAMES}::test_all_groups_by_the_column_of_that_name_if_there_is_one",),
    ),
    Mutation(
        name="a column with the name of a quantifier is lost",
        file=PARSING,
        old="""            word.token_type = TokenType.VAR\n""",
        new="""            pass\n""",
        tests=(f"{NAMES}::test_a_column_may_have_the_name_of_a_quantifier",),
    ),
    Mutation(
        name="a merged column is taken for one of a table that may be missing",
        file=MERGED,
        old="""() if may_lose_left(select) else (*joins_of(select), select)""",
        new="""(*joins_of(select), select)""",
        tests=("tests/query/test_merged_columns.py::test_a_merged_column_of_a_full_join_is_that_of_both_tables",),
    ),
    Mutation(
        name="the first of several columns stands for those that are not equal to it",
        file=MERGED,
        old="""if {spelled_node(each) for each in call.expressions} <= _followers(spelled_node(call.this), select):""",
        new="""if _followers(spelled_node(call.this), select):""",
        tests=(NOT_FIRST,),
    ),
    Mutation(
        name="a column that is equal to one of a missing row is taken for the one that is there",
        file=MERGED,
        old="""if old in found}""",
        new="""}""",
        tests=(NOT_FIRST,),
    ),
    Mutation(
        name="LATERAL is twice in the plan of rows that follow changes",
        file="backfill_assets/adapters/compute/rules.py",
        old=""", cut=query.is_lateral)""",
        new=""")""",
        tests=(f"{LATERAL}::test_a_view_of_them_follows_changes",),
    ),
    Mutation(
        name="LATERAL is twice in the plan of rows that are compared in full",
        file="backfill_assets/adapters/compute/table_compute.py",
        old="""kept(every, cut=isinstance(query, RelationalQuery) and query.is_lateral)""",
        new="""kept(every)""",
        tests=(f"{LATERAL}::test_a_view_of_them_is_compared_in_full",),
    ),
    Mutation(
        name="a column in an expression of ORDER BY is not looked up in the result",
        file=ORDERED,
        old=""" or any(map(self._is_other, all_of(value, exp.Column))):""",
        new=""":""",
        tests=(ENDS,),
    ),
    Mutation(
        name="a column of one table is taken for that of another in an order",
        file=ORDERED,
        old="""(a.table == b.table or not (a.table and b.table))""",
        new="""True""",
        tests=(ENDS,),
    ),
    Mutation(
        name="a merged column is taken for that of a table in an order",
        file=ORDERED,
        old="""() if any(map(merges, joins_of(root))) else (""",
        new="""(""",
        tests=(ENDS,),
    ),
    Mutation(
        name="texts in two cases are one in an order",
        file=ORDERED,
        old="""token.text if is_text else token.text.lower()""",
        new="""token.text.lower()""",
        tests=(ENDS,),
    ),
    Mutation(
        name="how deep a recursion may be is a syntax error",
        file="backfill_assets/query/grammar.py",
        old='self._match_text_seq("MAX", "RECURSION", "LEVEL")',
        new='self._match_text_seq("MAX", "RECURSION", "LEVELS")',
        tests=("tests/query/test_inlined.py::test_how_deep_a_recursion_may_be_changes_nothing_else",),
    ),
    Mutation(
        name="functions of a catalog are called, whatever they read",
        file=FUNCTIONS,
        old="schema not in _BUILTIN or node.name.lower() not in SPARK_FUNCTIONS",
        new="schema not in _BUILTIN",
        tests=(f"{CALLED}::test_a_function_of_somebodys_own_is_refused_where_it_is_called",),
    ),
    Mutation(
        name="a function of a catalog is taken for Spark's of the same name",
        file=FUNCTIONS,
        old="schema not in _BUILTIN or node.name.lower() not in SPARK_FUNCTIONS",
        new="node.name.lower() not in SPARK_FUNCTIONS",
        tests=(f"{CALLED}::test_a_function_of_somebodys_own_is_refused_where_it_is_called",),
    ),
    Mutation(
        name="functions that sqlglot knows of other products are taken for Spark's",
        file=FUNCTIONS,
        old="if token.text.lower() in _OTHERS and",
        new="if token.text in () and",
        tests=(f"{CALLED}::test_a_function_of_somebodys_own_is_refused_where_it_is_called",),
    ),
    Mutation(
        name="a name of a subquery with its columns is taken for a function",
        file=FUNCTIONS,
        old=" and token.start not in aliases:",
        new=":",
        tests=(f"{CALLED}::test_what_else_stands_before_brackets_is_no_function",),
    ),
    Mutation(
        name="a pivot makes two columns whose names differ in case alone",
        file="backfill_assets/query/text_checks.py",
        old="        if name.lower() in seen:\n            raise refusal(\n",
        new="        if name in seen:\n            raise refusal(\n",
        tests=(f"{CALLED}::test_a_pivot_by_values_that_differ_in_case_alone_is_refused",),
    ),
)
