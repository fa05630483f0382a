"""An emulator of Google's store, `fake-gcs-server` (Go), and before it what it lacks: the XML API by which delta-rs and
obstore ask. Each request of that API becomes one of the JSON API, with its conditions; all others are passed on as they are.

Both are children of `python -m tests.support.fake_gcs`, which ends with its standard input, and so with the process that
asked for it in all cases.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from email.utils import format_datetime
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit
from xml.sax.saxutils import escape

from filelock import FileLock

from backfill_assets.adapters.runtime.cache import cache_folder
from backfill_assets.adapters.runtime.tcp_ports import accepts, free_port

__all__ = ["BUCKET", "fake_gcs"]

VERSION = "v1.56.1"
BUCKET = "lake"
LIMIT = 60.0
_JSON = ("/storage/", "/upload/", "/download/", "/batch", "/b/")
_CONDITION = "x-goog-if-generation-match"


@contextmanager
def fake_gcs() -> Iterator[str]:
    """The address of a running emulator with an empty bucket, for a while."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(_program())],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate()


def _program() -> Path:
    """The emulator, which is installed if it is not there."""
    go = shutil.which("go")
    assert go is not None, "fake-gcs-server needs Go: install it, and put it on PATH"
    folder = cache_folder("fake-gcs-server") / VERSION
    program = folder / "fake-gcs-server"
    with FileLock(folder.with_suffix(".lock")):
        if not program.exists():
            install = [go, "install", f"github.com/fsouza/fake-gcs-server@{VERSION}"]
            subprocess.run(install, check=True, stdin=subprocess.DEVNULL, env={**os.environ, "GOBIN": str(folder)})
    return program


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    behind: int

    def log_message(self, *args: object) -> None:
        """Nothing."""

    def _do(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith(_JSON):
            headers = {name: value for name, value in self.headers.items() if name.lower() != "accept-encoding"}
            answer, content = self._asked(self.command, self.path, body, headers)
            kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP}
            self._answer(answer.status, kept, content)
            return
        parts = urlsplit(self.path)
        bucket, _, name = parts.path.lstrip("/").partition("/")
        query = {each: values[0] for each, values in parse_qs(parts.query).items()}
        if not name:
            self._answer(200, {"Content-Type": "application/xml"}, self._listed(bucket, query))
            return
        {"PUT": self._put, "GET": self._get, "HEAD": self._get, "DELETE": self._delete}[self.command](
            bucket, unquote(name), body
        )

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = _do  # noqa: N815  (names of the library)

    def _put(self, bucket: str, name: str, body: bytes) -> None:
        source = self.headers.get("x-goog-copy-source")
        condition = {"ifGenerationMatch": self.headers[_CONDITION]} if _CONDITION in self.headers else {}
        if source is None:
            query = urlencode({"uploadType": "media", "name": name, **condition})
            address = f"/upload/storage/v1/b/{bucket}/o?{query}"
        else:
            there, _, path = unquote(source).lstrip("/").partition("/")
            to = f"/b/{bucket}/o/{quote(name, safe='')}?{urlencode(condition)}"
            address = f"/storage/v1/b/{there}/o/{quote(path, safe='')}/rewriteTo{to}"
        answer, content = self._asked("POST", address, body, {"Content-Type": "application/octet-stream"})
        made = json.loads(content) if answer.status == 200 else {}
        self._answer(answer.status, _described(made.get("resource", made)), b"" if answer.status == 200 else content)

    def _get(self, bucket: str, name: str, _body: bytes) -> None:
        address = f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}"
        answer, content = self._asked("GET", address, b"", {})
        if answer.status != 200:
            self._answer(answer.status, {}, content)
            return
        described = json.loads(content)
        if self.command == "HEAD":
            self._answer(200, {**_described(described), "Content-Length": described["size"]}, b"")
            return
        given = {name: value for name, value in self.headers.items() if name.lower() == "range"}
        answer, content = self._asked("GET", f"{address}?alt=media", b"", given)
        ranges = {name: value for name, value in answer.getheaders() if name.lower() == "content-range"}
        self._answer(answer.status, {**_described(described), **ranges}, content)

    def _delete(self, bucket: str, name: str, _body: bytes) -> None:
        answer, content = self._asked("DELETE", f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}", b"", {})
        self._answer(204 if answer.status == 200 else answer.status, {}, b"" if answer.status == 200 else content)

    def _listed(self, bucket: str, query: Mapping[str, str]) -> bytes:
        """The whole list, in one page."""
        asked = {name: query[name] for name in ("prefix", "delimiter") if name in query}
        found: dict[str, list[object]] = {"items": [], "prefixes": []}
        token = ""
        while True:
            more = {"pageToken": token} if token else {}
            _, content = self._asked("GET", f"/storage/v1/b/{bucket}/o?{urlencode({**asked, **more})}", b"", {})
            page = json.loads(content)
            for name, several in found.items():
                several.extend(page.get(name, []))
            token = page.get("nextPageToken", "")
            if not token:
                break
        after = query.get("start-after", "")
        objects = "".join(_as_xml(each) for each in found["items"] if isinstance(each, dict) and each["name"] > after)
        prefixes = "".join(
            f"<CommonPrefixes><Prefix>{escape(str(each))}</Prefix></CommonPrefixes>" for each in found["prefixes"]
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://doc.s3.amazonaws.com/2006-03-01">'
            f"<IsTruncated>false</IsTruncated>{objects}{prefixes}</ListBucketResult>"
        ).encode()

    def _asked(self, method: str, address: str, body: bytes, headers: Mapping[str, str]) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection("127.0.0.1", self.behind, timeout=LIMIT)
        connection.request(method, address, body, dict(headers))
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, content

    def _answer(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


_HOP = {"connection", "transfer-encoding", "content-length", "date", "server"}


def _described(made: Mapping[str, str]) -> dict[str, str]:
    """What the XML API says of an object in headers."""
    if "generation" not in made:
        return {}
    modified = format_datetime(datetime.fromisoformat(made["updated"]), usegmt=True)
    tag = f'"{made["generation"]}"'
    return {"ETag": tag, "x-goog-generation": made["generation"], "Last-Modified": modified}


def _as_xml(made: Mapping[str, str]) -> str:
    return (
        f"<Contents><Key>{escape(made['name'])}</Key><Size>{made['size']}</Size><LastModified>{made['updated']}</LastModified>"
        f'<ETag>"{made["generation"]}"</ETag></Contents>'
    )


def _serve(program: str) -> None:
    """Run the emulator, and the XML API before it, until standard input is closed."""
    port = free_port()
    place = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    handler = type("Handler", (_Handler,), {"behind": port})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    address = f"127.0.0.1:{server.server_port}"
    named = ["-public-host", address, "-external-url", f"http://{address}"]
    emulator = subprocess.Popen(
        [program, *place, *named], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    end = time.monotonic() + LIMIT
    while not accepts(port):
        assert time.monotonic() < end, "the emulator did not start"
        time.sleep(0.05)
    connection = HTTPConnection("127.0.0.1", port)
    bucket = json.dumps({"name": BUCKET})
    connection.request("POST", "/storage/v1/b?project=test", bucket, {"Content-Type": "application/json"})
    assert connection.getresponse().status == 200
    sys.stdout.write(f"http://{address}\n")
    sys.stdout.flush()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with suppress(KeyboardInterrupt):
        sys.stdin.read()
    emulator.terminate()
    emulator.wait(timeout=LIMIT)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
