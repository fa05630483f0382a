"""The names of the columns that a source's table has besides those of its schema, defined only here."""

from typing import Final

__all__ = ["ERROR", "OFFSET", "PARTITION", "RECORD_KEY", "UNSEEN", "VALUE"]

PARTITION: Final = "_partition"
OFFSET: Final = "_offset"
RECORD_KEY: Final = (PARTITION, OFFSET)
"""Where a record came from: the key of a source's table, and of views over topics."""

ERROR: Final = "_error"
"""Why a record is bad; null in good records."""
VALUE: Final = "_value"
"""The value of a bad record, unchanged."""
UNSEEN: Final = frozenset({ERROR, VALUE})
"""The columns for bad records: null in all rows of a view, so `*` does not include them."""
