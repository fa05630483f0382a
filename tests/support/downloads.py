"""Fetches the jars that tests alone need, so that none waits for them: `python -m tests.support.downloads`."""

from backfill_assets.adapters.runtime.jars import connector_jars, s3_server_jars

__all__: list[str] = []

if __name__ == "__main__":
    s3_server_jars()
    connector_jars("s3")
