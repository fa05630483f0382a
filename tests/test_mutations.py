"""The list of mutations fits the code: each would change just the one place that it names."""

import ast
from functools import cache

import pytest

from tests.mutations.cases import MUTATIONS
from tests.mutations.mutation import ROOT


@pytest.mark.parametrize("file", sorted({each.file for each in MUTATIONS}))
def test_a_mutation_changes_one_place_and_leaves_a_module_that_loads(file: str) -> None:
    for mutation in (each for each in MUTATIONS if each.file == file):
        changed = mutation.applied(text_of(file))
        assert ast.dump(ast.parse(changed)) != meaning_of(file), mutation.name
        for path, _, name in (selected.partition("::") for selected in mutation.tests):
            there = f"def {name.partition('[')[0]}(" in text_of(path) if name else (ROOT / path).exists()
            assert there, mutation.name


@cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text()


@cache
def meaning_of(path: str) -> str:
    return ast.dump(ast.parse(text_of(path)))


def test_names_of_mutations_are_unique() -> None:
    assert len({each.name for each in MUTATIONS}) == len(MUTATIONS) >= 40
