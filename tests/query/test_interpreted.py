"""A sqlglot that cannot be extended is told of itself, and not as an error of the query."""

import pytest

from backfill_assets.errors import EnvironmentSetupError
from backfill_assets.query import interpreted
from backfill_assets.query.parsing import tokenize


def test_compiled_modules_are_refused_and_those_of_python_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tokenize("SELECT a FROM t")
    place = "/packages/sqlglot/parser.cpython-311-x86_64-linux-gnu.so"
    monkeypatch.setattr(interpreted, "PARSER", place)
    with pytest.raises(EnvironmentSetupError, match=r"found /packages/sqlglot/parser\.cpython") as found:
        tokenize("SELECT a FROM t")
    assert "pip uninstall sqlglotc" in found.value.hint
