"""An emulator of Azure's store, Microsoft's Azurite (`npm install azurite`), with one account and one container.

It is a child of `python -m tests.support.azurite`, which ends it when its own standard input is closed, and so with the
process that asked for it in all cases.
"""

import base64
import contextlib
import hashlib
import hmac
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from filelock import FileLock

from backfill_assets.adapters.runtime.cache import cache_folder
from backfill_assets.adapters.runtime.tcp_ports import free_port

__all__ = ["Account", "azurite"]

VERSION = "3.35.0"
CONTAINER = "lake"
LIMIT = 60.0
_API = "2023-11-03"


@dataclass(frozen=True, kw_only=True)
class Account:
    """An account of a running emulator. Its name is new each time, so that no Spark takes it for an earlier one."""

    port: int
    name: str = field(default_factory=lambda: f"a{uuid.uuid4().hex[:12]}")
    key: str = field(default_factory=lambda: base64.b64encode(secrets.token_bytes(32)).decode(), repr=False)

    @property
    def endpoint(self) -> str:
        """The address of the account."""
        return f"http://127.0.0.1:{self.port}/{self.name}"

    @property
    def host(self) -> str:
        """The account's host, as addresses of tables name it."""
        return f"{self.name}.dfs.core.windows.net"

    def uri(self, folder: str) -> str:
        """The address of a folder in the account."""
        return f"abfs://{CONTAINER}@{self.host}/{folder}"

    def make_container(self) -> bool:
        """Make the container; returns whether it is there."""
        with contextlib.suppress(URLError, ConnectionError):
            urlopen(self._signed("PUT", CONTAINER, {"restype": "container"}), timeout=LIMIT).close()
            return True
        return False

    def _signed(self, method: str, path: str, query: dict[str, str]) -> Request:
        """A request with the account's signature (https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key)."""
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _API}
        named = [f"{name}:{value}" for name, value in sorted(headers.items())]
        asked = [f"{name}:{value}" for name, value in sorted(query.items())]
        text = "\n".join([method, *[""] * 11, *named, f"/{self.name}/{self.name}/{path}", *asked])
        signature = base64.b64encode(hmac.digest(base64.b64decode(self.key), text.encode(), hashlib.sha256)).decode()
        arguments = "&".join(f"{name}={value}" for name, value in query.items())
        return Request(
            f"{self.endpoint}/{path}?{arguments}",
            method=method,
            headers={**headers, "Authorization": f"SharedKey {self.name}:{signature}", "Content-Type": ""},
        )


@contextmanager
def azurite() -> Iterator[Account]:
    """A running emulator with an empty container, for a while."""
    account = Account(port=free_port())
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(_program()), str(account.port)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "AZURITE_ACCOUNTS": f"{account.name}:{account.key}"},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + LIMIT
        while not account.make_container():
            assert time.monotonic() < end, "the emulator did not start"
            assert process.poll() is None, "the emulator has ended"
            time.sleep(0.1)
        yield account
    finally:
        process.communicate()


def _program() -> Path:
    """The emulator's script, which is installed if it is not there."""
    npm = shutil.which("npm")
    assert npm is not None, (
        "Azurite needs Node.js 20 or newer: install it (packages nodejs and npm), and put it on PATH"
    )
    folder = cache_folder("azurite") / VERSION
    program = folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    with FileLock(folder.with_suffix(".lock")):
        if not program.exists():
            install = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"azurite@{VERSION}"]
            subprocess.run(install, check=True, stdin=subprocess.DEVNULL)
    return program


def _serve(program: str, port: str) -> None:
    """Run the emulator until standard input is closed."""
    with tempfile.TemporaryDirectory(prefix="azurite-") as data:
        place = ["--location", data, "--blobHost", "127.0.0.1", "--blobPort", port]
        options = ["--silent", "--skipApiVersionCheck", "--disableTelemetry"]
        server = subprocess.Popen(
            ["node", program, *place, *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        sys.stdin.read()
        server.terminate()
        server.wait(timeout=LIMIT)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
