"""Creates the empty table of an output: its first entry, with the features and properties that outputs have."""

import time
import uuid

from backfill_assets.adapters.delta.commits import ENGINE, log_text
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.bounds import BOUNDED_COLUMNS, boundable, naming

__all__ = ["STATUS_PROPERTY", "create_table"]

STATUS_PROPERTY = "backfill.status"

_PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    # Positions are in commit metadata, and views read the log: only `expire_log` may expire it, no other commit.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.checkpointInterval": "10",
    STATUS_PROPERTY: "creating",
}
_PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    # A later life may have a column of this type, and the commit that adds the column cannot change the protocol.
    "readerFeatures": ["timestampNtz"],
    "writerFeatures": ["appendOnly", "changeDataFeed", "invariants", "timestampNtz"],
}


def create_table(location: TableLocation, schema: str) -> None:
    """Create an empty output table, unless a table exists already.

    Its first log entry is written directly: delta-rs cannot create a table with the features and properties that are
    needed here, and Spark takes a second, and uses the defaults of whoever configured it.

    Args:
        location: Where to create it.
        schema: The Delta schema, as JSON; all columns are nullable.
    """
    now = int(time.time() * 1000)
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [],
        "configuration": {**_PROPERTIES, BOUNDED_COLUMNS: naming(boundable(schema))},
        "createdTime": now,
    }
    created = {
        "timestamp": now,
        "operation": "CREATE TABLE",
        "operationParameters": {},
        "engineInfo": ENGINE,
    }
    actions = [{"commitInfo": created}, {"protocol": _PROTOCOL}, {"metaData": metadata}]
    location.objects().put_unless_there(f"_delta_log/{0:020d}.json", "\n".join(map(log_text, actions)).encode())
