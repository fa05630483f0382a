"""The spool of a view: captured changes of its upstreams, as Parquet next to the view's data, and the lists of their
files.

`<view>/_spool/<incarnation>-<epoch>-<attempt>/<upstream>/<first version>/` is one segment. Its `files.json`, which is
written last, lists the files. `<upstream>/snapshot/files.json` describes the pinned version, because log cleanup
removes that first. VACUUM never enters a folder whose name begins with `_`; only `staging.sweep` removes these.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from backfill_assets.adapters.delta.log_replay import DataFile, Version
from backfill_assets.adapters.delta.spark_files import write_files
from backfill_assets.adapters.storage.documents import SPOOLED
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.staged_folders import SPOOL
from backfill_assets.core.progress.positions import SPOOLED_SNAPSHOT
from backfill_assets.errors import VersionsLostError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["capture", "keep_version", "kept_version", "segment_files"]

_FILES = "files.json"

T = TypeVar("T")


def capture(view: TableLocation, folder: str, segment: str, rows: "DataFrame", *, tasks: int) -> "DataFrame":
    """Write a segment, named `<upstream>/<first version>`, into the spool folder of one attempt; returns what was written."""
    place, written = f"{SPOOL}/{folder}/{segment}", rows.coalesce(tasks)
    sizes = {each.path: each.size for each in write_files(written, view, place)}
    view.write(f"{place}/{_FILES}", json.dumps(SPOOLED.written({"sizes": sizes})).encode())
    return written


def segment_files(view: TableLocation, spooled: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """The files of segments, relative to the view. Errors: `VersionsLostError`."""
    return [path for name in names for path in _held(view, spooled, name)]


def keep_version(view: TableLocation, folder: str, upstream: str, version: Version) -> None:
    """Store the file list of a pinned version."""
    described = SPOOLED.written({
        "protocol": version.protocol,
        "metadata": version.metadata,
        "files": [each.action for each in version.files],
    })
    view.write(f"{SPOOL}/{folder}/{upstream}/{SPOOLED_SNAPSHOT}/{_FILES}", json.dumps(described, default=str).encode())


def kept_version(view: TableLocation, spooled: Mapping[str, str], upstream: str) -> Version | None:
    """The stored file list of an upstream's pinned version; None if there is none."""
    name = f"{upstream}/{SPOOLED_SNAPSHOT}"
    return _read(view, f"{SPOOL}/{spooled[name]}/{name}/{_FILES}", _version) if name in spooled else None


def _held(view: TableLocation, spooled: Mapping[str, str], name: str) -> list[str]:
    """The files of a segment, each checked to exist."""
    place = f"{SPOOL}/{spooled[name]}/{name}"
    sizes = _read(view, f"{place}/{_FILES}", lambda document: dict(document["sizes"]))
    found = {} if sizes is None else {each.path: each.size for each in view.files().get_file_info(sorted(sizes))}
    if sizes is None or found != sizes:
        gone = sorted(path for path, size in (sizes or {}).items() if found.get(path) != size)
        raise VersionsLostError(
            f"captured changes are missing: expected all files of {place}, but {gone[0] if gone else _FILES} is "
            "missing or truncated",
            hint="nothing was skipped. Something other than this project deleted files of the view's spool; reset the view",
            segment=name,
        )
    return sorted(sizes)


def _version(document: Mapping[str, Any]) -> Version:
    return Version(document["protocol"], document["metadata"], tuple(map(DataFile, document["files"])))


def _read(view: TableLocation, path: str, make: Callable[[dict[str, Any]], T]) -> T | None:
    try:
        with view.files().open_input_file(path) as stream:
            stored = bytes(stream.read())
    except FileNotFoundError:
        return None
    target = "/".join(view.uri.rstrip("/").split("/")[-2:])
    return SPOOLED.read(stored, make, target=target, place=f"its file {path}")
