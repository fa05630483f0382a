"""The list of mutations fits the code: each would change just the one place that it names."""

import ast
from functools import cache
from itertools import zip_longest

import pytest

from tests.mutations.cases import MUTATIONS
from tests.mutations.mutation import ROOT


@pytest.mark.parametrize("file", sorted({each.file for each in MUTATIONS}))
def test_a_mutation_changes_one_place_and_leaves_a_module_that_loads(file: str) -> None:
    text = text_of(file)
    for mutation in (each for each in MUTATIONS if each.file == file):
        changed, line = ast.parse(mutation.applied(text)), text.count("\n", 0, text.index(mutation.old)) + 1
        assert any(
            after is None or before is None or ast.dump(after) != ast.dump(before)
            for before, after in zip_longest(statements(file), changed.body)
            if before is None or (before.end_lineno or 0) >= line
        ), mutation.name
        for path, _, name in (selected.partition("::") for selected in mutation.tests):
            there = f"def {name.partition('[')[0]}(" in text_of(path) if name else (ROOT / path).exists()
            assert there, mutation.name


@cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text()


@cache
def statements(path: str) -> list[ast.stmt]:
    return ast.parse(text_of(path)).body


def test_names_of_mutations_are_unique() -> None:
    assert len({each.name for each in MUTATIONS}) == len(MUTATIONS) >= 40
