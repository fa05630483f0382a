"""What Dagster is told of an error shows no secrets, whoever raised it."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from backfill_assets.app.table_checks import Checking
from backfill_assets.defs import assets, checks
from backfill_assets.errors import ComputeError

TOKEN = "token-of-a-session"
CONTEXT: Any = SimpleNamespace(log=logging.getLogger("run"), run=SimpleNamespace(tags={}, asset_selection=None))
ERRORS = [OSError(f"400 Bad Request: {TOKEN}"), ComputeError(f"400 Bad Request: {TOKEN}", hint="none")]


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)


def raised(error: Exception) -> Exception:
    """The error with a traceback, and one that led to it."""
    try:
        raise error from ValueError(TOKEN)
    except type(error) as found:
        return found


@pytest.mark.parametrize("error", ERRORS, ids=["of a store", "of this package"])
def test_a_refresh_that_failed_is_told_without_secrets(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    declared: Any = SimpleNamespace(target="views/a")
    try:
        raise raised(error)
    except Exception as found:
        said = assets._failure(CONTEXT, declared, found)
    assert "views/a: " in said
    assert "400 Bad Request: …" in said
    assert TOKEN not in said + caplog.text


def test_a_check_that_cannot_be_carried_out_is_told_without_secrets(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_given: object, **_named: object) -> None:
        raise raised(OSError(f"400 Bad Request: {TOKEN}"))

    monkeypatch.setattr(Checking, "run", fail)
    workspace: Any = None
    outcome = checks._outcome(CONTEXT, Checking(workspace, "a"), "exactly_once")
    assert outcome.summary == "could not be checked: OSError: 400 Bad Request: …"
    assert TOKEN not in caplog.text
