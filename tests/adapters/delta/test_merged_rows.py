"""Merges in this process, on real Delta tables: rows, files and change feed are what the changes say, for any keys."""

import math
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.adapters.delta import arrow_files, merged_rows
from backfill_assets.adapters.delta.merged_files import commit_merged
from backfill_assets.adapters.delta.merged_rows import merge_rows
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.delta.staged_files import collect
from backfill_assets.core.epoch import merge_groups
from backfill_assets.core.epoch.records import CommitKind, Staged
from backfill_assets.core.epoch.staged_folders import StagedFolder
from backfill_assets.errors import ReadMismatchError, StagingError
from tests.support.outputs import commit, output_at, record, stage

LIFE = "11111111"
Row = tuple[Any, Any, int | None]
"""Two columns of a key, and a value."""
Change = tuple[str, Row]

ODD_NAN = struct.unpack("d", struct.pack("Q", 0xFFF8 << 48))[0]
FORMS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "float": (pa.float64(), [None, math.nan, -0.0, 1.5, math.inf, -math.inf]),
    "decimal": (pa.decimal128(38, 18), [None, *map(Decimal, ("0", "-0.000000000000000001", "99999999999999999999.5"))]),
    "instant": (pa.timestamp("us", "UTC"), [None, *(datetime(at, 1, 1, tzinfo=UTC) for at in (1, 1970, 9999))]),
    "bytes": (pa.binary(), [None, b"", b"\x00", b"\xff\xfe"]),
    "flag": (pa.bool_(), [None, True, False]),
    "text": (pa.string(), [None, "", "a", "a ", "A"]),
}
"""Types of keys, each with values of which no two are equal."""


def schema_of(kind: str) -> pa.Schema:
    return pa.schema({"a": FORMS[kind][0], "b": pa.int32(), "value": pa.int64()})


def table_of(rows: Sequence[Row], kind: str) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table(dict(zip("ab", columns, strict=False)) | {"value": columns[2]}, schema=schema_of(kind))


def output_with(folder: Path, kind: str, files: Sequence[Sequence[Row]]) -> DeltaOutput:
    made = output_at(folder, schema_of(kind))
    commit(made, record(CommitKind.CREATE, LIFE, 0))
    for epoch, rows in enumerate(files, 1):
        commit(made, record(CommitKind.EPOCH, LIFE, epoch), stage(made, LIFE, epoch, table_of(rows, kind)))
    return made


def staged_as(output: DeltaOutput, epoch: int, kind: str, changes: Sequence[Change]) -> Staged:
    folder = StagedFolder(incarnation=LIFE, epoch=epoch, attempt="aaaaaaaa").name
    counts = Counter(operation for operation, _ in changes)
    for operation in counts:
        place = Path(output.location.child(f"{folder}/rows/__op={operation}"))
        place.mkdir(parents=True)
        pq.write_table(table_of([row for each, row in changes if each == operation], kind), place / "part.parquet")
    return Staged(
        files=collect(output.location, folder),
        rows_written=counts["insert"] + counts["update"],
        rows_updated=counts["update"],
        rows_deleted=counts["delete"],
        key=("a", "b"),
    )


def merged(output: DeltaOutput, epoch: int, kind: str, changes: Sequence[Change]) -> None:
    """Merge changes, in this process."""
    staged = staged_as(output, epoch, kind, changes)
    output.look()
    assert output.engine(staged) in {"arrow", "append"}
    made = record(CommitKind.EPOCH, LIFE, epoch).model_copy(update={"engine": "arrow"})
    output.commit(made, staged)
    assert output.look().record == made


def plain(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """A row whose floats can be compared."""
    return tuple(str(each + 0.0) if isinstance(each, float) else each for each in row.values())


def content(output: DeltaOutput) -> Counter[tuple[Any, ...]]:
    rows: list[dict[str, Any]] = DeltaTable(output.location.uri).to_pyarrow_table().to_pylist()
    return Counter(map(plain, rows))


def fed(output: DeltaOutput) -> Counter[tuple[Any, ...]]:
    """The rows of the change feed of the newest version, without those that came before a change."""
    table = DeltaTable(output.location.uri)
    rows: list[dict[str, Any]] = (
        pa
        .table(table.load_cdf(starting_version=table.version()))
        .select(["a", "b", "value", "_change_type"])
        .to_pylist()
    )
    return Counter(map(plain, rows))


def expected_of(rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(plain({"a": a, "b": b, "value": value}) for a, b, value in rows)


def other_form(value: Any) -> Any:
    """An equal value with other bits."""
    if not isinstance(value, float):
        return value
    return ODD_NAN if math.isnan(value) else 0.0 if value == 0 else value


@st.composite
def histories(draw: st.DrawFn) -> tuple[str, list[list[Row]], list[Change]]:
    """A type of keys, the rows of files, and changes of keys that are there or not."""
    kind = draw(st.sampled_from(sorted(FORMS)))
    keys: list[tuple[Any, Any]] = draw(st.permutations([(a, b) for a in FORMS[kind][1] for b in (None, 1)]))
    ends = sorted(draw(st.lists(st.integers(1, len(keys)), min_size=1, max_size=3)))
    parts = [keys[low:high] for low, high in zip([0, *ends], ends, strict=False)]
    files: list[list[Row]] = [[(*key, at) for at, key in enumerate(part)] for part in parts if part]
    chosen = draw(st.lists(st.sampled_from(range(len(keys))), unique=True, min_size=1))
    changes: list[Change] = []
    for at in chosen:
        a, b = keys[at]
        operation = "insert" if at >= ends[-1] else draw(st.sampled_from(["update", "delete"]))
        changes.append((operation, (other_form(a), b, None if operation == "delete" else 100 + at)))
    return kind, files, changes


@pytest.mark.drawn
@given(history=histories())
def test_rows_and_feed_are_what_the_changes_say(
    tmp_path_factory: pytest.TempPathFactory, history: tuple[str, list[list[Row]], list[Change]]
) -> None:
    kind, files, changes = history
    output = output_with(tmp_path_factory.mktemp("merged"), kind, files)
    old = {plain({"a": a, "b": b}): (a, b, value) for rows in files for a, b, value in rows}
    left, feed = dict(old), list[tuple[Row, str]]()
    for operation, (a, b, value) in changes:
        key = plain({"a": a, "b": b})
        feed += [((a, b, value), {"insert": "insert", "update": "update_postimage"}.get(operation, ""))]
        feed += [(left.pop(key), "delete" if operation == "delete" else "update_preimage")] if key in old else []
        left |= {} if operation == "delete" else {key: (a, b, value)}
    merged(output, len(files) + 1, kind, changes)
    assert content(output) == expected_of(list(left.values()))
    told = Counter(plain({"a": a, "b": b, "value": value, "kind": kind}) for (a, b, value), kind in feed if kind)
    if any(operation != "insert" for operation, _ in changes):
        assert fed(output) == told


ROWS: list[Row] = [("a", 1, 1), ("b", 1, 2), ("c", 1, 3), ("d", 1, 4)]


def test_small_files_with_changed_rows_become_one_with_the_new_rows_and_others_stay(tmp_path: Path) -> None:
    output = output_with(tmp_path, "text", [[row] for row in ROWS])
    merged(output, 5, "text", [("update", ("a", 1, 7)), ("delete", ("d", 1, None)), ("insert", ("e", 1, 8))])
    files = sorted(pa.table(DeltaTable(output.location.uri).get_add_actions())["num_records"].to_pylist())
    assert files == [1, 1, 2]
    assert content(output) == expected_of([("a", 1, 7), ROWS[1], ROWS[2], ("e", 1, 8)])


def test_large_files_stay_apart_and_are_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_groups, "SMALL_BYTES", 0)
    monkeypatch.setattr(arrow_files, "_GROUP_ROWS", 2)
    monkeypatch.setattr(merged_rows, "_BATCH_ROWS", 3)
    output = output_with(tmp_path, "text", [ROWS, [("x", 1, 1)]])
    changes: list[Change] = [("update", ("b", 1, 9)), ("update", ("d", 1, 9)), ("delete", ("x", 1, None))]
    merged(output, 3, "text", [*changes, ("insert", ("e", 1, 8))])
    once = [("a", 1, 1), ("b", 1, 9), ("c", 1, 3), ("d", 1, 9), ("e", 1, 8)]
    assert content(output) == expected_of(once)
    files = pa.table(DeltaTable(output.location.uri).get_add_actions()).to_pylist()
    small, large = sorted(files, key=lambda each: int(each["num_records"]))
    assert (small["num_records"], large["num_records"]) == (1, 4)
    assert pq.ParquetFile(output.location.child(large["path"])).num_row_groups == 2
    there = Path(output.location.child(large["path"])).parent
    assert sorted(each.name for each in there.iterdir()) == sorted([
        "feed.parquet",
        *(Path(each["path"]).name for each in files),
    ])
    merged(output, 4, "text", [("update", ("c", 1, 5)), ("delete", ("d", 1, None))])
    assert content(output) == expected_of([("a", 1, 1), ("b", 1, 9), ("c", 1, 5), ("e", 1, 8)])


@pytest.mark.parametrize("fault", ["missing", "cut", "changed"])
def test_a_file_that_cannot_be_read_is_named_and_nothing_is_committed(tmp_path: Path, fault: str) -> None:
    output = output_with(tmp_path, "text", [ROWS])
    path = Path(output.location.child(f"{LIFE}-1-aaaaaaaa/part.parquet"))
    pq.write_table(table_of(ROWS, "text"), path, write_page_checksum=True, compression="none", use_dictionary=False)
    whole = path.read_bytes()
    match fault:
        case "missing":
            path.unlink()
        case "cut":
            path.write_bytes(whole[: len(whole) // 2])
        case _:
            path.write_bytes(whole.replace(b"\x01\x00\x00\x00c", b"\x01\x00\x00\x00q"))
    version = output.look().version
    with pytest.raises(
        ReadMismatchError, match=r"its file 11111111-1-aaaaaaaa/part\.parquet cannot be read: "
    ) as found:
        merged(output, 2, "text", [("update", ("b", 1, 9))])
    assert "restore the file" in found.value.hint
    assert DeltaTable(output.location.uri).version() == version


@pytest.mark.parametrize(
    ("files", "changes", "said"),
    [
        ([ROWS], [("update", ("z", 1, 9))], "of 1 rows .* 1 are not there"),
        ([ROWS], [("delete", ("z", 1, None)), ("insert", ("y", 1, 1))], "of 1 rows .* 1 are not there"),
        ([ROWS], [("insert", ("a", 1, 9)), ("delete", ("b", 1, None))], "of 1 new ones 1 are there already"),
        ([ROWS], [("insert", ("a", 1, 9)), ("update", ("z", 1, 9))], "1 are not there, .* 1 are there already"),
        (
            [ROWS, ROWS[:1]],
            [("update", ("a", 1, 9)), ("delete", ("z", 1, None))],
            "1 are not there, 1 are there sev",
        ),
    ],
    ids=["an update finds no row", "a delete finds no row", "an insert finds one", "both", "a row is there twice"],
)
def test_changes_that_do_not_fit_the_rows_are_not_committed(
    tmp_path: Path, files: list[list[Row]], changes: list[Change], said: str
) -> None:
    output = output_with(tmp_path, "text", files)
    with pytest.raises(ReadMismatchError, match=said):
        merged(output, len(files) + 1, "text", changes)
    assert content(output) == expected_of([row for rows in files for row in rows])


def test_a_file_with_timestamps_of_another_writer_is_read_exactly(tmp_path: Path) -> None:
    """Spark writes them so by default, in nanoseconds, which reach from 1677 to 2262."""
    rows: list[Row] = [(None, 1, 1), (datetime(1, 1, 1, tzinfo=UTC), 1, 2), (datetime(9999, 12, 31, tzinfo=UTC), 1, 3)]
    output = output_with(tmp_path, "instant", [rows])
    path = Path(output.location.child(f"{LIFE}-1-aaaaaaaa/part.parquet"))
    pq.write_table(table_of(rows, "instant"), path, use_deprecated_int96_timestamps=True)
    merged(output, 2, "instant", [("update", (None, 1, 9)), ("delete", (rows[1][0], 1, None))])
    assert content(output) == expected_of([(None, 1, 9), rows[2]])


def test_a_struct_may_be_null_though_none_of_its_fields_may(tmp_path: Path) -> None:
    inside = pa.field("n", pa.int64(), nullable=False)
    schema = pa.schema({"id": pa.int64(), "s": pa.struct([inside])})
    output = output_at(tmp_path, schema)
    commit(output, record(CommitKind.CREATE, LIFE, 0))
    rows = pa.table({"id": [1, 2], "s": [{"n": 1}, None]}, schema=schema)
    commit(output, record(CommitKind.EPOCH, LIFE, 1), stage(output, LIFE, 1, rows))
    folder = f"{LIFE}-2-aaaaaaaa/rows/__op=update"
    Path(output.location.child(folder)).mkdir(parents=True)
    written = pa.schema({"id": pa.int64(), "s": pa.struct([inside.with_nullable(True)])})  # as Spark writes them
    pq.write_table(pa.table({"id": [1], "s": [None]}, schema=written), output.location.child(f"{folder}/part.parquet"))
    files = collect(output.location, folder.partition("/")[0])
    output.look()
    made = record(CommitKind.EPOCH, LIFE, 2).model_copy(update={"engine": "arrow"})
    output.commit(made, Staged(files=files, rows_written=1, rows_updated=1, key=("id",)))
    assert output.look().record == made
    (path,) = pa.table(DeltaTable(output.location.uri).get_add_actions())["path"].to_pylist()
    found = pq.read_table(output.location.child(path)).to_pylist()  # delta-rs and its own types refuse such rows
    assert sorted(found, key=lambda row: int(row["id"])) == [{"id": 1, "s": None}, {"id": 2, "s": None}]


def test_a_file_without_a_column_of_the_table_is_named(tmp_path: Path) -> None:
    output = output_with(tmp_path, "text", [ROWS])
    path = Path(output.location.child(f"{LIFE}-1-aaaaaaaa/part.parquet"))
    pq.write_table(table_of(ROWS, "text").drop_columns("value"), path)
    with pytest.raises(ReadMismatchError, match=r"cannot be read: .*value"):
        merged(output, 2, "text", [("update", ("b", 1, 9))])


def test_a_constraint_that_is_set_before_a_commit_is_kept(tmp_path: Path) -> None:
    output = output_with(tmp_path, "text", [ROWS])
    staged = staged_as(output, 2, "text", [("update", ("a", 1, 500))])
    output.look()
    made = record(CommitKind.EPOCH, LIFE, 2).model_copy(update={"engine": output.engine(staged)})
    assert made.engine == "arrow"
    DeltaTable(output.location.uri).alter.add_constraint({"small": "value < 100"})
    output.look()
    with pytest.raises(DeltaError, match="failed validation check"):
        output.commit(made, staged)
    assert content(output) == expected_of(ROWS)


def test_two_changes_of_one_key_are_refused(tmp_path: Path) -> None:
    output = output_with(tmp_path, "float", [[(1.5, 1, 1)]])
    staged = staged_as(output, 2, "float", [("update", (-0.0, 1, 9)), ("insert", (0.0, 1, 8))])
    table = output.location.load()
    assert table is not None
    with pytest.raises(StagingError, match="2 changes of a merge have 1 keys"):
        merge_rows(output.location, table, staged)


@pytest.mark.parametrize(
    ("kind", "engine"),
    [(pa.string(), "arrow"), (pa.struct({"x": pa.int32()}), "delta-rs"), (pa.list_(pa.int64()), "delta-rs")],
    ids=str,
)
def test_keys_that_arrow_cannot_compare_are_left_to_delta_rs(tmp_path: Path, kind: pa.DataType, engine: str) -> None:
    output = output_at(tmp_path, pa.schema({"id": kind}))
    commit(output, record(CommitKind.CREATE, LIFE, 0))
    output.look()
    assert output.engine(Staged(rows_updated=1, key=("id",))) == engine


def test_a_table_that_asks_more_of_its_writers_is_merged_by_delta_rs(tmp_path: Path) -> None:
    output = output_with(tmp_path, "text", [ROWS])
    DeltaTable(output.location.uri).alter.add_constraint({"small": "value < 100"})
    output.look()
    changes: list[Change] = [("update", ("a", 1, 50)), ("delete", ("b", 1, None)), ("insert", ("e", 1, 8))]
    staged = staged_as(output, 2, "text", changes)
    assert output.engine(staged) == "delta-rs"
    output.commit(record(CommitKind.EPOCH, LIFE, 2).model_copy(update={"engine": "delta-rs"}), staged)
    assert content(output) == expected_of([("a", 1, 50), *ROWS[2:], ("e", 1, 8)])


def test_a_commit_that_is_made_after_the_next_try_has_begun_finds_its_files(tmp_path: Path) -> None:
    output = output_with(tmp_path, "text", [ROWS])
    staged = staged_as(output, 2, "text", [("update", ("a", 1, 9)), ("delete", ("b", 1, None))])
    table = output.location.load()
    assert table is not None
    first, _ = merge_rows(output.location, table, staged), merge_rows(output.location, table, staged)
    assert commit_merged(output.location, table, first, numbers={}, metadata={})
    assert content(output) == expected_of([("a", 1, 9), *ROWS[2:]])
    assert fed(output).total() == 3


BEYOND = [-(2**62), 10**15, 3 * 10**17, 345_600_000_000_000_000]
"""Instants in microseconds, of which Python can represent one."""


def test_instants_beyond_the_years_of_python_are_keys_as_others_are(tmp_path: Path) -> None:
    def rows(instants: Sequence[int], value: int) -> pa.Table:
        column = pa.array(instants, pa.int64()).cast(schema_of("instant").field("a").type)
        return pa.table({"a": column, "b": [1] * len(instants), "value": [value] * len(instants)}, schema_of("instant"))

    made = output_at(tmp_path, schema_of("instant"))
    commit(made, record(CommitKind.CREATE, LIFE, 0))
    commit(made, record(CommitKind.EPOCH, LIFE, 1), stage(made, LIFE, 1, rows(BEYOND[:3], 1)))
    folder = StagedFolder(incarnation=LIFE, epoch=2, attempt="aaaaaaaa").name
    for operation, changed in {"update": BEYOND[:1], "delete": BEYOND[2:3], "insert": BEYOND[3:]}.items():
        place = Path(made.location.child(f"{folder}/rows/__op={operation}"))
        place.mkdir(parents=True)
        pq.write_table(rows(changed, 2), place / "part.parquet")
    files = collect(made.location, folder)
    made.look()
    staged = Staged(files=files, rows_written=2, rows_updated=1, rows_deleted=1, key=("a", "b"))
    made.commit(record(CommitKind.EPOCH, LIFE, 2).model_copy(update={"engine": "arrow"}), staged)
    found = DeltaTable(made.location.uri).to_pyarrow_table()
    pairs = zip(found["a"].cast(pa.int64()).to_pylist(), found["value"].to_pylist(), strict=True)
    assert sorted(pairs) == [(BEYOND[0], 2), (BEYOND[1], 1), (BEYOND[3], 2)]
