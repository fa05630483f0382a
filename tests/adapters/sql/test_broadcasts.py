"""Whether keys are broadcast depends on the memory that they take, not on their number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.adapters.sql.broadcasts import Keys, Memory, fit, has_texts, size_in_bytes, widths

GIB, MIB = 2**30, 2**20
SMALL = Memory(heap=GIB, collect=GIB, threshold=10 * MIB)
NEVER = Memory(heap=64 * GIB, collect=GIB, threshold=-1)


@pytest.mark.parametrize(
    ("keys", "memory", "fits"),
    [
        (Keys(rows=0, columns=1), SMALL, True),
        (Keys(rows=1_000_000, columns=1), SMALL, True),
        (Keys(rows=2_000_000, columns=1), SMALL, False),
        (Keys(rows=2_000_000, columns=1), Memory(heap=4 * GIB, collect=GIB, threshold=10 * MIB), True),
        (Keys(rows=300_000, columns=2, bytes=300_000 * 300), SMALL, False),
        (Keys(rows=100, columns=1, bytes=100 * MIB), SMALL, False),
        (Keys(rows=1, columns=1), NEVER, False),
        (Keys(rows=20_000_000, columns=1), Memory(heap=64 * GIB, collect=GIB, threshold=0), False),
        (Keys(rows=80_000, columns=1), Memory(heap=MIB, collect=MIB, threshold=10 * MIB), True),
    ],
    ids=[
        "none",
        "a million numbers",
        "two million numbers, small heap",
        "two million numbers",
        "wide keys, small heap",
        "a hundred huge texts",
        "the session forbids it",
        "more than the driver may collect",
        "Spark would send them by itself",
    ],
)
def test_keys_are_broadcast_where_they_fit(keys: Keys, memory: Memory, fits: bool) -> None:
    assert fit(keys, memory) is fits


SIZES = st.integers(0, 2**40)


@given(SIZES, SIZES, st.integers(1, 9), SIZES, SIZES)
def test_what_is_broadcast_never_takes_more_than_its_share(
    rows: int, size: int, columns: int, heap: int, collect: int
) -> None:
    keys, memory = (
        Keys(rows=rows, columns=columns, bytes=size),
        Memory(heap=heap, collect=collect, threshold=10 * MIB),
    )
    if fit(keys, memory):
        assert keys.in_memory <= max(10 * MIB, min(heap / 8, collect))
        assert fit(Keys(rows=rows // 2, columns=columns, bytes=size // 2), memory)


def test_only_texts_and_nested_values_are_measured() -> None:
    fixed = {"a": "bigint", "b": "decimal(38,9)", "c": "timestamp_ntz"}
    assert not has_texts(fixed)
    assert widths(fixed) == "0L"
    mixed = {**fixed, "d`e": "string", "f": "array<int>", "g": "string collate UNICODE_CI"}
    assert has_texts(mixed)
    assert widths(mixed) == (
        "0L + coalesce(octet_length(`d``e`), 0) + coalesce(octet_length(CAST(`f` AS STRING)), 0) * 8"
        " + coalesce(octet_length(`g`), 0)"
    )


@pytest.mark.parametrize(
    ("text", "unit", "size"),
    [("1g", "m", GIB), ("512", "m", 512 * MIB), ("10485760b", "", 10 * MIB), ("10 MB", "", 10 * MIB), ("-1", "", -1)],
)
def test_sizes_are_read_as_spark_writes_them(text: str, unit: str, size: int) -> None:
    assert size_in_bytes(text, unit=unit) == size


def test_what_is_no_size_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected a size such as 512m, found 'much'"):
        size_in_bytes("much")
