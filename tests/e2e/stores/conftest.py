"""A project whose warehouse is in an object store."""

import uuid
from pathlib import Path

import pytest

from tests.support.project import Project
from tests.support.servers import s3_store

STORAGE = {"provider": "s3", "access_key_id": "env:S3_TEST_KEY", "secret_access_key": "env:S3_TEST_SECRET"}


@pytest.fixture(scope="session")
def s3() -> dict[str, str]:
    """The variables of a real S3 server."""
    return s3_store()


@pytest.fixture
def on_s3(s3: dict[str, str], broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project on the broker with its warehouse on S3; the names of its keys are declared, not the keys."""
    monkeypatch.setenv("S3_TEST_KEY", s3["AWS_ACCESS_KEY_ID"])
    monkeypatch.setenv("S3_TEST_SECRET", s3["AWS_SECRET_ACCESS_KEY"])
    storage = {**STORAGE, "endpoint": s3["AWS_ENDPOINT_URL"], "region": s3["AWS_REGION"]}
    return Project(root=tmp_path, servers=broker, warehouse=f"s3a://lake/{uuid.uuid4().hex}", storage=storage)
