"""The jars that Spark and the embedded servers need, fetched once per user by the Ivy inside PySpark.

A download lives in the cache in a folder named after the hash of its Ivy file, so a new pin is a new folder. A manifest
of names and sizes is written last: without it, or if a file differs from it, the download is incomplete and is made
again. If it breaks, what Ivy has fetched is kept until it is complete, so the next run continues from there.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from backfill_assets.adapters.runtime.cache import cache_folder
from backfill_assets.adapters.runtime.java import java_command
from backfill_assets.errors import EnvironmentSetupError

__all__ = ["connector_jars", "kafka_jars", "s3_server_jars", "spark_jars"]

_SETTINGS_FILE = Path(__file__).with_name("ivysettings.xml")
_MANIFEST = "manifest.json"
# In Ivy's summary, each module that it could not get has a line such as ":: org.example#part;1.0: not found".
_MISSING = re.compile(r"^\s+:: ([\w.-]+#\S+?(?:: .+)?)\s*$", re.MULTILINE)
_SHOWN = 4

_Manifest = dict[str, dict[str, int]]


@dataclass(frozen=True, kw_only=True)
class _Download:
    """Sets of jars that are fetched together, as an Ivy file pins them."""

    file: Path
    sets: tuple[str, ...]
    whose: str
    megabytes: int


_RUNTIME = _Download(
    file=Path(__file__).with_name("ivy.xml"), sets=("spark", "kafka"), whose="Spark and Kafka", megabytes=62
)
_CONNECTORS = {
    "s3": _Download(file=Path(__file__).with_name("ivy-s3a.xml"), sets=("s3a",), whose="Spark for S3", megabytes=13),
    "azure": _Download(
        file=Path(__file__).with_name("ivy-abfs.xml"), sets=("abfs",), whose="Spark for Azure", megabytes=1
    ),
    "gcs": _Download(
        file=Path(__file__).with_name("ivy-gcs.xml"), sets=("gcs",), whose="Spark for Google", megabytes=38
    ),
}
"""What Spark needs to reach the stores of a provider."""
_S3_SERVER = _Download(
    file=Path(__file__).with_name("ivy-s3-server.xml"), sets=("s3_server",), whose="the S3 server", megabytes=57
)


def spark_jars() -> tuple[Path, ...]:
    """The jars to give Spark (Delta and the Kafka source). Fetches them if needed, with progress on stderr.

    Raises `EnvironmentSetupError`, saying which part is missing, if the download does not finish.
    """
    return _jars(_RUNTIME, "spark")


def kafka_jars() -> tuple[Path, ...]:
    """The class path of the embedded broker; otherwise as `spark_jars`."""
    return _jars(_RUNTIME, "kafka")


def connector_jars(provider: str) -> tuple[Path, ...]:
    """What Spark needs beyond that for a provider's stores, fetched when the first one is used; nothing for one of whose
    stores Spark is not told. Otherwise as `spark_jars`."""
    download = _CONNECTORS.get(provider)
    return () if download is None else _jars(download, *download.sets)


def s3_server_jars() -> tuple[Path, ...]:
    """The class path of the embedded S3 server, fetched when it is first started; otherwise as `spark_jars`."""
    return _jars(_S3_SERVER, "s3_server")


def _jars(download: _Download, name: str) -> tuple[Path, ...]:
    cache = cache_folder("jars")
    folder = cache / hashlib.sha256(download.file.read_bytes()).hexdigest()[:16]
    manifest = _complete_manifest(download, folder)
    if manifest is None:
        with _download_lock(cache):
            manifest = _complete_manifest(download, folder) or _fetch(download, cache, folder)
    return tuple(folder / name / jar for jar in sorted(manifest[name]))


@contextmanager
def _download_lock(cache: Path) -> Iterator[None]:
    """Hold the lock of all downloads; report on stderr if another process has to finish first."""
    lock = FileLock(cache / "download.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        sys.stderr.write("Waiting for another process that is downloading jars.\n")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _complete_manifest(download: _Download, folder: Path) -> _Manifest | None:
    """The manifest of `folder` if every file that it names exists with its full size."""
    try:
        manifest: Any = json.loads((folder / _MANIFEST).read_text())
        found = {name: {jar: (folder / name / jar).stat().st_size for jar in manifest[name]} for name in download.sets}
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return found if found == manifest else None


def _fetch(download: _Download, cache: Path, folder: Path) -> _Manifest:
    """Retrieve the sets into a temporary folder, then put it in the place of `folder`."""
    sys.stderr.write(f"Downloading the jars of {download.whose} into {cache} (about {download.megabytes} MB, once).\n")
    downloads = cache / "ivy"
    with tempfile.TemporaryDirectory(dir=cache, prefix="new-", ignore_cleanup_errors=True) as temporary:
        fresh = Path(temporary) / "jars"
        _run_ivy(download, downloads, fresh)
        manifest = {
            name: {jar.name: jar.stat().st_size for jar in (fresh / name).glob("*.jar")} for name in download.sets
        }
        _install(fresh, folder, manifest)
    # Ivy's own copies are only for continuing a broken download; a later repair should not trust them.
    shutil.rmtree(downloads, ignore_errors=True)
    return manifest


def _install(fresh: Path, folder: Path, manifest: _Manifest) -> None:
    if not folder.exists():
        (fresh / _MANIFEST).write_text(json.dumps(manifest, indent=1))
        fresh.rename(folder)
        return
    # A repair replaces single files: servers may be running from this folder, and keep the files that they have open.
    for name, jars in manifest.items():
        (folder / name).mkdir(exist_ok=True)
        for jar in jars:
            (fresh / name / jar).replace(folder / name / jar)
    (fresh / _MANIFEST).write_text(json.dumps(manifest, indent=1))
    (fresh / _MANIFEST).replace(folder / _MANIFEST)


def _run_ivy(download: _Download, downloads: Path, target: Path) -> None:
    command = [java_command(), "-jar", str(_ivy_jar()), "-cache", str(downloads)]
    command += ["-settings", str(_SETTINGS_FILE), "-ivy", str(download.file)]
    command += ["-retrieve", f"{target}/[conf]/[artifact]-[revision].[ext]"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        with process:
            output = _pass_on(process)
    except BaseException:
        process.kill()
        raise
    if process.returncode != 0 or any(not any((target / name).glob("*.jar")) for name in download.sets):
        raise _broken_download(download, output, process.returncode)


def _pass_on(process: "subprocess.Popen[bytes]") -> str:
    """Copy the process's output to stderr as it arrives (Ivy draws its progress within a line), and return it."""
    assert process.stdout is not None
    parts: list[bytes] = []
    while part := os.read(process.stdout.fileno(), 4096):
        parts.append(part)
        sys.stderr.write(part.decode(errors="replace"))
        sys.stderr.flush()
    return b"".join(parts).decode(errors="replace")


def _broken_download(download: _Download, output: str, code: int) -> EnvironmentSetupError:
    missing = list(dict.fromkeys(_MISSING.findall(output)))
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        what = f"not fetched: {', '.join(missing[:_SHOWN])}{more}"
    else:
        what = f"Ivy ended with exit code {code}: {' / '.join(output.split(chr(10))[-3:]).strip(' /') or 'no output'}"
    return EnvironmentSetupError(
        f"The download of the jars of {download.whose} failed; {what}.",
        hint="Check that this machine reaches Maven Central (behind a proxy, set JAVA_TOOL_OPTIONS to "
        "-Dhttps.proxyHost=… -Dhttps.proxyPort=…), then run the same command again. Delete nothing: "
        "what has been fetched is kept, and the download continues from there.",
    )


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    jars = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar")) if spec is not None and spec.origin else []
    if not jars:
        raise EnvironmentSetupError(
            "The installed PySpark has no jars, so there is no Ivy to fetch the others with.",
            hint="Install the full package: pip install 'pyspark[connect]' (not pyspark-client).",
        )
    return jars[-1]
