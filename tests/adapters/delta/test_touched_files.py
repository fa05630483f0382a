"""Merges on real Delta tables, without Spark: they open the files that may have a changed row, and no others."""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.adapters.delta.maintenance import set_properties
from backfill_assets.adapters.delta.output import MEMORY_OF_BYTE, DeltaOutput
from backfill_assets.adapters.delta.staged_files import collect
from backfill_assets.adapters.delta.touched_files import Changes, changes_of_files, touched_values
from backfill_assets.core.epoch.bounds import BOUNDED_COLUMNS, naming
from backfill_assets.core.epoch.records import CommitKind, Staged
from backfill_assets.core.epoch.staged_folders import StagedFolder
from tests.support.outputs import commit, output_at, record, stage

LIFE = "11111111"
ENGINES = ("arrow", "delta-rs")
KINDS: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "long": (pa.int64(), (-(2**63), -1, 0, 7, 2**63 - 1)),
    "byte": (pa.int8(), (-128, -1, 0, 5, 127)),
    "string": (
        pa.string(),
        ("", "'", "\\", 'a"b\n', "z" * 70, "z" * 69 + "\U0010ffff", "é", "\x00", "😀", "𠮷野家", "\U0010ffff"),
    ),
    "date": (pa.date32(), tuple(map(date.fromisoformat, ("0001-01-01", "1582-10-10", "1970-01-01", "9999-12-31")))),
}
"""Types of keys whose bounds are exact, each with values that are hard to order or to write."""


def schema_of(kind: str) -> pa.Schema:
    return pa.schema({"part": pa.int32(), "key": KINDS[kind][0], "value": pa.int64()})


def held(rows: Mapping[Any, int | None], kind: str, part: int = 0) -> pa.Table:
    columns = {"part": [part] * len(rows), "key": list(rows), "value": list(rows.values())}
    return pa.table(columns, schema=schema_of(kind))


def output_with(folder: Path, kind: str, files: Sequence[Mapping[Any, int | None]]) -> DeltaOutput:
    """An output that holds a value for each key, in files."""
    made = output_at(folder, schema_of(kind))
    commit(made, record(CommitKind.CREATE, LIFE, 0))
    for epoch, rows in enumerate(files, 1):
        commit(made, record(CommitKind.EPOCH, LIFE, epoch), stage(made, LIFE, epoch, held(rows, kind)))
    return made


def staged_changes(output: DeltaOutput, epoch: int, changes: Mapping[str, pa.Table]) -> Staged:
    folder = StagedFolder(incarnation=LIFE, epoch=epoch, attempt="aaaaaaaa").name
    for operation, rows in changes.items():
        place = Path(output.location.child(f"{folder}/rows/__op={operation}"))
        place.mkdir(parents=True)
        pq.write_table(rows, place / "part.parquet")
    counts = {operation: len(rows) for operation, rows in changes.items()}
    updated = counts.get("update", 0)
    return Staged(
        files=collect(output.location, folder),
        rows_written=counts.get("insert", 0) + updated,
        rows_updated=updated,
        rows_deleted=counts.get("delete", 0),
        key=("part", "key"),
    )


def merge(output: DeltaOutput, epoch: int, changes: Mapping[str, pa.Table], engine: str) -> None:
    staged = staged_changes(output, epoch, changes)
    output.look()
    made = record(CommitKind.EPOCH, LIFE, epoch).model_copy(update={"engine": engine})
    output.commit(made, staged)
    assert output.look().record == made


def content(output: DeltaOutput) -> dict[Any, int]:
    rows = DeltaTable(output.location.uri).to_pyarrow_table().to_pylist()
    found = {row["key"]: row["value"] for row in rows}
    assert len(found) == len(rows)
    return found


def file_of(output: DeltaOutput, epoch: int) -> Path:
    return Path(output.location.child(f"{LIFE}-{epoch}-aaaaaaaa/part.parquet"))


@st.composite
def histories(draw: st.DrawFn) -> tuple[str, list[dict[Any, int | None]], list[dict[str, dict[Any, int]]]]:
    """A type of keys, what files hold, and merges: keys that are inserted, updated and deleted, with their values."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    keys = draw(st.permutations([*KINDS[kind][1], None]))
    ends = sorted(draw(st.lists(st.integers(0, len(keys)), max_size=3)))
    parts = [keys[low:high] for low, high in zip([0, *ends], ends, strict=False)]
    files: list[dict[Any, int | None]] = [dict.fromkeys(part, 1) for part in parts if part]
    there = {key for each in files for key in each}
    merges = []
    for number in range(draw(st.integers(1, 2))):
        chosen = draw(st.lists(st.sampled_from(keys), unique=True, min_size=1))
        gone = {key for key in chosen if key in there and draw(st.booleans())}
        merges.append({
            "insert": {key: number + 2 for key in chosen if key not in there},
            "update": {key: number + 2 for key in chosen if key in there - gone},
            "delete": dict.fromkeys(gone, 0),
        })
        there = (there | set(chosen)) - gone
    return kind, files, merges


@pytest.mark.drawn
@pytest.mark.parametrize("engine", ENGINES)
@given(history=histories())
def test_merges_leave_what_the_changes_say_whatever_files_they_open(
    tmp_path_factory: pytest.TempPathFactory,
    engine: str,
    history: tuple[str, list[dict[Any, int | None]], list[dict[str, dict[Any, int]]]],
) -> None:
    kind, files, merges = history
    output = output_with(tmp_path_factory.mktemp("merged"), kind, files)
    expected = {key: value for each in files for key, value in each.items()}
    for epoch, changes in enumerate(merges, len(files) + 1):
        merge(output, epoch, {name: held(rows, kind) for name, rows in changes.items() if rows}, engine)
        expected |= changes["insert"] | changes["update"]
        expected = {key: value for key, value in expected.items() if key not in changes["delete"]}
        assert content(output) == expected


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind in sorted(KINDS) for value in KINDS[kind][1]])
def test_a_row_is_found_by_any_value(tmp_path: Path, kind: str, value: Any, engine: str) -> None:
    other = next(each for each in KINDS[kind][1] if each != value)
    output = output_with(tmp_path, kind, [{value: 1}, {other: 1}])
    merge(output, 3, {"update": held({value: 5}, kind)}, engine)
    assert content(output) == {value: 5, other: 1}
    if engine == "arrow":  # Arrow cannot compare texts as delta-rs writes some of them
        dataset = DeltaTable(output.location.uri).to_pyarrow_dataset()
        assert dataset.count_rows(filter=ds.field("key") == pa.scalar(value, KINDS[kind][0])) == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_file_that_can_have_no_changed_row_is_not_opened(tmp_path: Path, kind: str, engine: str) -> None:
    first, second, third, *_ = sorted(KINDS[kind][1])
    output = output_with(tmp_path, kind, [{first: 1}, {second: 1}, {third: 1}])
    for epoch in (1, 3):
        file_of(output, epoch).rename(tmp_path / f"{epoch}")
    merge(output, 4, {"update": held({second: 5}, kind)}, engine)
    for epoch in (1, 3):
        (tmp_path / f"{epoch}").rename(file_of(output, epoch))
    assert content(output) == {first: 1, second: 5, third: 1}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("away", "last", "changed"),
    [(2, 9, {1: 7, None: 7}), (3, None, {1: 7})],
    ids=["a null among the changes", "a file without bounds"],
)
def test_a_file_is_opened_where_bounds_do_not_tell(
    tmp_path: Path, away: int, last: int | None, changed: Mapping[Any, int], engine: str
) -> None:
    output = output_with(tmp_path, "long", [{1: 1}, {5: 1}, {last: 1}])
    file_of(output, away).rename(tmp_path / "away")
    with pytest.raises(Exception, match=r"part\.parquet"):
        merge(output, 4, {"update": held(changed, "long")}, engine)


def test_the_memory_of_a_merge_is_that_of_the_files_it_opens(tmp_path: Path) -> None:
    output = output_with(tmp_path, "long", [{1: 1}, {5: 1}, {9: 1}])
    staged = staged_changes(output, 4, {"update": held({5: 2}, "long")})
    output.look()
    size = file_of(output, 2).stat().st_size
    output.merge_memory = MEMORY_OF_BYTE * (size + staged.files[0].size)
    assert output.engine(staged) == "arrow"
    output.merge_memory -= 1
    assert output.engine(staged) == "spark"


@pytest.mark.parametrize(
    ("changed", "spans"),
    [
        ({"update": [5], "delete": [9]}, {"key": [(5, 5), (9, 9)]}),
        ({"update": [1, 9]}, {}),
        ({"update": [5, None]}, {}),
        ({"insert": [700]}, {"key": [(700, 700)]}),
    ],
    ids=["two files of three", "everything between", "null", "new"],
)
def test_where_changed_rows_lie_is_known_from_the_files_in_which_they_are_staged(
    tmp_path: Path, changed: Mapping[str, Sequence[int | None]], spans: Mapping[str, Any]
) -> None:
    output = output_with(tmp_path, "long", [{1: 1}, {5: 1}, {9: 1}])
    rows = {operation: held(dict.fromkeys(keys, 2), "long") for operation, keys in changed.items()}
    assert touched_values(*changes_in(output, staged_changes(output, 4, rows))) == spans


def test_columns_whose_bounds_the_table_does_not_vouch_for_tell_nothing(tmp_path: Path) -> None:
    output = output_with(tmp_path, "long", [{1: 1}, {5: 1}])
    staged = staged_changes(output, 3, {"update": held({5: 2}, "long")})
    assert touched_values(*changes_in(output, staged)) == {"key": [(5, 5)]}
    set_properties(output.location, {BOUNDED_COLUMNS: naming(["part"])})
    assert touched_values(*changes_in(output, staged)) == {}


def changes_in(output: DeltaOutput, staged: Staged) -> tuple[DeltaTable, Changes]:
    table = DeltaTable(output.location.uri)
    return table, changes_of_files(table, staged.key, staged.files)
