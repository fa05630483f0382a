"""Stored documents: a release reads only those of its own formats, and otherwise reports what it found."""

import json
from typing import Any

import pytest

from backfill_assets.adapters.storage.documents import LEASE, DocumentKind
from backfill_assets.errors import StoredFormatError

KIND = DocumentKind(name="note", format=7)
PLACE = "object _state/notes/views/large.json"


def read(stored: object, kind: DocumentKind = KIND) -> Any:
    return kind.read(stored, lambda document: document["said"], target="views/large", place=PLACE)


def test_what_was_written_is_read_as_bytes_and_as_what_they_mean() -> None:
    written = KIND.written({"said": [1]})
    assert read(written) == read(json.dumps(written).encode()) == [1]


@pytest.mark.parametrize(
    ("found", "named", "hint"),
    [
        ({"format": 6}, "format 6", "continue with the release that wrote it"),
        ({"format": 8}, "format 8", "use the newer release that wrote it"),
        ({}, "no known format", "continue with the release that wrote it"),
        ({"format": None}, "no known format", "continue with"),
        ({"format": "7"}, "format '7'", "continue with"),
        ({"format": True}, "format True", "continue with"),
    ],
)
def test_another_format_is_refused_with_what_was_found_and_what_to_do(
    found: dict[str, object], named: str, hint: str
) -> None:
    with pytest.raises(StoredFormatError) as caught:
        read({"said": [1], **found})
    assert caught.value.message == f"views/large: {PLACE} is a note of {named}, expected format 7"
    assert caught.value.hint.startswith(hint)
    assert "`backfill reset large`" in caught.value.hint
    assert (caught.value.facts["expected"], caught.value.facts["found"]) == (7, found.get("format"))


def test_no_document_at_all_is_refused_like_one_without_a_format() -> None:
    others: tuple[object, ...] = ([], 7, None, b"[]")
    for stored in others:
        with pytest.raises(StoredFormatError, match="no known format"):
            read(stored)


def test_a_damaged_document_of_the_right_format_is_refused_with_the_reason() -> None:
    damaged: tuple[tuple[object, str], ...] = (
        (b'{"format": 7, "sa', "JSONDecodeError"),
        ({"format": 7}, "KeyError: 'said'"),
    )
    for stored, why in damaged:
        with pytest.raises(StoredFormatError, match=f"{PLACE} is not a note of format 7: {why}"):
            read(stored)


def test_what_can_be_done_instead_of_a_reset_is_said_where_there_is_something() -> None:
    with pytest.raises(StoredFormatError) as caught:
        read({}, LEASE)
    assert caught.value.hint.endswith("or delete the object once no run works on the table")
