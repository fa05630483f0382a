"""The list of mutations fits the code: each would change just the one place that it names."""

import ast

import pytest

from tests.mutations.cases import MUTATIONS
from tests.mutations.mutation import ROOT, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[each.name for each in MUTATIONS])
def test_a_mutation_changes_one_place_and_leaves_a_module_that_loads(mutation: Mutation) -> None:
    sound = (ROOT / mutation.file).read_text()
    changed = mutation.applied(sound)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(sound))
    assert all((ROOT / each.partition("::")[0]).exists() for each in mutation.tests if each.startswith("tests/"))


def test_names_of_mutations_are_told_apart() -> None:
    assert len({each.name for each in MUTATIONS}) == len(MUTATIONS) >= 40
