"""A store that answers every request with the same status, as a process of its own: delta-rs waits without letting other
threads of its process run. `python -m tests.support.refusing_store STATUS CODE`; it counts requests, and repeats the token
that came with one, as S3 does."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["Refusing", "refusing"]

_COUNT = "/-count-"


@dataclass(frozen=True, kw_only=True)
class Refusing:
    """A running store."""

    endpoint: str

    def requests(self) -> int:
        """The number of requests that came."""
        connection = HTTPConnection(urlsplit(self.endpoint).netloc, timeout=30)
        connection.request("GET", _COUNT)
        found = int(connection.getresponse().read())
        connection.close()
        return found


@contextmanager
def refusing(status: int, code: str) -> Iterator[Refusing]:
    """A store that answers with a status and an error code of S3, for a while."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.refusing_store", str(status), code],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield Refusing(endpoint=process.stdout.readline().strip())
    finally:
        process.communicate()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    status: int
    code: str
    count = 0

    def log_message(self, *args: object) -> None:
        """Nothing."""

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        counts = self.path == _COUNT
        _Handler.count += not counts
        status = 200 if counts else self.status
        token = self.headers.get("x-amz-security-token", "")
        refusal = f"<Error><Code>{self.code}</Code><Token-0>{token}</Token-0></Error>"
        content = str(self.count) if counts else refusal
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content.encode())

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _answer  # noqa: N815 (names of the standard library)


def _serve(status: int, code: str) -> None:
    _Handler.status, _Handler.code = status, code
    listening = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    sys.stdout.write(f"http://127.0.0.1:{listening.server_port}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2])
