"""The spool of a view: truncated contents are never read."""

import json
from pathlib import Path

import pytest

from backfill_assets.adapters.delta.log_replay import DataFile, Version
from backfill_assets.adapters.delta.spool import keep_version, kept_version, segment_files
from backfill_assets.adapters.storage.documents import SPOOLED
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.staged_folders import SPOOL
from backfill_assets.errors import StoredFormatError, VersionsLostError


def sizes(files: dict[str, int], **changed: object) -> bytes:
    return json.dumps({"format": SPOOLED.format, "sizes": files, **changed}).encode()


FOLDER, SEGMENT = "0123456789ab-1-fedcba987654", "orders/3"


@pytest.mark.parametrize("left", [b"row", b""])
def test_a_segment_that_was_cut_short_is_never_read(tmp_path: Path, left: bytes) -> None:
    view = TableLocation(uri=str(tmp_path))
    file = f"{SPOOL}/{FOLDER}/{SEGMENT}/part-0.parquet"
    view.write(file, b"rows")
    view.write(f"{SPOOL}/{FOLDER}/{SEGMENT}/files.json", sizes({file: len(b"rows")}))
    assert segment_files(view, {SEGMENT: FOLDER}, [SEGMENT]) == [file]
    view.write(file, left)
    with pytest.raises(VersionsLostError, match=r"part-0\.parquet is missing or truncated"):
        segment_files(view, {SEGMENT: FOLDER}, [SEGMENT])
    Path(view.child(f"{SPOOL}/{FOLDER}/{SEGMENT}/files.json")).unlink()
    with pytest.raises(VersionsLostError, match=r"files\.json is missing or truncated"):
        segment_files(view, {SEGMENT: FOLDER}, [SEGMENT])


def test_the_whole_contents_of_a_pinned_version_are_kept(tmp_path: Path) -> None:
    view = TableLocation(uri=str(tmp_path))
    files = tuple(DataFile({"path": f"{name}.parquet", "size": 1, "stats": '{"numRecords": 3}'}) for name in "ab")
    pinned = Version({"minReaderVersion": 1}, {"id": "x"}, files)
    keep_version(view, FOLDER, "orders", pinned)
    assert kept_version(view, {"orders/snapshot": FOLDER}, "orders") == pinned
    assert kept_version(view, {}, "orders") is None


@pytest.mark.parametrize("other", [{"format": 1}, {"sizes": 7}, {"format": None}])
def test_what_another_release_captured_is_not_read(tmp_path: Path, other: dict[str, object]) -> None:
    (tmp_path / "views" / "large").mkdir(parents=True)
    view = TableLocation(uri=str(tmp_path / "views" / "large"))
    view.write(f"{SPOOL}/{FOLDER}/{SEGMENT}/files.json", sizes({}, **other))
    with pytest.raises(StoredFormatError, match=f"views/large: its file {SPOOL}/{FOLDER}/{SEGMENT}/files.json"):
        segment_files(view, {SEGMENT: FOLDER}, [SEGMENT])
