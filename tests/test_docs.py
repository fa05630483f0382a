"""The docs keep up with the code: what they list is complete, what they name exists, and their examples run."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from backfill_assets import errors
from backfill_assets.cli.commands import app
from backfill_assets.core.epoch.costs import STRATEGIES
from backfill_assets.query.refusals import AGGREGATE_HINTS, HINTS
from backfill_assets.query.rules_end import RULES_END
from scripts.api_page import PAGE, ROOT, page

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    """The code blocks of one language in a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands() -> Iterator[tuple[str, list[str]]]:
    """The command lines of all pages, as words: lines of sh blocks, and what begins with `backfill` or `make` in a text."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        lines = [line for block in blocks(path, "sh") for line in block.splitlines()]
        for line in (*lines, *re.findall(r"`((?:backfill|make) [^`]+)`", text)):
            yield named(path), shlex.split(line, comments=True)


def test_every_code_and_reason_is_listed() -> None:
    text = (ROOT / "docs" / "refusals.md").read_text(encoding="utf-8")
    codes = [getattr(errors, name).code for name in errors.__all__ if name != "BackfillError"]
    missing = [
        code
        for code in (*codes, *HINTS, *AGGREGATE_HINTS)
        if code not in RULES_END - {"UNSUPPORTED"} and f"`{code}`" not in text
    ]
    assert missing == []


def test_every_strategy_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in STRATEGIES if f'`"{name}"`' not in text] == []


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_every_linked_file_and_heading_exists(path: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
        file, _, heading = link.partition("#")
        target = path.parent / file if file else path
        assert "://" in link or target.exists(), link
        assert "://" in link or not heading or heading in anchors(target), link


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_every_command_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    known = {"backfill": set(get_command(app).commands), "make": targets}  # type: ignore[attr-defined]
    wrong = [
        (where, word)
        for where, (program, *words) in commands()
        for word in words[:1]
        if program in known and not word.startswith("-") and not known[program].issuperset(word.split("|"))
    ]
    assert wrong == []


@pytest.mark.parametrize("path", [path for path in PAGES if blocks(path, "python") and path != PAGE], ids=named)
def test_python_examples_of_a_page_run_one_after_another(path: Path) -> None:
    space: dict[str, object] = {"__file__": str(path)}
    for block in blocks(path, "python"):
        exec(compile(block, path, "exec"), space)


def test_the_api_page_is_what_the_docstrings_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "docs/api.md is out of date: run `make api`"
