"""A Spark in the run's own process that dies: the next refresh in that process starts another one."""

from pathlib import Path

import pytest

from tests.support.dead_spark import refreshed_by_another_spark
from tests.support.over_connect import over_connect

pytestmark = pytest.mark.e2e


@pytest.mark.full
def test_a_spark_that_died_is_started_again(tmp_path: Path) -> None:
    found = over_connect("", refreshed_by_another_spark, tmp_path)
    assert found == {"codes": ["", ""], "right": True}
