"""The list of mutations fits the code: each would change just the one place that it names."""

import ast
from functools import cache

import pytest

from tests.mutations.cases import MUTATIONS
from tests.mutations.mutation import ROOT, Mutation


@pytest.mark.parametrize("file", sorted({each.file for each in MUTATIONS}))
def test_a_mutation_changes_one_place_and_leaves_a_module_that_loads(file: str) -> None:
    for mutation in (each for each in MUTATIONS if each.file == file):
        before, after = changed_statements(mutation)
        assert before != after, mutation.name
        for path, _, name in (selected.partition("::") for selected in mutation.tests):
            there = f"def {name.partition('[')[0]}(" in text_of(path) if name else (ROOT / path).exists()
            assert there, mutation.name


def changed_statements(mutation: Mutation) -> tuple[str, str]:
    """The statements of its module that a mutation changes, before and after. To read whole modules takes much longer."""
    text = text_of(mutation.file)
    assert text.count(mutation.old) == 1, mutation.name
    first = text.count("\n", 0, text.index(mutation.old)) + 1
    last = first + mutation.old.rstrip("\n").count("\n")
    touched = [(begin, end) for begin, end in places(mutation.file) if begin <= last and end >= first]
    begin, end = min((first, *(each for each, _ in touched))), max((last, *(each for _, each in touched)))
    part = "".join(text.splitlines(keepends=True)[begin - 1 : end])
    before, after = (ast.dump(ast.parse(each)) for each in (part, mutation.applied(part)))
    return before, after


@cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text()


@cache
def places(path: str) -> list[tuple[int, int]]:
    """The first and the last line of each statement of a module."""
    found = []
    for each in ast.parse(text_of(path)).body:
        lines = [each.lineno, *(decorator.lineno for decorator in getattr(each, "decorator_list", ()))]
        found.append((min(lines), each.end_lineno or each.lineno))
    return found


def test_names_of_mutations_are_unique() -> None:
    assert len({each.name for each in MUTATIONS}) == len(MUTATIONS) >= 40
