"""What Spark may have read and is gone is told from what it could not compute."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.compute.table_compute import TableCompute
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.progress.reads import ChangesRead, SpoolRead
from backfill_assets.errors import VersionsLostError
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.rowwise import RowwiseQuery

OF: dict[str, Any] = {"source": "t", "table_id": "id", "first": 1, "last": 1, "rows": 1}
CHANGES, SPOOL = ChangesRead(**OF), SpoolRead(**OF, segments=(1,))


@pytest.mark.parametrize("read", [CHANGES, SPOOL], ids=lambda read: str(read.kind))
@pytest.mark.parametrize("kind", [AggregateQuery, RowwiseQuery])
def test_groups_may_have_read_all_rows_again_and_rows_only_what_changed(
    tmp_path: Path, read: ChangesRead | SpoolRead, kind: type
) -> None:
    uri = str(tmp_path)
    given: Any = None
    for value in range(2):
        write_deltalake(
            uri, pa.table({"id": [value]}), mode="append", configuration={"delta.enableChangeDataFeed": "true"}
        )
    (before,) = DeltaTable(uri, version=0).file_uris()
    Path(before).unlink()
    upstreams = {"t": DeltaUpstream("t", TableLocation(uri=uri))}
    query: Any = object.__new__(kind)
    compute = TableCompute(runner=given, output=given, upstreams=upstreams, query=lambda _plan: query)
    plan: Any = SimpleNamespace(consumed=[read])
    if kind is RowwiseQuery:
        compute._check_there(plan)
    else:
        with pytest.raises(VersionsLostError, match="version 1 can no longer be read"):
            compute._check_there(plan)
