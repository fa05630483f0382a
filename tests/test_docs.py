"""The docs keep up with the code: every code is listed, every file that is named exists."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import backfill_assets
from backfill_assets import errors
from backfill_assets.query.refusals import AGGREGATE_HINTS, HINTS
from backfill_assets.query.relational import RULES_END

ROOT = Path(__file__).parent.parent


def test_every_code_and_reason_is_listed() -> None:
    text = (ROOT / "docs" / "refusals.md").read_text(encoding="utf-8")
    codes = [getattr(errors, name).code for name in errors.__all__ if name != "BackfillError"]
    missing = [
        code
        for code in (*codes, *HINTS, *AGGREGATE_HINTS)
        if code not in RULES_END - {"UNSUPPORTED"} and f"`{code}`" not in text
    ]
    assert missing == []


def test_every_linked_file_is_there() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            assert "://" in link or (page.parent / link).exists(), (page.name, link)


@pytest.mark.parametrize(
    "module", ["backfill_assets.declare.declarations", "backfill_assets.defs.definitions", "resources"]
)
def test_examples_of_the_public_interface_give_what_they_say(module: str) -> None:
    public = {name: getattr(backfill_assets, name) for name in ("kafka_source", "build_definitions")}
    found = doctest.testmod(importlib.import_module(module), extraglobs=public)
    assert (found.attempted > 0, found.failed) == (True, 0)
