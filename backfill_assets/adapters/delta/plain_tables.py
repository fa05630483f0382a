"""Whether the files of a loaded version hold just the rows that a reader sees."""

from deltalake import DeltaTable

from backfill_assets.adapters.delta.log_replay import is_plain

__all__ = ["has_vectors", "holds_rows_as_they_are"]


def holds_rows_as_they_are(table: DeltaTable) -> bool:
    """Whether the files of a version contain all columns, and exactly the rows that a reader sees."""
    protocol = table.protocol()
    features = protocol.reader_features or ()
    return not has_vectors(table) and is_plain(
        protocol.min_reader_version, features, table.metadata().partition_columns
    )


def has_vectors(table: DeltaTable) -> bool:
    """Whether rows of a version may be deleted without leaving their file."""
    return "deletionVectors" in (table.protocol().reader_features or ())
