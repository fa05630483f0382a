"""The Spark functions that a row-wise query cannot use, by name and reason.

The names are those of Spark 4.2; a test against Spark's own registry fails if a newer Spark has more.
"""

from types import MappingProxyType
from typing import Final

__all__ = [
    "CLOCK_FUNCTIONS",
    "CLOCK_WORDS",
    "CURRENT_WORDS",
    "REFUSED_FUNCTIONS",
    "TABLE_FUNCTIONS",
    "ZERO_ARGUMENT_CLOCKS",
]

_AGGREGATES: Final = """
any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine
array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list
collect_set corr count count_if count_min_sketch covar_pop covar_samp cube every first first_value grouping grouping_id
histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value listagg max max_by mean
measure median min min_by mode percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy
regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy rollup schema_of_variant_agg skewness some std
stddev stddev_pop stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum
tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer
tuple_union_agg_double tuple_union_agg_integer var_pop var_samp variance
"""
_WINDOW_FUNCTIONS: Final = "cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number"
# window() too: a sliding one gives a record several rows.
_GENERATORS: Final = """
collations explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer python_worker_logs range
session_window sql_keywords stack variant_explode variant_explode_outer window
"""
# Functions of random numbers, the session, the clock, files or the order of rows: a repeated epoch could return other
# rows. aes_encrypt generates a random initialization vector if none is given, except in mode ECB.
_NOT_DETERMINISTIC: Final = """
aes_encrypt curdate current_catalog current_database current_date current_path current_schema current_time
current_timestamp current_timezone current_user input_file_block_length input_file_block_start input_file_name
java_method localtimestamp monotonically_increasing_id now rand randn random randstr reflect session_user shuffle
spark_partition_id try_reflect uniform user uuid version
"""
# IDENTIFIER('name') hides which column or function is meant.
_UNSUPPORTED: Final = "identifier"

REFUSED_FUNCTIONS: Final = MappingProxyType({
    name: reason
    for reason, names in (
        ("AGGREGATE", _AGGREGATES),
        ("WINDOW", _WINDOW_FUNCTIONS),
        ("GENERATOR", _GENERATORS),
        ("NOT_DETERMINISTIC", _NOT_DETERMINISTIC),
        ("UNSUPPORTED", _UNSUPPORTED),
    )
    for name in names.split()
})
"""Function name in lower case -> the reason code with which it is refused."""

TABLE_FUNCTIONS: Final = frozenset({
    "explode",
    "explode_outer",
    "inline",
    "inline_outer",
    "json_tuple",
    "posexplode",
    "posexplode_outer",
    "range",
    "stack",
    "variant_explode",
    "variant_explode_outer",
})
"""Functions that may be called in FROM: they return rows made from their arguments alone. Others read tables
(`table_changes`) or run code."""

ZERO_ARGUMENT_CLOCKS: Final = frozenset({"unix_timestamp", "to_unix_timestamp"})
"""Functions that read the clock when called without arguments."""

CURRENT_WORDS: Final = frozenset({
    "current_date",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtimestamp",
    "session_user",
    "user",
})
"""Words that call functions without parentheses, unless a column has that name."""

CLOCK_FUNCTIONS: Final = MappingProxyType({
    "curdate": "DATE",
    "current_date": "DATE",
    "current_timestamp": "TIMESTAMP_LTZ",
    "localtimestamp": "TIMESTAMP_NTZ",
    "now": "TIMESTAMP_LTZ",
    "unix_timestamp": "SECONDS",
})
"""Functions that return the clock's time when called without arguments -> as what they return it."""

CLOCK_WORDS: Final = frozenset({"current_date", "current_timestamp"})
"""Those of them that are called without parentheses, too, unless a column has that name."""
