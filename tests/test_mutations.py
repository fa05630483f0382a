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
    for path, _, name in (selected.partition("::") for selected in mutation.tests):
        assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text() if name else (ROOT / path).exists()


def test_names_of_mutations_are_unique() -> None:
    assert len({each.name for each in MUTATIONS}) == len(MUTATIONS) >= 40
