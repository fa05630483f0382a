"""SQL text over DataFrames."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["sql_over"]


def sql_over(session: "SparkSession", text: str, /, **rows: "DataFrame") -> "DataFrame":
    """What SQL text gives that has `{name}` for each of some rows. Errors: those of Spark's analysis.

    PySpark makes a temporary view of each DataFrame, and drops it again. With a view Spark also forgets what is cached of the
    same plan, whatever columns the view selects of it. A condition makes it another plan, and the optimizer takes it away.
    """
    return session.sql(text, None, **{name: each.where("TRUE") for name, each in rows.items()})
