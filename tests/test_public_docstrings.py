"""Every public name has a docstring with all its sections, and every example in one gives what it says.

- A function: Args for all parameters, Returns unless it returns None, Raises where it raises, Examples.
- A class: Attributes or Args for its fields or its constructor's parameters, Examples; an error or enum that adds nothing to
  its base needs its meaning alone.
- A method: as a function, without Examples. One that takes no argument says in its first sentence what it returns.
"""

import ast
import doctest
import importlib
import os
from collections.abc import Iterator
from unittest.mock import patch

import griffe
import pytest

import backfill_assets
from scripts.api_page import ROOT, SECTIONS, loaded

MODULES = sorted(
    {section.module for section in SECTIONS}
    | {
        "backfill_assets.adapters.kafka.connector",
        "backfill_assets.adapters.spark.resource",
        "backfill_assets.adapters.state.state_store",
        "backfill_assets.declare.arguments",
        "backfill_assets.declare.declarations",
        "backfill_assets.defs.component",
        "backfill_assets.defs.definitions",
        "resources.cluster",
        "resources.local",
    }
)
ONLY = {
    "backfill_assets.adapters.kafka.connector": {"KafkaConnector"},
    "backfill_assets.adapters.spark.resource": {"SparkResource"},
    "backfill_assets.adapters.state.state_store": {"StateStore"},
}
"""Of modules that the root exports something from, what it exports."""
KINDS = griffe.DocstringSectionKind
Public = griffe.Function | griffe.Class | griffe.Attribute


def public() -> Iterator[Public]:
    """All public functions and classes, with the methods and properties of the classes."""
    code = loaded()
    for module in MODULES:
        for name in sorted(ONLY.get(module, code[module].exports or ())):
            member = code[module].members.get(name)
            if isinstance(member, griffe.Function | griffe.Class):
                yield member
            if isinstance(member, griffe.Class):
                yield from _public_methods(member)


def _public_methods(found: griffe.Class) -> Iterator[Public]:
    for member in found.members.values():
        if member.name.startswith("_") or not isinstance(member, griffe.Function | griffe.Attribute):
            continue
        if isinstance(member, griffe.Function) or "property" in member.labels:
            yield member


def missing(found: Public) -> list[str]:
    """The sections that a docstring lacks, with the names that one does not tell."""
    text = found.docstring.value if found.docstring else ""
    if not text.split("\n\n")[0].strip().endswith((".", ":")):
        return ["a first sentence"]
    if isinstance(found, griffe.Class):
        return [*_unnamed(found, _fields(found)), *_without(found, KINDS.examples, needed=_adds_something(found))]
    if isinstance(found, griffe.Attribute):
        return []
    parameters = [each.name for each in found.parameters if each.name not in {"self", "cls"}]
    is_method = found.parent is not None and found.parent.is_class
    says_it_all = is_method and not parameters
    return [
        *_unnamed(found, parameters),
        *_without(found, KINDS.returns, needed=not says_it_all and str(found.returns) != "None"),
        *_without(found, KINDS.raises, needed=not says_it_all and _raises(found)),
        *_without(found, KINDS.examples, needed=not is_method),
    ]


def _without(found: Public, kind: griffe.DocstringSectionKind, *, needed: bool) -> list[str]:
    return [kind.value] if needed and not any(section.kind is kind for section in _sections(found)) else []


def _unnamed(found: Public, names: list[str]) -> list[str]:
    told = {
        each.name.lstrip("*")
        for section in _sections(found)
        if section.kind in {KINDS.parameters, KINDS.attributes}
        for each in section.value
    }
    return [f"argument {name}" for name in names if name not in told]


def _sections(found: Public) -> list[griffe.DocstringSection]:
    return found.docstring.parse(griffe.Parser.google) if found.docstring else []


def _fields(found: griffe.Class) -> list[str]:
    """What its constructor takes, or the fields that it declares itself; inherited ones are told by the base."""
    init = found.members.get("__init__")
    if isinstance(init, griffe.Function):
        return [each.name for each in init.parameters if each.name != "self"]
    return [
        each.name.removesuffix("_")
        for each in found.members.values()
        if isinstance(each, griffe.Attribute)
        and each.annotation is not None
        and "property" not in each.labels
        and not each.name.startswith("_")
        and "ClassVar" not in str(each.annotation)
    ]


def _adds_something(found: griffe.Class) -> bool:
    return bool(_fields(found))


def _raises(found: griffe.Function) -> bool:
    """Whether its own body raises; what functions that it calls raise is not seen."""
    tree = ast.parse((ROOT / found.relative_filepath).read_text(encoding="utf-8"))
    bodies = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == found.name)
    body = next(each for each in bodies if each.end_lineno == found.endlineno)
    return any(isinstance(each, ast.Raise) and each.exc is not None for each in ast.walk(body))


def test_a_public_name_says_what_it_takes_returns_and_raises() -> None:
    names = [*public()]
    assert len(names) > len(MODULES)
    assert {str(found.path): lacks for found in names if (lacks := missing(found))} == {}


def test_the_public_interface_is_what_the_root_exports_and_the_page_shows() -> None:
    shown = {name for section in SECTIONS for name in section.names if section.module == "backfill_assets"}
    assert shown == set(backfill_assets.__all__)


@pytest.mark.parametrize("module", [module for module in MODULES if module != "backfill_assets"])
def test_examples_return_what_they_show(module: str) -> None:
    names = {name: getattr(backfill_assets, name) for name in backfill_assets.__all__}
    loaded_module = importlib.import_module(module)
    with patch.dict(os.environ):
        found = doctest.testmod(loaded_module, extraglobs=names | vars(loaded_module))
    assert (found.attempted > 0, found.failed) == (True, 0)
