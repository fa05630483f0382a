"""Every check finds the damage that it is meant to find, and names it. Copies of one undamaged project are damaged."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.app.lifecycle import reset
from backfill_assets.app.table_checks import CHECKS, Outcome
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.core.progress.positions import IngestPosition, PartitionState, ViewPosition
from backfill_assets.declare.model import KafkaSource
from tests.support.damage import (
    Change,
    alter_entry,
    append_by_hand,
    doubled,
    file_of,
    first,
    forge_commit,
    insert_again,
    missing,
    misstate,
    plan_files,
    recompact,
    replaced_by_a_double,
    rewrite,
)
from tests.support.project import Project
from tests.support.settings import one_in_gate

pytestmark = pytest.mark.e2e

TABLES = ("orders", "large")
EPOCHS = 3


@pytest.fixture(scope="module")
def sound(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A source and a view over it, three epochs each, every check passed."""
    project = Project(root=tmp_path_factory.mktemp("sound"), servers=broker)
    topic = project.topic(partitions=1)
    project.produce(topic, [{"id": number, "amount": number * 1.5} for number in range(12)])
    orders = kafka_source("orders", topic=topic, schema="id LONG, amount DOUBLE")
    large = materialized_view("large", query="SELECT id, amount FROM orders WHERE id % 4 > 0", upstreams=[orders])
    project.declare(orders, large)
    for name in TABLES:
        assert len(project.refresh(name, Limits(chunk_rows=4)).report.epochs) == EPOCHS
        for check in CHECKS:
            outcome = project.check(name, check)
            assert outcome.passed, (name, check, outcome)
    return project


@pytest.fixture
def copy(sound: Project, tmp_path: Path) -> Project:
    """A copy of the undamaged project, to be damaged."""
    shutil.copytree(sound.root, tmp_path, dirs_exist_ok=True)
    return Project(root=tmp_path, servers=sound.servers, declared=dict(sound.declared))


def failed(project: Project, name: str, check: str, **given: Any) -> Outcome:
    outcome = project.check(name, check, **given)
    assert not outcome.passed, outcome
    assert outcome.summary
    return outcome


def moved(record: CommitRecord, offsets: int) -> IngestPosition | ViewPosition:
    """The position of a record, with partition 0 moved by this many offsets."""
    position = record.position
    if isinstance(position, IngestPosition):
        return position.model_copy(update={"next": {0: position.next[0] + offsets}})
    assert isinstance(position, ViewPosition)
    source = position.sources["orders"]
    state: PartitionState = source.partitions[0].read_live(source.partitions[0].next + offsets)
    return ViewPosition(sources={"orders": source.model_copy(update={"partitions": {0: state}})})


@pytest.mark.parametrize("name", one_in_gate(*TABLES))
def test_an_epoch_that_was_left_out_is_named(copy: Project, name: str) -> None:
    forge_commit(copy, name, epoch=EPOCHS + 2)
    assert failed(copy, name, "positions_contiguous").violations == [f"epoch {EPOCHS + 2} follows epoch {EPOCHS}"]
    assert f"the table is at epoch {EPOCHS + 2}" in failed(copy, name, "ledger_matches_table").summary


@pytest.mark.parametrize("name", one_in_gate("large", "orders"))
@pytest.mark.parametrize(("offsets", "said"), [(5, "moved from 12 to 17"), (-3, "went back from 12 to 9")])
def test_a_position_that_jumps_is_named(copy: Project, name: str, offsets: int, said: str) -> None:
    forge_commit(copy, name, epoch=EPOCHS + 1, position=moved(copy.record(name), offsets))
    (violation,) = failed(copy, name, "positions_contiguous").violations
    partition = "partition 0 of the topic" if name == "orders" else "partition 0 of orders"
    assert violation.startswith(f"epoch {EPOCHS + 1}: {partition} {said}")
    assert len(failed(copy, name, "ledger_matches_table").violations) == 2


@pytest.mark.parametrize("name", one_in_gate(*TABLES))
def test_a_plan_that_was_deleted_or_altered_is_named(copy: Project, name: str) -> None:
    target = copy.declared[name].target
    (place,) = plan_files(copy, target, 1)
    place.unlink()
    assert "epoch 1 was committed by plan" in failed(copy, name, "ledger_matches_table").summary
    alter_entry(copy, target, 2, plan_hash="0000")
    assert "the ledger has 0000" in failed(copy, name, "ledger_matches_table").violations[1]
    assert copy.check(name, "positions_contiguous").passed


@pytest.mark.parametrize("name", one_in_gate("large", "orders"))
def test_an_external_append_fails_every_check_with_its_version(copy: Project, name: str) -> None:
    version = append_by_hand(copy, name)
    for check in CHECKS:
        assert f"version {version} changed data" in failed(copy, name, check).summary


DAMAGES: dict[str, tuple[Change, set[str], tuple[int, int]]] = {
    "missing": (missing, {"rows_conserved", "exactly_once"}, (1, 0)),
    "doubled": (doubled, {"unique_key", "rows_conserved", "exactly_once"}, (0, 1)),
    "replaced by a double": (replaced_by_a_double, {"unique_key", "exactly_once"}, (1, 1)),
    "changed": (first(lambda row: {"amount": row["amount"] + 0.5}), {"exactly_once"}, (1, 1)),
    "emptied": (first(lambda _row: {"amount": None}), {"exactly_once"}, (1, 1)),
}
OF_THE_VIEW = {"missing", "changed"}
"""Damage that the gate does to the view, too, and not to its source alone."""


@pytest.mark.parametrize(
    ("name", "change", "caught_by", "differences"),
    [
        pytest.param(
            name,
            *damage,
            id=f"{name}-{kind}",
            marks=() if name == "orders" or kind in OF_THE_VIEW else pytest.mark.full,
        )
        for name in TABLES
        for kind, damage in DAMAGES.items()
    ],
)
def test_a_damaged_data_file_is_caught_by_just_the_checks_that_can_see_it(
    copy: Project, name: str, change: Change, caught_by: set[str], differences: tuple[int, int]
) -> None:
    rewrite(copy, name, change)
    outcomes = {check: copy.check(name, check) for check in ("unique_key", "rows_conserved", "exactly_once")}
    assert {check for check, outcome in outcomes.items() if not outcome.passed} == caught_by
    proof = outcomes["exactly_once"]
    assert (proof.facts["missing"], proof.facts["unexpected"]) == differences
    damaged = {0, 1} if name == "orders" else {1, 2}
    assert {row["id"] for row in proof.violations} <= damaged
    if not outcomes["unique_key"].passed:
        assert outcomes["unique_key"].violations[0]["rows"] == 2


def halved(stats: dict[str, Any]) -> None:
    stats["maxValues"]["id"] //= 2


@pytest.mark.parametrize("name", one_in_gate(*TABLES))
def test_a_bound_that_does_not_hold_is_named_with_its_file(copy: Project, name: str) -> None:
    path = misstate(copy, name, halved, epoch=2)
    for full in (True, False):  # it was restated after the last proof
        (violation,) = failed(copy, name, "rows_conserved", full=full).violations
        assert violation == f"the log states of file {path}, a maximum of id: 3, it holds 7"
    assert all(copy.check(name, check).passed for check in CHECKS if check != "rows_conserved")


def test_rows_of_a_file_are_counted_of_which_the_log_does_not_say_how_many_it_has(copy: Project) -> None:
    misstate(copy, "large", lambda stats: stats.pop("numRecords"), epoch=2)
    written = copy.record("large").rows_total
    for full in (False, True):
        outcome = copy.check("large", "rows_conserved", full=full)
        assert (outcome.passed, outcome.facts["rows"]) == (True, written)
    rewrite(copy, "large", missing, epoch=2)
    for full in (False, True):
        (violation,) = failed(copy, "large", "rows_conserved", full=full).violations
        assert violation == f"epochs wrote {written} rows, the table has {written - 1}"


@pytest.mark.parametrize("name", one_in_gate(*TABLES))
def test_what_was_proved_before_is_left_to_the_full_proof_and_new_damage_is_seen_by_both(
    copy: Project, name: str
) -> None:
    orders = copy.declared["orders"]
    assert isinstance(orders, KafkaSource)
    copy.produce(orders.topic, [{"id": 101, "amount": 1.0}, {"id": 102, "amount": 2.0}])
    for each in TABLES:
        copy.refresh(each)
    newest = file_of(copy, name, copy.record(name).epoch)
    sound_bytes = newest.read_bytes()
    rewrite(copy, name, first(lambda _row: {"amount": -1.0}), epoch=copy.record(name).epoch)
    seen = failed(copy, name, "exactly_once", full=False)
    assert (seen.facts["missing"], seen.facts["since_epoch"]) == (1, EPOCHS)
    assert failed(copy, name, "exactly_once").facts["missing"] == 1
    newest.write_bytes(sound_bytes)
    since = copy.check(name, full=False)
    assert (since.passed, since.facts["since_epoch"]) == (True, EPOCHS)
    assert since.facts["rows_found"] == since.facts["rows_expected"] > 0

    rewrite(copy, name, missing, epoch=1)
    assert copy.check(name, full=False).facts["derived_from"] == "nothing new"
    assert failed(copy, name, "exactly_once").facts["missing"] == 1


def test_what_was_proved_of_an_earlier_life_is_proved_again(copy: Project) -> None:
    reset(copy.workspace(), "large")
    assert len(copy.refresh("large", Limits(chunk_rows=4)).report.epochs) >= EPOCHS
    rewrite(copy, "large", missing, epoch=1)
    seen = failed(copy, "large", "exactly_once", full=False)
    assert (seen.facts["missing"], seen.facts["since_epoch"]) == (1, 0)


@pytest.mark.parametrize("name", one_in_gate("large", "orders"))
def test_an_epoch_that_inserts_old_offsets_again_is_seen_where_they_were_proved_before(
    copy: Project, name: str
) -> None:
    rows = insert_again(copy, name, file_of(copy, name, 1))
    seen = failed(copy, name, "exactly_once", full=False)
    assert (seen.facts["missing"], seen.facts["unexpected"], seen.facts["since_epoch"]) == (0, rows, EPOCHS)
    assert {each["rows"] for each in failed(copy, name, "unique_key", full=False).violations} == {2}


@pytest.mark.parametrize("name", one_in_gate(*TABLES))
def test_a_compaction_since_the_last_pass_is_proved_by_what_it_moved(copy: Project, name: str) -> None:
    recompact(copy, name, lambda rows: rows)
    sound_one = copy.check(name, full=False)
    assert (sound_one.passed, sound_one.facts["scope"]) == (True, "what was written since")
    assert sound_one.facts["rows_found"] == copy.record(name).rows_total
    recompact(copy, name, replaced_by_a_double)
    seen = failed(copy, name, "exactly_once", full=False)
    assert (seen.facts["missing"], seen.facts["unexpected"]) == (1, 1)
    assert failed(copy, name, "unique_key", full=False).violations[0]["rows"] == 2
