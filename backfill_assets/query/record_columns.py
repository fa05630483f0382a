"""The names of the columns that a source's table adds to those of its schema, spelled here and nowhere else."""

from typing import Final

__all__ = ["ERROR", "OFFSET", "PARTITION", "RECORD_KEY", "UNSEEN", "VALUE"]

PARTITION: Final = "_partition"
OFFSET: Final = "_offset"
RECORD_KEY: Final = (PARTITION, OFFSET)
"""Where a record came from: the key of a source's table, and of views over topics."""

ERROR: Final = "_error"
"""What is wrong with a record; null in good ones."""
VALUE: Final = "_value"
"""The value of a bad record, as it came."""
UNSEEN: Final = frozenset({ERROR, VALUE})
"""The columns of bad records: null in all rows that a view sees, so that `*` leaves them out."""
