"""How far a search for rows goes that Spark cannot compute: not through too many, nor through rows of several tables."""

from types import SimpleNamespace
from typing import Any

import pytest

from backfill_assets.adapters.compute import poison_search
from backfill_assets.adapters.compute.poison_search import MAX_SEARCHED, Suspects, _named, poison_records, poison_rows
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.progress.reads import KafkaRead
from backfill_assets.query.ddl import Column
from backfill_assets.query.relational import RelationalQuery
from backfill_assets.query.rowwise import RowwiseQuery

ROWWISE = object.__new__(RowwiseQuery)
MANY = f"some of {MAX_SEARCHED + 1:,} rows, which are too many for one search"


def plan(rows: int) -> Any:
    ranges = {0: OffsetRange(start=5, end=5 + rows)}
    return SimpleNamespace(offset_reads=[KafkaRead(source="o", topic="o", isolation="read_committed", ranges=ranges)])


def test_too_many_records_or_rows_are_not_searched() -> None:
    found = Suspects(complete=False, unnamed=(MANY,))
    assert poison_records(ROWWISE, plan(MAX_SEARCHED + 1), {}, ["*"]) == found
    assert poison_rows(ROWWISE, {}, {}, ["*"], rows=MAX_SEARCHED + 1) == found
    assert poison_rows(ROWWISE, {}, {}, ["*"], rows=MAX_SEARCHED) == Suspects()


def test_where_there_is_no_query_nothing_can_be_wrong_with_a_record() -> None:
    assert poison_records(None, plan(MAX_SEARCHED + 1), {}, ["*"]) == Suspects()


@pytest.mark.parametrize(
    ("tables", "said"), [(("a",), "rows of table 'a' together"), (("a", "b"), "rows of several tables")]
)
def test_rows_that_are_computed_together_cannot_be_named(tables: tuple[str, ...], said: str) -> None:
    query = object.__new__(RelationalQuery)
    object.__setattr__(query, "upstreams", tables)
    (words,) = poison_rows(query, {}, {}, ["*"], rows=3).unnamed
    assert words.startswith(said)


def test_a_key_is_named_as_the_skip_command_spells_it_or_not_at_all() -> None:
    key = [Column("id", "INT"), Column("day", "DATE"), Column("name", "STRING")]
    assert _named(key, ["7", "2024-01-05", None]) == (("id", "7"), ("day", "2024-01-05"), ("name", None))
    assert _named(key, ["7", "+12000-01-01", "a"]) is None
    assert _named(key, ["seven", "2024-01-05", "a"]) is None


def test_an_error_that_is_not_about_values_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    class Rows:
        def selectExpr(self, *_: str) -> "Rows":  # noqa: N802  (Spark's name)
            return self

        def collect(self) -> None:
            raise RuntimeError("an executor is lost")

    monkeypatch.setattr(poison_search, "batch", lambda *_: Rows())
    with pytest.raises(RuntimeError, match="an executor is lost"):
        poison_search._refused(ROWWISE, {}, ["*"])
