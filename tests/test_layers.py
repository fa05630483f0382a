"""The house: folders import downwards only, what decides never touches the world, all of it is
small, and every folder says what it holds."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "backfill_assets"
FLOORS = (
    "cli",
    "defs",
    "testing",
    "app",
    "app.wiring",
    "adapters.proof",
    "adapters.compute",
    "adapters.sql",
    "adapters.kafka adapters.state adapters.delta",
    "adapters.spark",
    "adapters.local adapters.storage",
    "adapters.runtime",
    "declare",
    "core",
    "core.choice",
    "core.strategies",
    "core.epoch",
    "core.progress",
    "query",
    "",
)
"""From the roof down: modules of a folder import those of their own and of lower floors, never of the same or a higher."""

WORLD = {
    "pyspark",
    "delta",
    "deltalake",
    "dagster",
    "dagster_deltalake",
    "dagster_pyspark",
    "confluent_kafka",
    "pyarrow",
}
OURS = sorted(PACKAGE.rglob("*.py"))
MODULES = [path for path in OURS if path.name != "__init__.py"]
FOLDERS = sorted({path.parent for path in MODULES})
PURE = [path for path in MODULES if path.relative_to(PACKAGE).parts[0] in {"core", "query", "declare", "errors.py"}]
CORE = [path for path in MODULES if path.relative_to(PACKAGE).parts[0] == "core"]
APART = {"e2e", "support", "mutations"}
"""Folders of `tests/` that mirror nothing: what is proven end to end, helpers, faults put into the product."""
EVERYTHING = sorted(
    path
    for folder in ("backfill_assets", "benchmarks", "examples", "resources", "scripts", "tests")
    for path in (ROOT / folder).rglob("*.py")
)
LINES_OF_A_MODULE, LINES_OF_A_FUNCTION = 400, 50
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
LAZY = {PACKAGE / "declare" / "model.py": {"dagster"}}
"""Modules that may import these for type checking, or inside one function."""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements in a module or a statement, among them imports and functions; no expressions, which are most nodes."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for each in getattr(node, field, ()):
            yield each
            yield from statements(each)


@cache
def imports(path: Path) -> frozenset[tuple[str, bool]]:
    """Every imported module by full name, and whether the import stands at module level."""
    return frozenset(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, bool]]:
    tree = tree_of(path)
    top = {id(node) for node in tree.body}
    for node in statements(tree):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, id(node) in top) for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                yield module, id(node) in top
                yield from ((f"{module}.{alias.name}", id(node) in top) for alias in names)
            case ast.ImportFrom():
                raise AssertionError(f"{path}: line {node.lineno}: relative import; write the full name")


def folder_of(module: str) -> str | None:
    """The folder, dotted, that a module of ours lies in; None for what is no module of ours."""
    first, *names = module.split(".")
    path = PACKAGE.joinpath(*names)
    if first != PACKAGE.name or not path.with_suffix(".py").is_file():
        return None
    return ".".join(names[:-1])


def floor_of(folder: str) -> int:
    return next(number for number, floor in enumerate(FLOORS) if folder in (floor.split() or [""]))


def broken(rule: Callable[[Path], object], paths: Sequence[Path]) -> dict[str, object]:
    """What breaks a rule, by file or folder."""
    assert paths
    return {str(path.relative_to(ROOT)): found for path in paths if (found := rule(path))}


def test_imports_go_downwards_only() -> None:
    def rising(path: Path) -> set[str]:
        here = ".".join(path.relative_to(PACKAGE).parts[:-1])
        folders = {folder for name, _ in imports(path) if (folder := folder_of(name)) not in {None, here}}
        return {folder for folder in folders if folder is not None and floor_of(folder) <= floor_of(here)}

    assert broken(rising, MODULES) == {}


def test_what_decides_imports_no_spark_delta_dagster_or_kafka_client() -> None:
    def worldly(path: Path) -> set[str]:
        found = {(name, top) for name, top in imports(path) if name.partition(".")[0] in WORLD}
        return {name for name, top in found if top or name.partition(".")[0] not in LAZY.get(path, set())}

    assert broken(worldly, PURE) == {}


def test_the_core_imports_only_itself_and_the_errors() -> None:
    def others(path: Path) -> set[str]:
        ours = {name for name, _ in imports(path) if name.partition(".")[0] == PACKAGE.name}
        return {name for name in ours if not name.startswith(("backfill_assets.core", "backfill_assets.errors"))}

    assert broken(others, CORE) == {}


def test_the_core_reads_no_clock_and_no_random_numbers() -> None:
    unsteady = {"time", "random", "secrets", "uuid", "os"}
    assert broken(lambda path: {name.partition(".")[0] for name, _ in imports(path)} & unsteady, CORE) == {}


def test_the_package_knows_nothing_of_this_deployment() -> None:
    known = {"resources", "definitions"}
    assert broken(lambda path: {name.partition(".")[0] for name, _ in imports(path)} & known, OURS) == {}


def test_no_two_modules_have_the_same_name() -> None:
    names = Counter(path.stem for path in MODULES)
    assert {name for name, count in names.items() if count > 1} == set()


def test_every_folder_says_what_it_holds() -> None:
    def unlisted(folder: Path) -> set[str]:
        text = ast.get_docstring(tree_of(folder / "__init__.py")) or ""
        holds = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        folders = {path.parent.name for path in folder.glob("*/__init__.py")}
        listed = set(re.findall(r"^- `(\w+)`:", text, re.MULTILINE))
        return listed ^ (folders if folder == PACKAGE else holds)

    assert broken(unlisted, FOLDERS) == {}


def test_folders_of_tests_mirror_those_of_the_package() -> None:
    tests = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("*.py")}
    mirrored = {folder for folder in tests if folder.parts[:1] and folder.parts[0] not in APART}
    assert mirrored
    assert {str(folder) for folder in mirrored if not (PACKAGE / folder / "__init__.py").is_file()} == set()
    assert {str(folder) for folder in mirrored if not (ROOT / "tests" / folder / "__init__.py").is_file()} == set()


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Its lines without its docstring, which may say as much as users need to know."""
    end, text = function.end_lineno, function.body[0] if ast.get_docstring(function) is not None else None
    assert end is not None
    documented = text.end_lineno - text.lineno + 1 if text is not None and text.end_lineno is not None else 0
    return end - function.lineno + 1 - documented


def test_modules_and_functions_are_small() -> None:
    def large(path: Path) -> set[str]:
        functions = [node for node in statements(tree_of(path)) if isinstance(node, FUNCTIONS)]
        found = {node.name for node in functions if length(node) > LINES_OF_A_FUNCTION}
        return found | ({"the module"} if path.read_text().count("\n") > LINES_OF_A_MODULE else set())

    assert broken(large, EVERYTHING) == {}


def test_no_modules_import_each_other_in_a_circle_not_even_for_type_checking() -> None:
    known = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in MODULES}
    graph = {name: {found for found, _ in imports(path) if found in known} for name, path in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
