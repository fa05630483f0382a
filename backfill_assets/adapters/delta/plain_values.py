"""Values of Arrow columns as Python has them."""

from typing import Any

import pyarrow as pa

__all__ = ["plain_values"]


def plain_values(column: pa.Array | pa.ChunkedArray) -> list[Any] | None:
    """The values of a column; None if Python cannot represent one of them, such as a year beyond 9999 or a text that is not
    UTF-8.

    Example:
        >>> import pyarrow as pa
        >>> plain_values(pa.array([1, None])), plain_values(pa.array([2**60], pa.timestamp("us")))
        ([1, None], None)
    """
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return None
