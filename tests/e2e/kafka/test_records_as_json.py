"""Any text in a record is read as exactly one JSON value, as Python's `json` reads it, or the record is marked as bad."""

import json
import random
import re
from typing import TYPE_CHECKING

import pytest

from backfill_assets.adapters.sql.kafka_records import parse_records
from backfill_assets.query.ddl import parse_schema
from tests.support.kafka_rows import kafka_rows
from tests.support.settings import seeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

TEXTS = 6_000
TOKENS: tuple[str, ...] = (
    *"{}[],:\"'\\ \t\n\0\x7f/1-.",
    *('"a"', '"a":1', '"z":', '"end":1', '"record":[', '"value":', '"broken":"x"', "null", "true", "17", "-0", "01"),
    *('],"end":1}', '],"end":1,"z":[', '},"end":1}', '},"end":1,"z":{', '{"a":1}', '{"a":"x"}', "[1]", "{}", "[]"),
    *("//", "/*", "*/", "#", "\ufeff", "\u2028", "\u00a0", "é", "😀", "\\u0041", "\\ud83d", "\\ude00", "\\\\", '\\"'),
)
HALF_PAIR = re.compile("[\ud800-\udfff]")


def value(seed: random.Random, depth: int = 0) -> object:
    """Some JSON, with strings in it that look like more JSON."""
    kinds = ("text", "number", "other") if depth > 2 else ("text", "number", "other", "list", "object", "object")
    match seed.choice(kinds):
        case "text":
            return "".join(seed.choices(TOKENS, k=seed.randrange(4)))
        case "number":
            return seed.choice((0, -1, 17, 2.5))
        case "list":
            return [value(seed, depth + 1) for _ in range(seed.randrange(4))]
        case "object":
            return {seed.choice("abz"): value(seed, depth + 1) for _ in range(seed.randrange(4))}
        case _:
            return seed.choice((None, True, False))


def text(seed: random.Random) -> str:
    """A JSON object; or several texts in a row; or one with tokens inserted, removed or truncated."""
    whole = json.dumps({"a": value(seed), "b": value(seed)}, ensure_ascii=seed.random() < 0.5)
    match seed.randrange(5):
        case 0:
            return whole
        case 1:
            return "".join(seed.choices(TOKENS, k=seed.randrange(1, 9)))
        case 2:
            return whole + "".join(seed.choices(TOKENS, k=seed.randrange(1, 5)))
        case 3:
            at = seed.randrange(len(whole) + 1)
            return whole[:at] + seed.choice(TOKENS) + whole[at:]
        case _:
            first, last = sorted(seed.choices(range(len(whole) + 1), k=2))
            return seed.choice((whole[:first] + whole[last:], whole[first:last], whole[:last] + whole[first:]))


def as_python_reads(data: bytes) -> tuple[bool, object]:
    """Whether a record is good, and its value of column `a`; of repeated fields, the last one counts."""
    texts: list[str] = []

    def record_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
        texts.append(json.dumps(pairs, ensure_ascii=False))
        return dict(pairs)

    try:
        record = json.loads(data.decode(), object_pairs_hook=record_of)
    except ValueError:
        return False, None
    if not isinstance(record, dict) or any(map(HALF_PAIR.search, texts)):
        return False, None
    return True, record.get("a")


def as_column_reads(found: str | None, wanted: object) -> object:
    """The value of a STRING column: a string unchanged, anything else as JSON."""
    try:
        return found if found is None or isinstance(wanted, str) else json.loads(found)
    except ValueError:
        return found


@pytest.mark.parametrize("number", seeds(2, 40))
def test_every_text_is_read_as_python_reads_it(spark: "SparkSession", number: int) -> None:
    seed = random.Random(number)
    values = [text(seed).encode("utf-8", "surrogatepass") for _ in range(TEXTS)]
    rows = parse_records(kafka_rows(spark, values), columns=parse_schema("a STRING"), record_format="json")
    found = {row["_offset"]: row for row in rows.select("_offset", "a", "_error").collect()}
    wrong = []
    for at, data in enumerate(values):
        good, wanted = as_python_reads(data)
        row = found[at]
        if (row["_error"] is None, as_column_reads(row["a"], wanted)) != (good, wanted):
            wrong.append((data, good, wanted, row["a"], row["_error"]))
    assert wrong == []
    assert 0.2 < sum(row["_error"] is None for row in found.values()) / TEXTS < 0.8
