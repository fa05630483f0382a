"""Runs a row-wise query on Spark DataFrames. Works on Spark Connect, too: only SQL text and DataFrames, nothing of the
JVM."""

import re
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException, ArithmeticException
from pyspark.errors.exceptions.base import QueryContextType
from pyspark.sql import functions as F  # noqa: N812 # the name that Spark's users know

from backfill_assets.adapters.sql.floats import one_form
from backfill_assets.adapters.sql.sql_over import sql_over
from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import quoted
from backfill_assets.query.refusals import refused_by_spark
from backfill_assets.query.rowwise import Branch, RowwiseQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["REFUSALS", "apply_rowwise", "translated"]

REFUSALS: Final = (AnalysisException, ArithmeticException)
"""How Spark refuses a query before it computes anything; the second is for a number that no DECIMAL holds."""

_PLACE: Final = re.compile(r"; line \d+ pos \d+;?$")
_LONGEST: Final = 100
"""How many characters of a query's text are named in an error."""


def apply_rowwise(query: RowwiseQuery, inputs: "Mapping[str, DataFrame]") -> "DataFrame":
    """The view's rows, including hidden columns, for the given rows of its upstreams (bronze columns, by name).

    Values that are equal as keys have one form in the key's columns: zero without a sign, and NaN with the same bits.
    Parts of UNION ALL whose upstream is not in `inputs` give no rows, but still count for the types: as in SQL, columns
    are matched by position and get the widest type, whichever upstreams have new records.

    Errors: `ValueError` if `inputs` has no upstream of the query; `QueryError` with reason `SPARK` if Spark refuses the
    query, for example because types do not match.
    """
    branches = [branch for branch in query.branches if branch.upstream in inputs or branch.columns]
    bound = [inputs.get(branch.upstream) for branch in branches]
    spark = next((rows.sparkSession for rows in bound if rows is not None), None)
    if spark is None:
        raise ValueError(f"none of the upstreams {', '.join(query.upstreams)} is among the inputs")
    try:
        rows = reduce(_union, (_branch_rows(spark, *each) for each in zip(branches, bound, strict=True)))
        # Connect analyzes late: requesting the types makes it refuse here and not at the first write.
        types = {field.name: field.dataType for field in rows.schema.fields}
    except REFUSALS as error:
        raise translated(error) from error
    forms = {name: one_form(quoted(name), types[name]) for name in (*query.key_columns, *query.primary_key)}
    odd = {name: F.expr(form) for name, form in forms.items() if form != quoted(name)}
    return rows.withColumns(odd) if odd else rows


def _branch_rows(spark: "SparkSession", branch: Branch, rows: "DataFrame | None") -> "DataFrame":
    # Spark replaces {name} in the text, so braces of the user's own (in a regular expression) are doubled.
    text = branch.sql.replace("{", "{{").replace("}", "}}")
    if rows is None:
        return spark.sql(f"WITH `{branch.upstream}` AS ({_nothing(branch)}) {branch.sql}")
    return sql_over(spark, f"WITH `{branch.upstream}` AS (SELECT * FROM {{upstream_rows}}) {text}", upstream_rows=rows)


def _nothing(branch: Branch) -> str:
    """A table without rows that Spark's optimizer knows to be empty, so that it needs no task."""
    columns = ", ".join(f"CAST(NULL AS {column.type}) AS `{column.name}`" for column in branch.columns)
    return f"SELECT {columns} WHERE FALSE"


def _union(left: "DataFrame", right: "DataFrame") -> "DataFrame":
    return left.union(right)


def translated(error: AnalysisException | ArithmeticException) -> QueryError:
    """Spark's own refusal of a query as an error of this package."""
    said = (error.getMessage() or str(error)).strip().splitlines()[0]
    named = next((each for each in error.getQueryContext() if each.contextType() == QueryContextType.SQL), None)
    fragment = "" if named is None else " ".join(named.fragment().split())
    # The place that it says is one in a text that holds more than the user's.
    return refused_by_spark(_PLACE.sub("", said), fragment if len(fragment) <= _LONGEST else "")
