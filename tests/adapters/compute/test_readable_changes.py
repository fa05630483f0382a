"""Whether changes can be followed: not where rows went without a feed, nor where files are gone; and what this process can
tell of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.compute.chosen_steps import StepChoice
from backfill_assets.adapters.compute.key_checks import INSERTED, _inserted
from backfill_assets.adapters.compute.relational_changes import changes_readable, sought_in
from backfill_assets.adapters.compute.scans import Inputs, _in_process
from backfill_assets.adapters.compute.selectable_rows import Finder, ViewFinder
from backfill_assets.adapters.compute.source_compute import bronze_files
from backfill_assets.adapters.compute.ways import every_way
from backfill_assets.adapters.delta.found_rows import FoundRows, Sought
from backfill_assets.adapters.delta.upstream import APPEND_ONLY, FEED, DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.progress.reads import BronzeRead, ChangesRead, FullRead
from backfill_assets.errors import UpstreamChangedError
from backfill_assets.query.ddl import Column
from backfill_assets.query.key_classes import KeyClass
from backfill_assets.query.steps import Steps
from tests.support.statements import updated

SPARK = cast(Any, None)
"""Nothing is computed."""
COLUMNS = (Column("id", "BIGINT"), Column("x", "BIGINT"))


def upstream(folder: Path) -> DeltaUpstream:
    return DeltaUpstream(name="base", location=TableLocation(uri=str(folder)))


def append(folder: Path, *ids: int, **given: Any) -> None:
    write_deltalake(str(folder), pa.table({"id": ids, "x": ids}), mode="append", **given)


def changed(first: int, last: int) -> FullRead:
    return FullRead(source="base", table_id="t", first=first, last=last, rows=1, held=1)


def test_rows_that_went_without_a_feed_cannot_be_followed(tmp_path: Path) -> None:
    append(tmp_path, 1, 2, configuration={FEED: "false"})
    append(tmp_path, 3)
    DeltaTable(str(tmp_path)).delete("id = 1")
    base = {"base": upstream(tmp_path)}
    assert changes_readable(base, [changed(1, 1)], before=True)
    assert not changes_readable(base, [changed(1, 2)], before=True)


def test_files_that_are_gone_cannot_be_followed_nor_those_of_the_version_before_if_it_is_needed(tmp_path: Path) -> None:
    append(tmp_path, 1, 2, configuration={FEED: "true"})
    (before,) = DeltaTable(str(tmp_path)).file_uris()
    updated(DeltaTable(str(tmp_path)), {"x": "7"}, "id = 1")
    base = {"base": upstream(tmp_path)}
    assert changes_readable(base, [changed(1, 1)], before=True)
    Path(before).unlink()
    assert changes_readable(base, [changed(1, 1)], before=False)
    assert not changes_readable(base, [changed(1, 1)], before=True)
    (feed,) = tmp_path.glob("_change_data/*.parquet")
    feed.unlink()
    assert not changes_readable(base, [changed(1, 1)], before=False)


def test_a_column_may_be_null_in_a_version_that_is_gone(tmp_path: Path) -> None:
    for number in range(3):
        append(tmp_path, number)
    choice = StepChoice(upstreams={"base": upstream(tmp_path)}, mode="auto", is_read=False, records=list)
    query: Any = SimpleNamespace(occurrences=["base"], columns={"base": COLUMNS})
    plan: Any = SimpleNamespace(reads=[changed(2, 2)])
    assert not choice._may_be_null(query, plan, 0, "ID")
    Path(tmp_path, f"_delta_log/{0:020d}.json").unlink()
    late = StepChoice(upstreams={"base": upstream(tmp_path)}, mode="auto", is_read=False, records=list)
    assert late._may_be_null(query, plan, 0, "ID")


def finder(folder: Path) -> Finder:
    location = TableLocation(uri=str(folder))
    return Finder(
        spark=SPARK, upstream=upstream(folder), columns=COLUMNS, uses=frozenset({"id"}), files=FoundRows(location)
    )


def test_rows_that_a_table_without_a_feed_was_given_are_found_here_unless_it_has_partitions(tmp_path: Path) -> None:
    read = ChangesRead(source="base", table_id="t", first=1, last=2, rows=1)
    for folder, given in ((tmp_path / "whole", {}), (tmp_path / "parted", {"partition_by": ["x"]})):
        for number in range(3):
            append(folder, number, configuration={APPEND_ONLY: "true"}, **given)
    found = finder(tmp_path / "whole").changes([read])
    assert found is not None
    assert (sorted(found.come["id"].to_pylist()), len(found.go)) == ([1, 2], 0)
    assert finder(tmp_path / "parted").changes([read]) is None


def test_a_view_without_a_table_has_no_rows_and_nothing_is_found_of_what_cannot_be_told(tmp_path: Path) -> None:
    append(tmp_path, 1, 2)
    files = FoundRows(TableLocation(uri=str(tmp_path)))
    empty = ViewFinder(spark=SPARK, table=None, files=files)
    sought = Sought("INTEGER", pa.array([1], pa.int64()))
    assert (empty.is_empty, empty.rows, empty.bytes, empty.file_count) == (True, 0, 0, 0)
    assert empty.found("id", sought) is None
    there = ViewFinder(spark=SPARK, table=DeltaTable(str(tmp_path)), files=files)
    assert (there.is_empty, there.rows, there.file_count) == (False, 2, 1)
    append(tmp_path / "parted", 1, partition_by=["x"])
    parted = DeltaTable(str(tmp_path / "parted"))
    assert ViewFinder(spark=SPARK, table=parted, files=files).found("id", sought) is None


def key(kind: str = "INTEGER") -> KeyClass:
    return KeyClass(columns={0: "ID", 1: "x"}, output="id", kind=kind)


def test_the_values_of_a_key_are_sought_where_all_tables_tell_them() -> None:
    one, other = pa.table({"id": [1, 2]}), pa.table({"x": [2, 3], "id": ["a", "b"]})
    sought = sought_in(key(), [(0, one), (1, other)])
    assert sought is not None
    assert sorted(sought.values.to_pylist()) == [1, 2, 3]
    assert sought_in(key(), [(0, one), (1, pa.table({"other": [3]}))]) is None
    assert sought_in(key(), [(0, pa.table({"id": ["a"]}))]) is None


@pytest.mark.parametrize("there", [None, 2], ids=["no table", "an older copy"])
def test_a_source_whose_table_is_older_than_planned_is_refused(tmp_path: Path, there: int | None) -> None:
    for number in range(0 if there is None else there + 1):
        append(tmp_path, number)
    bronze = TableLocation(uri=str(tmp_path))
    source: Any = SimpleNamespace(name="orders", bronze=bronze)
    ranges = {0: OffsetRange(start=0, end=1)}
    read = BronzeRead(source="orders", incarnation="i", version=3, ranges=ranges)
    found = "none" if there is None else "2"
    with pytest.raises(UpstreamChangedError, match=f"expected its table at version 3 or later, found {found}"):
        bronze_files(source, read)


def test_keys_that_cannot_be_read_are_left_to_spark() -> None:
    def fails(_folder: str, _key: object) -> None:
        raise OSError("gone")

    def attempt(read: Any) -> Any:
        return SimpleNamespace(staging=SimpleNamespace(columns=read))

    rows = pa.table({"id": [1]})
    assert _inserted(attempt(lambda folder, _key: rows if folder == INSERTED else None), ("id",), 1) is rows
    assert _inserted(attempt(fails), ("id",), 1) is None
    assert _inserted(attempt(fails), ("id",), 10**9) is None


def test_an_observation_that_no_action_has_completed_has_not_counted() -> None:
    class Later:
        def future(self) -> "Later":
            return self

        def isCompleted(self) -> bool:  # noqa: N802  (Scala's name)
            return False

    assert _in_process(SimpleNamespace()) is None
    assert _in_process(SimpleNamespace(_jo=Later())) is None


def test_inputs_are_read_when_they_are_asked_for() -> None:
    read = list[str]()

    def rows_of(name: str) -> Any:
        read.append(name)
        return name.upper()

    rows: Any = Inputs(["a", "b"], rows_of)
    assert (len(rows), list(rows), read) == (2, ["a", "b"], [])
    assert isinstance(rows, Mapping)
    assert rows["b"] == "B"
    assert read == ["b"]


@dataclass(frozen=True)
class Tried:
    """As much of an attempt as tells the ways of a plan."""

    plan: Any
    staging: Any = field(default_factory=lambda: SimpleNamespace(inner=lambda name: name))
    netted: bool = False


@pytest.mark.parametrize(
    ("rule", "replaces", "nets", "in_full", "ways"),
    [
        ("full", True, True, True, ["full"]),
        ("linear", True, False, True, ["linear", "full by values"]),
        ("linear", True, True, True, ["linear", "linear netted", "full by values"]),
        ("linear", True, True, False, ["linear", "linear netted"]),
        ("full", False, True, True, ["full", "full netted"]),
        ("linear", False, False, True, ["linear"]),
    ],
)
def test_what_fails_is_computed_in_other_ways(
    rule: Any, replaces: bool, nets: bool, in_full: bool, ways: list[str]
) -> None:
    attempt: Any = Tried(SimpleNamespace(replaces=replaces))
    found = every_way(attempt, Steps(rule), lambda _folder: attempt, nets=lambda: nets, in_full=in_full)
    told = [
        each.steps.rule + (" netted" if each.attempt.netted else "") + (f" by {each.why_full}" if each.why_full else "")
        for each in found
    ]
    assert told == ways
