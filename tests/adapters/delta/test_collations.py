"""Columns whose texts are equal though their bytes differ, as the log says."""

import json
from typing import Any

import pytest

from backfill_assets.adapters.delta.column_metadata import collated

TEXTS = {"type": "array", "elementType": "string", "containsNull": True}


def column(name: str, kind: Any = "string", **collations: str) -> dict[str, Any]:
    """A column, or a field of a struct, as Spark writes it into the log."""
    metadata = {"__COLLATIONS": collations} if collations else {}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


@pytest.mark.parametrize(
    ("found", "is_collated"),
    [
        (column("k", k="spark.UTF8_LCASE"), True),
        (column("k", k="icu.UNICODE_CI"), True),
        (column("k", k="spark.UTF8_BINARY"), False),
        (column("k"), False),
        (column("k", TEXTS, **{"k.element": "spark.UTF8_LCASE"}), True),
        (column("k", {"type": "struct", "fields": [column("a"), column("b", b="icu.de_AI")]}), True),
        (column("k", {"type": "struct", "fields": [column("a"), column("b", TEXTS)]}), False),
    ],
)
def test_texts_with_a_collation_are_found_wherever_they_are(found: dict[str, Any], *, is_collated: bool) -> None:
    schema = json.dumps({"type": "struct", "fields": [column("id", "long"), column("other"), found]})
    assert collated(schema) == (["k"] if is_collated else [])


def test_collations_may_be_told_as_text() -> None:
    told = {**column("k"), "metadata": {"__COLLATIONS": json.dumps({"k": "spark.UTF8_LCASE"})}}
    assert collated(json.dumps({"type": "struct", "fields": [told]})) == ["k"]
