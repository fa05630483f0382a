"""Queries of random shape on real Spark: a view that follows changes by a rule is what the user's own text gives."""

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, assume, event, given, settings
from hypothesis import strategies as st

from backfill_assets.adapters.compute.first_rows import TooFewRowsError
from tests.support.drawn_queries import (
    COLUMNS,
    changes,
    nested_queries,
    queries,
    queries_of_first,
    queries_of_not_in,
    tables,
)
from tests.support.followed_frames import after, frames, visible
from tests.support.rules_in_sqlite import analyzed, followable, meets_nulls
from tests.support.settings import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.full]

SCHEMAS = {name: ", ".join(f"{column} BIGINT" for column in columns) for name, columns in COLUMNS.items()}


def test_the_first_rows_follow_on_spark_or_are_too_few(spark: "SparkSession") -> None:
    seen: Counter[str] = Counter()

    @settings(
        max_examples=examples(8),
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )
    @given(st.data())
    def follow(data: st.DataObject) -> None:
        query = analyzed(data.draw(queries_of_first(), label="query"))
        sets = followable(query)
        assume(sets and query.first is not None)
        changed = data.draw(st.sampled_from(sets), label="changed")
        rows = data.draw(tables(), label="before")
        then = data.draw(changes(rows, changed), label="after")
        steps = query.steps(changed)
        assume(not steps.parameters and not meets_nulls(query, steps, rows, then))
        used = {name: SCHEMAS[name] for name in query.upstreams}
        with (
            frames(spark, {name: rows[name] for name in used}, used) as old,
            frames(spark, {name: then[name] for name in used}, used) as new,
        ):
            expected: Counter[tuple[object, ...]] = visible(query, new)
            try:
                assert after(query, old, new, changed) == expected
                seen[steps.rule] += 1
                seen["moves"] += expected != visible(query, old)
            except TooFewRowsError:
                seen["too few"] += 1

    follow()
    assert min(seen["linear"] + seen["restricted"], seen["moves"]) > 0, seen


@settings(
    max_examples=examples(8),
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(st.data())
def test_rules_give_on_spark_what_the_query_gives(spark: "SparkSession", data: st.DataObject) -> None:
    query = analyzed(data.draw(st.one_of(queries(), nested_queries(), queries_of_not_in()), label="query"))
    sets = followable(query)
    assume(sets)
    changed = data.draw(st.sampled_from(sets), label="changed")
    rows = data.draw(tables(), label="before")
    then = data.draw(changes(rows, changed), label="after")
    assume(not meets_nulls(query, query.steps(changed), rows, then))
    event(query.steps(changed).rule)
    used = {name: SCHEMAS[name] for name in query.upstreams}
    with (
        frames(spark, {name: rows[name] for name in used}, used) as old,
        frames(spark, {name: then[name] for name in used}, used) as new,
    ):
        expected: Counter[tuple[object, ...]] = visible(query, new)
        assert after(query, old, new, changed) == expected
