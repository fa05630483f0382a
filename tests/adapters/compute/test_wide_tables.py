"""Where tables have many columns, Spark derives nothing from pairs of them, which takes minutes; other sessions stay as they
are."""

from types import SimpleNamespace
from typing import Any

import pytest

from backfill_assets.adapters.compute.table_compute import TableCompute
from backfill_assets.adapters.compute.table_inputs import TableInputs

DERIVES = "spark.sql.constraintPropagation.enabled"


class Conf:
    """The settings of a session."""

    def __init__(self) -> None:
        self.now: dict[str, str] = {}
        self.set = self.now.__setitem__
        self.unset = self.now.pop


@pytest.mark.parametrize(("columns", "expected"), [((64, 64), {}), ((2, 65), {DERIVES: "false"})])
@pytest.mark.parametrize("fails", [True, False])
def test_derivations_are_left_out_while_wide_tables_are_computed(
    columns: tuple[int, int], expected: dict[str, str], *, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: Any = None
    numbers = dict(zip("ab", columns, strict=True))
    conf, seen = Conf(), list[dict[str, str]]()

    def by_a_way(_self: TableCompute, attempt: Any, _chosen: Any) -> None:
        seen.append({**attempt.spark.conf.now})
        if fails:
            raise ZeroDivisionError

    monkeypatch.setattr(TableInputs, "columns", lambda _self, _plan, name: range(numbers[name]))
    monkeypatch.setattr(TableCompute, "_by_a_way", by_a_way)
    compute = TableCompute(runner=given, output=given, upstreams=dict.fromkeys("ab", given), query=given)
    attempt: Any = SimpleNamespace(plan=None, spark=SimpleNamespace(conf=conf))
    try:
        compute._compute(attempt, given)
    except ZeroDivisionError:
        assert fails
    assert (seen, conf.now) == ([expected], {})
