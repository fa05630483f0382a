"""Faults in decisions for rare texts: words of the session, the clock's texts, first rows, and clauses of other systems."""

from tests.mutations.mutation import Mutation

__all__ = ["REACHED"]

WORDS = "backfill_assets/query/current_words.py"
CLOCK = "backfill_assets/query/clock_texts.py"
PARTITION = "backfill_assets/query/partition.py"
RELATIONAL = "backfill_assets/query/relational.py"
WINDOWS = "backfill_assets/query/window_orders.py"
DECLARED = "backfill_assets/declare/declarations.py"
CALLED = "tests/query/test_current_words.py::test_a_word_that_no_source_has_as_a_column_is_refused"
TIMES = "tests/query/test_clock_texts.py::test_texts_that_may_become_times_are_refused"
NO_KEY = "tests/query/test_key_classes.py::test_what_a_query_computes_is_no_key_if"
REFUSED = "tests/query/test_relational.py::test_what_cannot_be_kept_is_refused_with_its_code_and_a_hint"
RARE = "tests/query/test_rare_texts.py"
DECLARATIONS = "tests/declare/test_declarations.py"
COLUMNS = "tests/query/test_query_columns.py"

REACHED: tuple[Mutation, ...] = (
    Mutation(
        name="groups whose rows hold sums of floats are computed from changes of the rows that these choose",
        file=RELATIONAL,
        old="""return Steps("restricted", (), by_class, asked_of_nulls(self.classes, by_class))""",
        new="""return Steps("additive", (), by_class)""",
        tests=(
            "tests/query/test_grouped_rows.py"
            "::test_groups_whose_rows_are_chosen_by_sums_of_floats_are_computed_again_for_touched_values",
        ),
    ),
    Mutation(
        name="keys are looked for where types cannot be read",
        file="backfill_assets/query/kinds.py",
        old="""    except SqlglotError:\n        return False""",
        new="""    except SqlglotError:\n        return True""",
        tests=(
            "tests/query/test_kinds.py::test_over_columns_of_a_type_that_cannot_be_read_a_query_is_computed_in_full",
        ),
    ),
    Mutation(
        name="sums are kept of types that cannot be read",
        file="backfill_assets/query/exact.py",
        old="""    if typed is None:\n        return False""",
        new="""    if typed is None:\n        return True""",
        tests=(
            "tests/query/test_kinds.py::test_over_columns_of_a_type_that_cannot_be_read_a_query_is_computed_in_full",
        ),
    ),
    Mutation(
        name="any condition of CASE chooses a key",
        file="backfill_assets/query/computed_keys.py",
        old="""        case _:\n            return False\n    # Spark pads""",
        new="""        case _:\n            return True\n    # Spark pads""",
        tests=(NO_KEY,),
    ),
    Mutation(
        name="a hidden column tells the key of rows of DISTINCT",
        file="backfill_assets/query/key_classes.py",
        old=""" or self.tree.args.get("distinct"):""",
        new=""":""",
        tests=(NO_KEY,),
    ),
    Mutation(
        name="a table of which a subquery gives the first rows is taken for one with a key",
        file=PARTITION,
        old="""        self.refuse(inner)\n        return _ALL_ROWS""",
        new="""        return _ALL_ROWS""",
        tests=("tests/query/test_covers.py::test_the_table_of_first_rows_is_left_out_of_a_key",),
    ),
    Mutation(
        name="first rows are one key with what they are compared with",
        file="backfill_assets/query/covers.py",
        old="""    if not isinstance(inner, exp.Select):\n        return []""",
        new="""    if not isinstance(inner, exp.Select):\n        return _connect(inner.this, union)""",
        tests=("tests/query/test_covers.py::test_what_first_rows_are_compared_with_is_not_one_key_with_theirs",),
    ),
    Mutation(
        name="a join of a kind that is not known joins like others",
        file=PARTITION,
        old="""if merges(join) or not known:""",
        new="""if merges(join):""",
        tests=(
            "tests/query/test_key_classes.py"
            "::test_no_key_covers_tables_whose_rows_may_meet_others_than_those_of_their_value",
        ),
    ),
    Mutation(
        name="a definition has the columns of its query and not those that it names",
        file=WORDS,
        old="""return name in columns if columns else _gives(""",
        new="""return _gives(""",
        tests=(CALLED,),
    ),
    Mutation(
        name="a recursive definition has the columns that it gives by reading itself",
        file=WORDS,
        old=""" if each is not cte}""",
        new="""}""",
        tests=(
            "tests/query/test_current_words.py::test_a_recursive_definition_does_not_give_a_column_by_reading_itself",
        ),
    ),
    Mutation(
        name="rows of constants have a column of any name",
        file=WORDS,
        old="""            return _gives(source.this, name, tables, named)\n    return False""",
        new="""            return _gives(source.this, name, tables, named)\n    return True""",
        tests=(CALLED,),
    ),
    Mutation(
        name="joins in brackets have a column of any name",
        file=WORDS,
        old="""    if not isinstance(query, exp.Query):\n        return False""",
        new="""    if not isinstance(query, exp.Query):\n        return True""",
        tests=(CALLED,),
    ),
    Mutation(
        name="a value of PIVOT that has a name is compared with nothing",
        file=CLOCK,
        old=""" | exp.PivotAlias):""",
        new="""):""",
        tests=(TIMES,),
    ),
    Mutation(
        name="a text is lost where a window or a lambda gives it",
        file=CLOCK,
        old="""            return parent.this is node and self.becomes_time(parent)""",
        new="""            return False""",
        tests=(TIMES,),
    ),
    Mutation(
        name="a text is lost where a subquery for one value gives it",
        file=CLOCK,
        old="""(isinstance(query.parent, _COMPARES) or not self.is_word) and""",
        new="""isinstance(query.parent, _COMPARES) and""",
        tests=(TIMES,),
    ),
    Mutation(
        name="a text in a row of VALUES is lost",
        file=CLOCK,
        old="""        return [name.lower() for name in names[at : at + 1]]""",
        new="""        return []""",
        tests=(TIMES,),
    ),
    Mutation(
        name="a text in a row of VALUES is that of the first column",
        file=CLOCK,
        old="""        return [name.lower() for name in names[at : at + 1]]""",
        new="""        return [name.lower() for name in names[:1]]""",
        tests=(TIMES, "tests/query/test_clock_texts.py::test_texts_that_stay_texts_are_not"),
    ),
    Mutation(
        name="a text that a function in FROM gives is lost",
        file=CLOCK,
        old="""isinstance(source, exp.Lateral | exp.Table) and source.this is node:""",
        new="""isinstance(source, exp.Lateral) and source.this is item.parent:""",
        tests=(TIMES,),
    ),
    Mutation(
        name="a text is named as in a subquery whose columns have other names outside",
        file=CLOCK,
        old="""name = renamed[at] if is_known and at < len(renamed) else item.alias_or_name""",
        new="""name = item.alias_or_name""",
        tests=(TIMES,),
    ),
    Mutation(
        name="an interval of hours is taken for a time of day",
        file=CLOCK,
        old="""if not isinstance(parent, exp.Func | exp.Bracket | exp.Dot | exp.PropertyEQ):""",
        new="""if not isinstance(parent, exp.Func | exp.Bracket | exp.Dot | exp.PropertyEQ | exp.Interval):""",
        tests=("tests/query/test_clock_texts.py::test_texts_that_stay_texts_are_not",),
    ),
    Mutation(
        name="a window of which nothing is known is in the order of what is taken from it",
        file=WINDOWS,
        old="""    if node is None:\n        return False""",
        new="""    if node is None:\n        return True""",
        tests=(REFUSED,),
    ),
    Mutation(
        name="a window in the ORDER BY of a set operation keeps an order that is not total",
        file=WINDOWS,
        old="""    if window.node is None or select is None:\n        raise not_total(""",
        new="""    if window.node is None or select is None:\n        return ""\n        raise not_total(""",
        tests=(REFUSED,),
    ),
    Mutation(
        name="orders are completed that belong to others",
        file="backfill_assets/query/ties.py",
        old="""if len(queries) != len(found) and any(map(_is_limited, queries)):""",
        new="""if len(queries) > len(found) and any(map(_is_limited, queries)):""",
        tests=(REFUSED,),
    ),
    Mutation(
        name="parameters of a session are values",
        file="backfill_assets/query/determinism.py",
        old="if not any(all_of(root, exp.Placeholder, exp.Parameter)):",
        new="if not any(all_of(root, exp.Placeholder)):",
        tests=("tests/query/test_rare_texts.py::test_a_parameter_is_refused_as_it_is_written_with_its_place",),
    ),
    Mutation(
        name="a field of a variant is taken for a parameter",
        file="backfill_assets/query/determinism.py",
        old="return at == 0 or tokens[at - 1].end + 1 < tokens[at].start",
        new="return True",
        tests=("tests/query/test_rare_texts.py::test_a_parameter_is_refused_as_it_is_written_with_its_place",),
    ),
    Mutation(
        name="rows that a script makes are accepted",
        file="backfill_assets/query/determinism.py",
        old="for node in all_of(root, exp.QueryTransform):",
        new="for node in ():",
        tests=("tests/query/test_rowwise.py::test_what_is_not_row_wise_is_refused_with_its_code_and_a_hint",),
    ),
    Mutation(
        name="max_by without an order is ordered",
        file="backfill_assets/query/determinism.py",
        old="""    if len(arguments) < 2:\n        return False""",
        new="""    if len(arguments) < 2:\n        return True""",
        tests=("tests/declare/test_refused_places.py::test_a_refusal_says_where",),
    ),
    Mutation(
        name="groups are lost behind the columns that a star leaves out",
        file="backfill_assets/query/group_order.py",
        old=""" and not leaves_out):""",
        new="""):""",
        tests=("tests/query/test_group_order.py::test_a_window_over_groups_is_ordered_by_what_tells_them_apart",),
    ),
    Mutation(
        name="a definition that nothing reads makes its tables those of the query",
        file=RELATIONAL,
        old="""        raise\n    text, tokens""",
        new="""        return _with_end(query, tables, primary_key, records)\n    text, tokens""",
        tests=(REFUSED,),
    ),
    Mutation(
        name="a table that is named where nothing is bound is left as it is",
        file="backfill_assets/query/occurrences.py",
        old="""elif table.args.get("db") or table.name not in defined:""",
        new="""elif table.args.get("db"):""",
        tests=(REFUSED,),
    ),
    Mutation(
        name="clauses of other systems mean nothing",
        file="backfill_assets/query/parsing.py",
        old="""    if present:\n        raise refusal(""",
        new="""    if not present and allowed == ():\n        raise refusal(""",
        tests=(f"{RARE}::test_a_clause_of_another_system_is_refused_by_its_name",),
    ),
    Mutation(
        name="the columns of first rows come from nowhere",
        file="backfill_assets/query/lineage.py",
        old="""        if isinstance(inner, exp.Subquery):\n            return self.given(inner.this)""",
        new="""        if isinstance(inner, exp.Subquery):\n            return []""",
        tests=("tests/query/test_lineage.py::test_a_column_comes_from_the_columns_that_its_expression_takes",),
    ),
    Mutation(
        name="two columns of a key are hidden under one name",
        file="backfill_assets/query/rowwise.py",
        old="""if len(set(hidden)) < len(hidden):""",
        new="""if len(set(hidden)) > len(hidden):""",
        tests=(f"{RARE}::test_columns_of_a_key_that_would_be_hidden_under_one_name_are_refused",),
    ),
    Mutation(
        name="columns that have other names in a query are not read",
        file="backfill_assets/query/query.py",
        old="""    if renames_columns(root):\n        return True""",
        new="""    if renames_columns(root):\n        return False""",
        tests=(f"{COLUMNS}::test_a_star_means_all_columns_in_their_order",),
    ),
    Mutation(
        name="a text that is wrong has rows that are only added",
        file="backfill_assets/query/query.py",
        old="""    except QueryError:\n        return None""",
        new="""    except QueryError:\n        return ()""",
        tests=(f"{COLUMNS}::test_a_text_tells_the_key_of_its_rows_or_none_if_it_is_wrong",),
    ),
    Mutation(
        name="a strategy that does not read a view's upstreams is taken",
        file=DECLARED,
        old="""if strategy != "auto" and (strategy == "source") is not over_kafka:""",
        new="""if strategy == "source" and not over_kafka:""",
        tests=(f"{DECLARATIONS}::test_a_strategy_that_does_not_read_a_views_upstreams_is_refused_with_those_that_do",),
    ),
    Mutation(
        name="a key may name a column twice",
        file="backfill_assets/declare/arguments.py",
        old="""if len(set(columns)) != len(columns):""",
        new="""if len(set(columns)) > len(columns):""",
        tests=(f"{DECLARATIONS}::test_a_wrong_table_is_refused",),
    ),
    Mutation(
        name="records of a source are known by nothing",
        file="backfill_assets/declare/model.py",
        old="""    if isinstance(table, KafkaSource):\n        return True""",
        new="""    if isinstance(table, KafkaSource):\n        return False""",
        tests=(f"{DECLARATIONS}::test_rows_of_a_source_are_known_by_where_their_record_came_from",),
    ),
    Mutation(
        name="tables that a view did not read before are not proved",
        file="backfill_assets/core/proof_scope.py",
        old="""if before.tables.keys() != after.tables.keys():""",
        new="""if before.tables.keys() > after.tables.keys():""",
        tests=("tests/core/test_proof_scope.py::test_everything_is_proved_if_a_view_reads_other_tables_than_before",),
    ),
)
