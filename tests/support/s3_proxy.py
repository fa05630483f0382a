"""A proxy before an S3 server: it counts requests, takes its time, and fails some of them as stores do.

It is a process of its own, `python -m tests.support.s3_proxy SERVER`, as delta-rs waits for answers without letting other
threads of its process run. What it is to do, and has seen, goes over its own address.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

__all__ = ["Request", "S3Proxy", "before"]

Mode = Literal["reply lost", "cut", "busy", "denied", "overwritten"]
"""The request is done and its reply lost, or half of it; it is refused with 503, or 403; a refusal to overwrite is reported
as success."""

_CONTROL = "/-proxy-"
_HOP = {"connection", "transfer-encoding", "content-length"}


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request as it came, the server's answer, and when that was given, in seconds since 1970."""

    method: str
    address: str
    status: int
    at: float


@dataclass(frozen=True, kw_only=True)
class S3Proxy:
    """A running proxy."""

    endpoint: str

    def fail(self, method: str, holds: str, mode: Mode, *, times: int = 1) -> None:
        """What befalls the next requests of a method whose address holds a text."""
        self._told({"fault": {"method": method, "holds": holds, "mode": mode, "times": times}})

    def slow_down(self, seconds: float) -> None:
        """How long each request takes longer from now on."""
        self._told({"lag": seconds})

    def requests(self) -> list[Request]:
        """The requests that came since this was asked before."""
        return [Request(**each) for each in self._told({})]

    def _told(self, order: dict[str, Any]) -> Sequence[dict[str, Any]]:
        connection = HTTPConnection(urlsplit(self.endpoint).netloc, timeout=30)
        connection.request("POST", _CONTROL, json.dumps(order))
        seen: list[dict[str, Any]] = json.loads(connection.getresponse().read())
        connection.close()
        return seen


@contextmanager
def before(server: str) -> Iterator[S3Proxy]:
    """A proxy before the server at this address, for a while."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.s3_proxy", server],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield S3Proxy(endpoint=process.stdout.readline().strip())
    finally:
        process.communicate()


@dataclass
class _State:
    """What a proxy is to do, and what it has seen."""

    lag: float = 0.0
    faults: list[dict[str, Any]] = field(default_factory=list)
    seen: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, order: dict[str, Any]) -> list[dict[str, Any]]:
        """Do as told; without an order, tell what was seen."""
        with self.lock:
            self.lag = order.get("lag", self.lag)
            self.faults += [order["fault"]] if "fault" in order else []
            seen = [] if order else self.seen
            self.seen = self.seen if order else []
            return seen

    def fault(self, method: str, address: str) -> str | None:
        """What befalls this request."""
        with self.lock:
            for each in self.faults:
                if each["method"] == method and each["holds"] in address and each["times"]:
                    each["times"] -= 1
                    return str(each["mode"])
        return None

    def saw(self, **request: object) -> None:
        """Remember a request."""
        with self.lock:
            self.seen.append(request)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_address: str
    state: _State

    def log_message(self, *args: object) -> None:
        """Nothing."""

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == _CONTROL:
            self._answer(200, {}, json.dumps(self.state.take(json.loads(body))).encode())
            return
        time.sleep(self.state.lag)
        fault = self.state.fault(self.command, self.path)
        refused = {"busy": 503, "denied": 403}.get(fault or "")
        status, headers, content = (refused, {}, b"") if refused else self._asked(body)
        self.state.saw(method=self.command, address=self.path, status=status, at=time.time())
        if fault == "reply lost":
            self.close_connection = True
            return
        if fault == "overwritten" and status == 412:
            status, headers, content = 200, {"ETag": '"0"'}, b""
        if fault == "cut":
            headers, content = {**headers, "Content-Length": str(len(content))}, content[: len(content) // 2]
            self.close_connection = True
        self._answer(status, headers, content)

    def _asked(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection(self.server_address)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() != "expect":
                connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        content = response.read()
        headers = {name: value for name, value in response.getheaders() if name.lower() not in _HOP}
        headers["Content-Length"] = response.headers.get("Content-Length") or str(len(content))
        connection.close()
        return response.status, headers, content

    def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on  # noqa: N815 (names of the standard library)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *given: object) -> None:
        """Clients may go away in the middle of an answer."""


def _serve(server: str) -> None:
    _Handler.server_address, _Handler.state = urlsplit(server).netloc, _State()
    listening = _Server(("127.0.0.1", 0), _Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    sys.stdout.write(f"http://127.0.0.1:{listening.server_port}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _serve(sys.argv[1])
