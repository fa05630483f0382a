"""Long maps of stored documents, packed: unpacking returns the same maps, and they are smaller."""

import base64
import json
import random
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.adapters.delta.commits import metadata_of, record_of
from backfill_assets.adapters.state.ledger import ObjectLedger
from backfill_assets.adapters.storage.documents import DocumentKind
from backfill_assets.adapters.storage.object_store import ObjectFolder
from backfill_assets.adapters.storage.packing import READABLE_ENTRIES, pack, unpack
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Plan, Position
from backfill_assets.core.progress.positions import (
    IngestPosition,
    LogMark,
    OffsetRange,
    PartitionState,
    Phase,
    SourcePosition,
    ViewPosition,
    Witness,
)
from backfill_assets.core.progress.reads import BronzeRead, KafkaRead, Read
from backfill_assets.errors import StoredFormatError

TARGET, LIFE, MANY = "views/large", "1" * 12, 10_000

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False)
NUMBERS = st.integers(0, 2**63).map(str)
UNLIKE = st.dictionaries(st.text("01a#", max_size=3), SCALARS, max_size=3)


@st.composite
def long_maps(draw: st.DrawFn) -> dict[str, Any]:
    """Long maps by number: of whole numbers, of similar objects, or of anything."""
    size = draw(st.integers(READABLE_ENTRIES - 1, READABLE_ENTRIES + 3))
    keys = draw(st.lists(NUMBERS, min_size=size, max_size=size, unique=True))
    names = draw(st.lists(st.text("ab.", max_size=3), unique=True, max_size=3))
    alike = st.fixed_dictionaries(dict.fromkeys(names, st.integers() | SCALARS))
    kind = draw(st.sampled_from([st.integers(), alike, st.lists(st.integers(), max_size=2), SCALARS | UNLIKE]))
    some = draw(st.lists(kind, min_size=1, max_size=5))
    return {key: some[at % len(some)] for at, key in enumerate(keys)}


DOCUMENTS = st.recursive(
    SCALARS | long_maps(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a1#"), inner, max_size=3),
)


@given(st.dictionaries(st.text("ab1", max_size=2), DOCUMENTS, max_size=3))
def test_every_document_comes_back_as_it_was(document: dict[str, Any]) -> None:
    stored = json.loads(json.dumps(pack(document)))
    assert json.dumps(unpack(stored)) == json.dumps(document), "in the same order, too"


def test_objects_keep_the_order_of_their_fields() -> None:
    orders = [{"a": 1, "b": 2}, {"b": 2, "a": 1}]
    document = {"next": {str(each): orders[each % 2] for each in range(READABLE_ENTRIES + 1)}}
    assert json.dumps(unpack(json.loads(json.dumps(pack(document))))) == json.dumps(document)


def test_truth_values_are_no_numbers() -> None:
    document = {"live": {str(each): each % 2 == 0 for each in range(READABLE_ENTRIES + 1)}}
    stored = json.loads(json.dumps(pack(document)))
    assert stored != document, "it is packed"
    assert json.dumps(unpack(stored)) == json.dumps(document)


@pytest.mark.parametrize(("entries", "readable"), [(READABLE_ENTRIES, True), (READABLE_ENTRIES + 1, False)])
def test_a_short_map_is_not_packed(entries: int, readable: bool) -> None:
    document = {"next": {str(each): 7 for each in range(entries)}, "by name": {f"a{each}": 7 for each in range(500)}}
    packed = pack(document)
    assert (packed == document) == readable
    assert packed["by name"] == document["by name"]
    assert unpack(packed) == document


@pytest.mark.parametrize("odd", ["007", "²", "-1", "9" * 30])
def test_keys_that_are_no_plain_numbers_come_back_as_they_were(odd: str) -> None:
    document = {"next": {odd: 1, **{str(each): 7 for each in range(READABLE_ENTRIES)}}}
    assert unpack(json.loads(json.dumps(pack(document)))) == document


def offsets(seed: int, most: int) -> list[int]:
    drawn = random.Random(seed)
    return [drawn.randrange(most) for _ in range(MANY)]


STARTS, READ = offsets(1, 10**8), offsets(2, 10**6)


def moved(by: int) -> list[int]:
    """How far all partitions have been read after each got at most this many more records."""
    return [start + read + more for start, read, more in zip(STARTS, READ, offsets(3, by), strict=True)]


def of_a_source(ends: list[int]) -> IngestPosition:
    by_number = dict(enumerate(STARTS))
    log = LogMark(epochs=dict(enumerate(offsets(4, 9))), witnesses={7: Witness(offset=3, digest="d")})
    return IngestPosition(
        topic="t", topic_id="x", history=by_number, begin=by_number, next=dict(enumerate(ends)), log=log
    )


def of_a_view(ends: list[int]) -> ViewPosition:
    partitions = {
        at: PartitionState(phase=Phase.FINISHED, start=start, next=end, live=end, target=end)
        for at, (start, end) in enumerate(zip(STARTS, ends, strict=True))
    }
    return ViewPosition(sources={"t": SourcePosition(incarnation=LIFE, version=7, partitions=partitions)})


def read_between(before: list[int], after: list[int], *, live: bool) -> Read:
    pairs = zip(before, after, strict=True)
    ranges = {at: OffsetRange(start=start, end=end) for at, (start, end) in enumerate(pairs)}
    if live:
        return BronzeRead(source="t", incarnation=LIFE, version=7, ranges=ranges)
    return KafkaRead(source="t", topic="t", isolation="read_committed", ranges=ranges)


def record(position: Position) -> CommitRecord:
    return CommitRecord(
        kind=CommitKind.EPOCH, target=TARGET, incarnation=LIFE, epoch=1, attempt="2" * 12, plan_hash="h", fingerprint={},
        position=position, live=True, started_at=0, finished_at=0, created_at=0,
    )  # fmt: skip


def plan(before: Position, after: Position, read: Read) -> Plan:
    return Plan(
        target=TARGET, incarnation=LIFE, epoch=1, fingerprint={}, reads=(read,), before=before, after=after, live=True
    )


NOW, LATER = moved(1), moved(1_000)


@pytest.mark.parametrize(
    ("position", "kilobytes", "plainly"), [(of_a_source(LATER), 120, 550), (of_a_view(LATER), 120, 900)]
)
def test_a_commit_of_ten_thousand_partitions_is_small_and_complete(
    position: Position, kilobytes: int, plainly: int
) -> None:
    made = record(position)
    metadata = metadata_of(made)
    assert len(made.model_dump_json()) > plainly * 1_000
    assert len(metadata["userMetadata"]) < kilobytes * 1_000
    assert record_of([{"commitInfo": metadata}], TARGET, 7) == made


@pytest.mark.parametrize(("positions", "kilobytes", "plainly"), [(of_a_source, 155, 1_500), (of_a_view, 155, 2_000)])
def test_a_plan_of_ten_thousand_partitions_stores_repeated_values_once(
    tmp_path: Any, positions: Any, kilobytes: int, plainly: int
) -> None:
    made = plan(positions(NOW), positions(LATER), read_between(NOW, LATER, live=positions is of_a_view))
    ledger = ObjectLedger(ObjectFolder(uri=str(tmp_path)))
    assert ledger.append(made)
    (path,) = tmp_path.rglob("*.json")
    assert len(made.model_dump_json()) > plainly * 1_000
    assert path.stat().st_size < kilobytes * 1_000
    (entry,) = ledger.entries(TARGET, LIFE, since=1, until=1)
    assert (entry.plan, entry.found_hash) == (made, made.hash)


def packed(said: object) -> str:
    return base64.b64encode(zlib.compress(json.dumps(said).encode())).decode()


SOUND = {"keys": [[0, 1]], "maps": [{"keys": 0, "fields": False, "columns": [{"name": "n", "values": ["a", "b"]}]}]}
DAMAGED = [
    ("nothing", 7),
    ("not base64", "§§"),
    ("not compressed", base64.b64encode(b"some text").decode()),
    ("cut short", packed(SOUND)[:-8]),
    ("no columns", packed({"keys": [], "maps": 7})),
    ("unknown keys", packed({**SOUND, "keys": []})),
    ("fewer values than keys", packed({**SOUND, "keys": [[0, 1, 1]]})),
    ("fewer maps than places", packed({**SOUND, "maps": []})),
    ("of another shape", packed([SOUND])),
]


@pytest.mark.parametrize("said", [said for _, said in DAMAGED], ids=[name for name, _ in DAMAGED])
def test_what_is_packed_wrongly_is_refused_like_any_damaged_document(said: object) -> None:
    kind = DocumentKind(name="note", format=2)
    assert unpack({"next": {"#": 0}, "#packed": packed(SOUND)}) == {"next": {"0": "a", "1": "b"}}
    with pytest.raises(
        StoredFormatError, match="here is not a note of format 2: ValueError: its packed maps are damaged"
    ):
        kind.read({"format": 2, "next": {"#": 0}, "#packed": said}, dict, target=TARGET, place="here")
