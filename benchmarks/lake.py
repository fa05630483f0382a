"""An object store on this machine of which each request takes its time, and the bucket that benchmarks use."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from backfill_assets.adapters.local.servers import s3_variables, up
from tests.support.s3_proxy import S3Proxy, before

__all__ = ["Lake", "lake"]


@dataclass(frozen=True, kw_only=True)
class Lake:
    """A folder in a store, behind a proxy that counts requests and slows them down; `storage` as a project declares it."""

    proxy: S3Proxy
    place: str
    storage: Mapping[str, str]


@contextmanager
def lake(root: Path) -> Iterator[Lake]:
    """A folder of its own in the store that runs for a project; the store is started if it is not there.

    Spark keeps the address at which it first reached a bucket, so a Spark must not outlive its lake.
    """
    server = up(root, kafka=False, spark=False, s3=True).s3_endpoint
    assert server is not None
    keys = s3_variables(root)
    with before(server) as proxy:
        storage = {
            "provider": "s3",
            "endpoint": proxy.endpoint,
            "region": "us-east-1",
            "access_key_id": keys["AWS_ACCESS_KEY_ID"],
            "secret_access_key": keys["AWS_SECRET_ACCESS_KEY"],
        }
        yield Lake(proxy=proxy, place=f"s3a://lake/{uuid.uuid4().hex}", storage=storage)
