"""What commands that only read say of a store on S3 that has no such bucket, knows other keys, or is dead."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from backfill_assets.app.dry_run import plan
from backfill_assets.app.status import status
from backfill_assets.app.table_checks import run_check
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.errors import EnvironmentSetupError
from tests.support.project import Project
from tests.support.runner import declared

pytestmark = pytest.mark.e2e

READ_ONLY: dict[str, Callable[[Project], object]] = {
    "status": lambda project: status(project.workspace(), "large"),
    "plan": lambda project: plan(project.workspace(), "large", Limits()),
    "verify": lambda project: run_check(project.workspace(), "large", "exactly_once", full=True),
}
DEAD = {"endpoint": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("warehouse", "storage", "named"),
    [
        ("s3://no-such-bucket/w", {}, "NoSuchBucket"),
        ("s3://lake/w", {"secret_access_key": "wrong-secret"}, "SignatureDoesNotMatch"),
        ("s3://lake/w", {"access_key_id": "nobody"}, "InvalidAccessKeyId|AccessDenied|Forbidden"),
        pytest.param("s3://lake/w", DEAD, "error sending request|HTTP error", marks=pytest.mark.full),
    ],
    ids=["bucket", "secret", "id", "dead"],
)
def test_a_store_that_cannot_be_read_is_told_with_its_reason_by_all(
    on_s3: Project, warehouse: str, storage: dict[str, str], named: str
) -> None:
    project = replace(on_s3, warehouse=warehouse, storage={**on_s3.storage, **storage})
    project.declare(*declared("no-such-topic"))
    secret = project.workspace().store.place.storage_options["secret_access_key"]
    for command in READ_ONLY.values():
        with pytest.raises(
            EnvironmentSetupError, match=f"the warehouse at {warehouse} cannot be read: .*({named})"
        ) as found:
            command(project)
        assert secret not in str(found.value)
        assert found.value.hint


def test_an_empty_warehouse_is_no_error_and_reading_writes_nothing(on_s3: Project) -> None:
    on_s3.declare(*declared("no-such-topic"))
    assert status(on_s3.workspace(), "large").state == "not created"
    assert on_s3.workspace().store.place.objects("").names("") == []
