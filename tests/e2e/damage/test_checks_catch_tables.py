"""Every check finds the damage that it is there for, in views over Delta tables, over views, and in aggregates.

Which check sees what (each row is a test below; `yes` names the violation):

| damage                                         | positions | ledger | unique_key | conserved | exactly_once |
|------------------------------------------------|-----------|--------|------------|-----------|--------------|
| a row lost by a compaction                     |           |        |            | yes       | yes          |
| a row doubled by a compaction                  |           |        | if keyed   | yes       | yes          |
| a row replaced by a double of another          |           |        | if keyed   |           | yes          |
| a value changed, of a hidden column as well    |           |        |            |           | yes          |
| an epoch left out                              | yes       | yes    |            |           |              |
| a position that went back                      | yes       | yes    |            |           | yes          |
| a file of a bucket skipped, as was planned     | yes       |        |            |           | yes          |
| versions skipped as if they were maintenance   |           |        |            |           | yes          |
| versions skipped, their rows counted           | yes       |        |            |           | yes          |
| another table, or another version, was pinned  | yes       |        |            |           |              |
| restated with another position                 | yes       | yes    |            |           | yes          |
| restated with another number of rows           |           |        |            | yes       |              |
| another bound, or count, stated of a file       |           |        |            | yes       |              |
| restated as live though it is not              |           | yes    |            |           |              |
| a plan of the ledger lost or altered           |           | yes    |            |           |              |
| a hand-made append                             | yes       | yes    | yes        | yes       | yes          |

`unique_key` has nothing to look at in a view without a key, where a double is for `rows_conserved` and `exactly_once`.
What a version changed is not in the records, so that only `exactly_once` can tell a skipped change from maintenance.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.epoch.records import CommitKind
from tests.support.damage import (
    Change,
    alter_entry,
    append_by_hand,
    doubled,
    first,
    forge_commit,
    forge_epoch,
    missing,
    misstate,
    plan_files,
    recompact,
    replaced_by_a_double,
)
from tests.support.damaged_views import (
    CONTENT,
    IN_GATE,
    LIVE,
    OVER_TABLES,
    PARTLY,
    VALUES,
    append,
    assert_sound,
    backfill_views,
    change_tables,
    changed,
    outcomes_of,
    set_back,
    table_of,
)
from tests.support.project import Project
from tests.support.settings import one_in_gate

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def live(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The live views that the tests of this run need."""
    return LIVE if any(each.get_closest_marker("full") for each in request.session.items) else IN_GATE


@pytest.fixture(scope="module")
def backfilled(broker: str, tmp_path_factory: pytest.TempPathFactory, live: tuple[str, ...]) -> Project:
    """These views after their backfill; the snapshot of `partly` has not begun."""
    return backfill_views(broker, tmp_path_factory.mktemp("sound"), live)


@pytest.fixture(scope="module")
def sound(backfilled: Project, live: tuple[str, ...]) -> Project:
    """These views after changes of all kinds, and one whose snapshot has been read in part."""
    return change_tables(backfilled, live)


@pytest.fixture
def copy(sound: Project, tmp_path: Path) -> Project:
    """A copy of the undamaged project, including the tables below it, to be damaged."""
    shutil.copytree(sound.root, tmp_path, dirs_exist_ok=True)
    return Project(root=tmp_path, servers=sound.servers, declared=dict(sound.declared))


@pytest.mark.parametrize("name", one_in_gate(*LIVE))
def test_every_check_passes_after_the_backfill(backfilled: Project, name: str) -> None:
    assert_sound(backfilled, name)


@pytest.mark.full
def test_every_check_passes_before_the_damage(sound: Project) -> None:
    assert_sound(sound, *LIVE, PARTLY)


@pytest.mark.parametrize("name", one_in_gate("keyed", "added", "totals", "child", "clicked", PARTLY))
@pytest.mark.parametrize(
    ("change", "unkeyed", "differences"),
    [
        (missing, {"rows_conserved", "exactly_once"}, (1, 0)),
        (doubled, {"rows_conserved", "exactly_once"}, (0, 1)),
        (replaced_by_a_double, {"exactly_once"}, (1, 1)),
    ],
    ids=["missing", "doubled", "replaced by a double"],
)
def test_rows_that_a_compaction_lost_or_doubled(
    copy: Project, name: str, change: Change, unkeyed: set[str], differences: tuple[int, int]
) -> None:
    recompact(copy, name, change)
    failed = outcomes_of(copy, name, *CONTENT)
    doubles = change is not missing and name != "added"
    assert set(failed) == unkeyed | ({"unique_key"} if doubles else set())
    proof = failed["exactly_once"]
    assert (proof.facts["missing"], proof.facts["unexpected"]) == differences
    assert {each["violation"] for each in proof.violations} == {
        violation for violation, count in zip(("missing", "unexpected"), differences, strict=True) if count
    }
    if doubles:
        assert [each["rows"] for each in failed["unique_key"].violations] == [2]
    if "rows_conserved" in failed:
        total = copy.record(name).rows_total
        held = total + differences[1] - differences[0]
        assert failed["rows_conserved"].violations == [f"epochs wrote {total} rows, the table has {held}"]


@pytest.mark.parametrize("name", one_in_gate("totals", "keyed", PARTLY, "added", "child", "clicked"))
def test_a_changed_value_of_any_column_even_where_all_was_proved_before(copy: Project, name: str) -> None:
    columns = numbers_of(copy, name)
    assert VALUES[name] in columns
    if name in {"totals", "clicked"}:
        assert {"__count", "__n_0", "__sum_0"} <= set(columns), "the state of groups is hidden in the table"

    recompact(copy, name, first(lambda _row: {VALUES[name]: None}))
    failed = outcomes_of(copy, name)
    assert set(failed) == {"exactly_once"}
    assert {each[VALUES[name]] is None for each in failed["exactly_once"].violations} == {True, False}

    def each_in_a_row_of_its_own(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        emptied, *others = found
        assert len(others) >= len(columns)
        changed_rows = [{**row, column: row[column] + 1} for column, row in zip(columns, others, strict=False)]
        return [emptied, *changed_rows, *others[len(columns) :]]

    recompact(copy, name, each_in_a_row_of_its_own)
    proof = copy.check(name, full=False)
    wrong = 1 + len(columns)
    assert (proof.passed, proof.facts["missing"], proof.facts["unexpected"]) == (False, wrong, wrong)


def numbers_of(project: Project, name: str) -> list[str]:
    """The columns of a table with exact numbers, including hidden ones."""
    table = project.workspace().table(project.declared[name]).output.location.load()
    assert table is not None
    kinds = (pa.types.is_integer, pa.types.is_decimal)
    return [each.name for each in table.to_pyarrow_table().schema if any(kind(each.type) for kind in kinds)]


def _ranged(stats: dict[str, Any]) -> str:
    """A column that has more than one value in a file."""
    return str(next(name for name, least in stats["minValues"].items() if least != stats["maxValues"][name]))


def raised(stats: dict[str, Any]) -> None:
    name = _ranged(stats)
    stats["minValues"][name] = stats["maxValues"][name]


def lowered(stats: dict[str, Any]) -> None:
    name = _ranged(stats)
    stats["maxValues"][name] = stats["minValues"][name]


def nulled(stats: dict[str, Any]) -> None:
    name = next(iter(stats["nullCount"]))
    stats["nullCount"][name] = stats["numRecords"]


def emptied(stats: dict[str, Any]) -> None:
    stats["numRecords"] = 0


@pytest.mark.parametrize("name", one_in_gate(*LIVE, PARTLY))
@pytest.mark.parametrize(
    ("change", "said"),
    [(raised, "a minimum of"), (lowered, "a maximum of"), (nulled, "nulls of"), (emptied, "rows: 0, it holds")],
)
def test_a_wrong_bound_or_count_of_a_file(
    copy: Project, name: str, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    path = misstate(copy, name, change)
    failed = outcomes_of(copy, name)
    assert set(failed) == {"rows_conserved"}
    (violation,) = failed["rows_conserved"].violations
    assert violation.startswith(f"the log states of file {path}, {said}")


@pytest.mark.parametrize("name", one_in_gate(*LIVE, PARTLY))
def test_an_epoch_that_was_left_out_is_found(copy: Project, name: str) -> None:
    last = copy.record(name).epoch
    forge_commit(copy, name, epoch=last + 2)
    failed = outcomes_of(copy, name, "positions_contiguous", "ledger_matches_table")
    assert failed["positions_contiguous"].violations == [f"epoch {last + 2} follows epoch {last}"]
    assert f"the table is at epoch {last + 2}" in failed["ledger_matches_table"].summary


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, CommitKind.EPOCH) for name in ("keyed", "totals")),
        *(
            pytest.param(name, CommitKind.EPOCH, marks=pytest.mark.full)
            for name in ("added", "child", "clicked", PARTLY)
        ),
        ("keyed", CommitKind.RESTATE),
        pytest.param("clicked", CommitKind.RESTATE, marks=pytest.mark.full),
    ],
)
def test_a_position_that_went_back_is_found(copy: Project, name: str, kind: CommitKind) -> None:
    record = copy.record(name)
    forge_commit(
        copy, name, kind=kind, epoch=record.epoch + (kind is CommitKind.EPOCH), position=set_back(record.position)
    )
    failed = outcomes_of(copy, name)
    assert {"positions_contiguous", "ledger_matches_table", "exactly_once"} <= set(failed)
    if kind is CommitKind.EPOCH:
        assert "went back from" in failed["positions_contiguous"].violations[0]
    else:
        assert "but the plan read" in failed["positions_contiguous"].violations[0]
        assert "the position in the ledger's plan is not" in failed["ledger_matches_table"].summary
    assert failed["exactly_once"].facts["missing"] + failed["exactly_once"].facts["unexpected"] > 0


def test_a_file_of_a_bucket_that_was_skipped(copy: Project) -> None:
    record = copy.record(PARTLY)
    _, table = table_of(record.position)
    bucket = next(number for number, each in table.buckets.items() if not each.done)
    was = table.buckets[bucket].next
    skipped = table.buckets[bucket].model_copy(update={"next": was + 1})
    forge_epoch(copy, PARTLY, changed(record.position, buckets={**table.buckets, bucket: skipped}))
    failed = outcomes_of(copy, PARTLY)
    assert set(failed) == {"positions_contiguous", "exactly_once"}
    assert failed["positions_contiguous"].violations == [
        f"epoch {record.epoch + 1}: bucket {bucket} of log moved from {was} to {was + 1}, but the plan read nothing"
    ]
    assert failed["exactly_once"].facts["missing"] > 0


@pytest.mark.parametrize("name", one_in_gate("totals", "keyed", "added", "child"))
def test_versions_that_were_skipped_are_found(copy: Project, name: str) -> None:
    append(copy, "events" if name == "added" else "orders", 300, 310)
    if name == "child":
        assert copy.refresh("totals").report.record.live
    record = copy.record(name)
    upstream, table = table_of(record.position)
    further = table.version + 1
    forge_epoch(copy, name, changed(record.position, version=further))
    failed = outcomes_of(copy, name)
    assert set(failed) == {"exactly_once"}
    assert failed["exactly_once"].facts["missing"] > 0
    assert failed["exactly_once"].facts["derived_from"] == {upstream: further}

    forge_epoch(copy, name, changed(record.position, version=further + 1, changes=table.changes + 10))
    assert outcomes_of(copy, name, "positions_contiguous")["positions_contiguous"].violations == [
        f"epoch {record.epoch + 2}: the change log of {upstream} moved from {further} to {further + 1}, "
        "but the plan read nothing",
        f"epoch {record.epoch + 2}: 10 rows of {upstream} were counted, but the plan read 0",
    ]


@pytest.mark.parametrize("name", one_in_gate(*OVER_TABLES))
@pytest.mark.parametrize(
    ("changes", "said"),
    [({"table_id": "another"}, "the table id of"), ({"pinned": 99}, "the pinned version of")],
)
def test_another_table_or_version_than_was_pinned(copy: Project, name: str, changes: dict[str, Any], said: str) -> None:
    forge_epoch(copy, name, changed(copy.record(name).position, **changes))
    failed = outcomes_of(copy, name, "positions_contiguous", "ledger_matches_table", "rows_conserved")
    assert set(failed) == {"positions_contiguous"}
    assert said in failed["positions_contiguous"].summary


@pytest.mark.parametrize("name", one_in_gate(*LIVE, PARTLY))
def test_a_record_that_was_restated_otherwise_is_found(copy: Project, name: str) -> None:
    record = copy.record(name)
    for changes, check, said in (
        ({"rows_total": record.rows_total + 1}, "rows_conserved", f"epochs wrote {record.rows_total + 1} rows"),
        ({"live": not record.live}, "ledger_matches_table", "the live flag in the ledger's plan is not"),
        ({"fingerprint": {"query": "0"}}, "ledger_matches_table", "the fingerprint in the ledger's plan is not"),
    ):
        same = record.model_dump(include={"rows_total", "live", "fingerprint", "rows_read", "rows_written"})
        forge_commit(copy, name, kind=CommitKind.RESTATE, **{**same, **changes})
        failed = outcomes_of(copy, name, "positions_contiguous", "ledger_matches_table", "rows_conserved")
        assert set(failed) == {check}
        assert said in failed[check].summary
    forge_commit(copy, name, kind=CommitKind.RESTATE, **same)
    assert not outcomes_of(copy, name, "positions_contiguous", "ledger_matches_table", "rows_conserved")


def without_reads(plan: dict[str, Any]) -> None:
    plan["reads"] = []


def other_before(plan: dict[str, Any]) -> None:
    plan["before"] = plan["after"]


def not_live(plan: dict[str, Any]) -> None:
    plan["live"] = not plan["live"]


@pytest.mark.parametrize("name", one_in_gate(*LIVE, PARTLY))
@pytest.mark.parametrize("alter", [without_reads, other_before, not_live])
def test_a_plan_of_the_ledger_that_was_altered(
    copy: Project, name: str, alter: Callable[[dict[str, Any]], None]
) -> None:
    record = copy.record(name)
    (place,) = plan_files(copy, record.target, record.epoch)
    plan = json.loads(place.read_text())["plan"]
    alter(plan)
    alter_entry(copy, record.target, record.epoch, plan=plan)
    failed = outcomes_of(copy, name, "positions_contiguous", "ledger_matches_table", "rows_conserved")
    assert set(failed) == {"ledger_matches_table", *(["positions_contiguous"] if alter is without_reads else [])}
    assert f"epoch {record.epoch}: the plan was altered: it was stored as" in failed["ledger_matches_table"].summary


@pytest.mark.parametrize("name", one_in_gate(*LIVE, PARTLY))
def test_a_plan_of_the_ledger_that_was_lost_or_has_another_hash(copy: Project, name: str) -> None:
    record = copy.record(name)
    alter_entry(copy, record.target, record.epoch, plan_hash="0000")
    said = f"epoch {record.epoch} was committed by plan {record.plan_hash}, the ledger has"
    assert outcomes_of(copy, name, "ledger_matches_table")["ledger_matches_table"].violations[-1] == f"{said} 0000"
    (place,) = plan_files(copy, record.target, record.epoch)
    place.unlink()
    assert outcomes_of(copy, name, "ledger_matches_table")["ledger_matches_table"].violations[-1] == f"{said} none"


@pytest.mark.parametrize("name", one_in_gate(*LIVE, PARTLY))
def test_a_hand_made_append_is_found(copy: Project, name: str) -> None:
    version = append_by_hand(copy, name)
    failed = outcomes_of(copy, name)
    assert set(failed) == set(CHECKS)
    assert {each.summary for each in failed.values()} == {
        f"version {version} changed data, but was not written by an epoch"
    }
