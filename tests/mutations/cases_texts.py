"""Faults in reading a query's text: hints, and the columns that it may refer to."""

from tests.mutations.mutation import Mutation

__all__ = ["TEXTS"]

ORDER = "tests/query/test_group_order.py"
HINTS = "tests/query/test_hints.py"
COLUMNS = "tests/query/test_query_columns.py"
NATURAL = "tests/e2e/tables/test_columns_that_come.py::test_a_natural_join_keeps_the_columns_by_which_it_joins"

RECORDS_SQL = "backfill_assets/adapters/sql/kafka_records.py"
GOOD_OR_BAD = "tests/e2e/kafka/test_records.py"

TEXTS: tuple[Mutation, ...] = (
    Mutation(
        name="rows are taken for one group because a window looks past nulls",
        file="backfill_assets/query/partition.py",
        old="    while called is window or isinstance(called, _AROUND_CALL):",
        new="    while called is window:",
        tests=(ORDER,),
    ),
    Mutation(
        name="a hint for whole tables is left in a query that is computed over changes",
        file="backfill_assets/query/parsing.py",
        old="[token for token in tokens if token.token_type != TokenType.HINT]",
        new="list(tokens)",
        tests=(HINTS,),
    ),
    Mutation(
        name="LIMIT ALL is a limit",
        file="backfill_assets/query/parsing.py",
        old="    return _that_count(tokens)",
        new="    return tokens",
        tests=(HINTS,),
    ),
    Mutation(
        name="a column called offset ends the order",
        file="backfill_assets/query/parsing.py",
        old="        if token.token_type in _BEFORE_EXPRESSIONS and following.token_type in _LIMITS:",
        new="        if not token:",
        tests=("tests/query/test_orders.py",),
    ),
    Mutation(
        name="a comment goes on in another line only for Spark",
        file="backfill_assets/query/parsing.py",
        old='        if any(comment.endswith("\\\\") for comment in token.comments):',
        new="        if not token:",
        tests=("tests/declare/test_refused_places.py",),
    ),
    Mutation(
        name="a parameter of a function is no time",
        file="backfill_assets/query/clock_texts.py",
        old="            return _is_parameter(inner)",
        new="            return False",
        tests=("tests/query/test_clock_texts.py",),
    ),
    Mutation(
        name="columns by which a natural join compares are not read where the query does not name them",
        file="backfill_assets/query/query.py",
        old="    return stars or natural or any(",
        new="    return stars or any(",
        tests=(COLUMNS, NATURAL),
    ),
    Mutation(
        name="columns by which a pivot groups are not read where the query does not name them",
        file="backfill_assets/query/query.py",
        old="    return stars or natural or any(",
        new="    return stars or natural and any(",
        tests=(COLUMNS,),
    ),
    Mutation(
        name="a time of day is the same time on every day",
        file="backfill_assets/query/clock_texts.py",
        old="    return (is_word or _TIME_OF_DAY.match(text) is not None) and",
        new="    return is_word and",
        tests=("tests/query/test_relational.py",),
    ),
    Mutation(
        name="microseconds are read as seconds, and wrapped around",
        file=RECORDS_SQL,
        old=" OR {text} RLIKE {literal(f'^{_WRAPS}$')}\"",
        new='"',
        tests=(GOOD_OR_BAD,),
    ),
    Mutation(
        name="a name with an escape hides a number that is wrapped around",
        file=RECORDS_SQL,
        old=" OR (contains({_TEXT}, {escape}) AND {_TEXT} RLIKE {of_any}))",
        new=" OR contains({_TEXT}, {escape}) AND FALSE AND {_TEXT} RLIKE {of_any})",
        tests=(GOOD_OR_BAD,),
    ),
    Mutation(
        name="text after a date is passed over",
        file=RECORDS_SQL,
        old='        found += f" OR NOT {text} RLIKE {literal(_IS_DATE)}"\n',
        new="        pass\n",
        tests=(GOOD_OR_BAD,),
    ),
    Mutation(
        name="a byte beyond 127 becomes negative",
        file=RECORDS_SQL,
        old="    if column.type in _BYTES:\n        doubts",
        new="    if column.type == _BYTES:\n        doubts",
        tests=(GOOD_OR_BAD,),
    ),
    Mutation(
        name="a map may have a key twice",
        file=RECORDS_SQL,
        old='            found += f" OR {_has_key_twice(value)}"\n',
        new="            pass\n",
        tests=(GOOD_OR_BAD,),
    ),
    Mutation(
        name="a number that is too large becomes a text",
        file=RECORDS_SQL,
        old='        doubts.append(f"{value} IN ({_INFINITE_TEXTS})")\n',
        new="        pass\n",
        tests=(GOOD_OR_BAD,),
    ),
    Mutation(
        name="a number in a string is held to be one of thousands of digits",
        file=RECORDS_SQL,
        old="AND {_WITHOUT_STRINGS} RLIKE",
        new="AND {_TEXT} RLIKE",
        tests=(GOOD_OR_BAD,),
    ),
    Mutation(
        name="the name of a collation is a column",
        file="backfill_assets/query/parsing.py",
        old='            each.set("collate", exp.var(each.args["collate"].name))\n',
        new="            pass\n",
        tests=("tests/query/test_parsing.py",),
    ),
    Mutation(
        name="GROUP BY of nothing is read",
        file="backfill_assets/query/parsing.py",
        old="    if any(not any(each.args.values()) for each in all_of(root, exp.Group)):",
        new="    if False:",
        tests=("tests/query/test_parsing.py",),
    ),
    Mutation(
        name="a number that no DECIMAL holds is an error of Spark's own",
        file="backfill_assets/adapters/sql/apply_rowwise.py",
        old="(AnalysisException, ArithmeticException)\n",
        new="(AnalysisException,)\n",
        tests=(
            "tests/e2e/kafka/test_bad_input.py::test_a_query_that_spark_or_delta_cannot_take_is_refused_before_anything_is_written",
        ),
    ),
)
