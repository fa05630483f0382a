"""The layers of design.md §5, read from the imports of every module: what decides never touches the world."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "backfill_assets"
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
PURE_QUERY = [
    PACKAGE / "query" / name for name in ("ddl.py", "rowwise.py", "aggregate.py", "grouping.py", "broadcasts.py")
]
CORE = sorted((PACKAGE / "backfill").rglob("*.py"))
PURE = [*CORE, *(path for path in PURE_QUERY if path.exists()), PACKAGE / "errors.py", PACKAGE / "model.py"]
OURS = sorted([*PACKAGE.rglob("*.py"), *(ROOT / "resources").rglob("*.py")])
LAZY = {PACKAGE / "model.py": {"dagster"}}
"""Modules that may import these for type checking, or inside one function."""


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every imported module by full name, and whether the import stands at module level."""
    tree = ast.parse(path.read_text())
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, id(node) in top) for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                yield module, id(node) in top
                yield from ((f"{module}.{alias.name}", id(node) in top) for alias in names)
            case ast.ImportFrom():
                raise AssertionError(f"{path}: line {node.lineno}: relative import; write the full name")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PURE, ids=named)
def test_what_decides_imports_no_spark_delta_dagster_or_kafka_client(path: Path) -> None:
    lazy = LAZY.get(path, set())
    found = {(name, top) for name, top in imports(path) if name.partition(".")[0] in WORLD}
    assert not {name for name, top in found if top or name.partition(".")[0] not in lazy}


@pytest.mark.parametrize("path", CORE, ids=named)
def test_the_core_imports_only_itself_and_the_errors(path: Path) -> None:
    ours = {name for name, _ in imports(path) if name.partition(".")[0] == "backfill_assets"}
    assert not {name for name in ours if not name.startswith(("backfill_assets.backfill", "backfill_assets.errors"))}


@pytest.mark.parametrize("path", CORE, ids=named)
def test_the_core_reads_no_clock_and_throws_no_dice(path: Path) -> None:
    assert not {name.partition(".")[0] for name, _ in imports(path)} & {"time", "random", "secrets", "uuid", "os"}


@pytest.mark.parametrize("path", OURS, ids=named)
def test_resources_are_imported_only_as_part_of_the_package(path: Path) -> None:
    assert not {name for name, _ in imports(path) if name.partition(".")[0] in {"resources", "definitions"}}
