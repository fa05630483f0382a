"""The wheel, installed next to a user's project that has modules with the same names as ours: neither breaks the other."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from textwrap import dedent

import pytest

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[3]
OURS = ("backfill_assets", "pyproject.toml", "README.md")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as built from a copy of the repository, without network."""
    source = tmp_path_factory.mktemp("source")
    for name in OURS:
        here, there = ROOT / name, source / name
        if here.is_dir():
            shutil.copytree(here, there, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(here, there)
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with only the unpacked wheel, as an installer would leave it."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(project: Path, installed: Path, script: str) -> str:
    """The output of a script in a user's project. `-S` ignores .pth files, so our editable install is not used."""
    packages = sysconfig.get_paths()["purelib"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(project), str(installed), packages])}
    command = [sys.executable, "-S", "-c", dedent(script)]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_the_package_and_nothing_else_at_top_level(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"backfill_assets"}
    files = {
        "backfill_assets/py.typed",
        "backfill_assets/adapters/runtime/ivy.xml",
        "backfill_assets/adapters/runtime/ivysettings.xml",
        "backfill_assets/adapters/spark/resource.py",
        "backfill_assets/query/rowwise.py",
        "backfill_assets/testing/simulation.py",
    }
    assert files <= set(names)
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / OURS[0]).rglob("*.py")}
    assert sources <= set(names), sources - set(names)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's project with `resources`, `definitions`, jobs and assets of its own."""
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "__init__.py").write_text("WHOSE = 'the user'\n")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "definitions.py").write_text(
        dedent("""
        import dagster as dg
        import resources
        from backfill_assets import build_definitions, kafka_source, materialized_view

        assert resources.WHOSE == "the user"
        orders = kafka_source("orders", topic="orders", schema="id LONG")
        even = materialized_view("even", query="SELECT id FROM orders WHERE id % 2 = 0", upstreams=[orders])

        @dg.asset(deps=[even.key])
        def report(kafka: dg.ResourceParam[str]): ...

        @dg.job
        def nightly(): ...

        own = [dg.Definitions(assets=[report], jobs=[nightly], resources={"kafka": "mine"})]
        defs = dg.Definitions.merge(*own, build_definitions(even))
        """)
    )
    return tmp_path


@pytest.mark.full
def test_it_lives_beside_a_users_modules_of_the_same_names(project: Path, installed: Path) -> None:
    found = run(
        project,
        installed,
        """
        import backfill_assets, definitions, resources
        from backfill_assets.adapters.runtime.jars import spark_jars
        from backfill_assets.defs.assets import workspace_in
        repository = definitions.defs.get_repository_def()
        print(backfill_assets.__file__)
        print(resources.__file__, definitions.__file__)
        print(sorted(name for name in repository.job_names if name in {"nightly", "refresh_even"}))
        print(workspace_in(definitions.defs).store.place.uri)
        """,
    ).splitlines()
    assert found == [
        str(installed / "backfill_assets" / "__init__.py"),
        f"{project / 'resources' / '__init__.py'} {project / 'definitions.py'}",
        "['nightly', 'refresh_even']",
        str(project / "warehouse"),
    ]


DEFS_YAML = """
type: backfill_assets.Views
attributes:
  sources:
    - {name: orders, topic: orders, schema: "id LONG, amount DOUBLE", start: {"0": 7}, owners: ["team:sales"]}
    - {name: later, topic: later, schema: "id LONG", start: "2026-01-31T00:00:00+00:00", bronze: new}
  views:
    - {name: large, upstreams: [orders], query: "SELECT id FROM orders WHERE amount > 100", tags: {tier: gold}}
    - {name: known, upstreams: [customers], query: "SELECT id FROM customers"}
    - {name: counts, upstreams: [large], query: "SELECT id, count(*) AS n FROM large GROUP BY id"}
  tables:
    - {name: customers, path: lake/customers, primary_key: id}
"""
LOAD = """
import sys
from pathlib import Path
import dagster as dg
from backfill_assets.defs.assets import workspace_in
try:
    defs = dg.load_from_defs_folder(path_within_project=Path("shop"))
except Exception as error:
    while error:
        print(type(error).__name__, error)
        error = error.__cause__ or error.__context__
    sys.exit()
graph = defs.resolve_asset_graph()
print(sorted(key.to_user_string() for key in graph.get_all_asset_keys()))
declared = workspace_in(defs).declared
print(declared["orders"].start, declared["later"].start, declared["later"].bronze)
print(graph.get(dg.AssetKey(["views", "large"])).tags["tier"], workspace_in(defs).store.place.uri)
"""


@pytest.fixture
def components(project: Path) -> Path:
    """The same project in the layout of Dagster's components, without our definitions in Python."""
    defs = project / "shop" / "defs" / "streams"
    defs.mkdir(parents=True)
    (project / "shop" / "__init__.py").touch()
    (project / "shop" / "defs" / "__init__.py").touch()
    (project / "shop" / "defs" / "own.py").write_text("import dagster as dg\n\n@dg.asset\ndef own(): ...\n")
    (defs / "defs.yaml").write_text(DEFS_YAML)
    (project / "pyproject.toml").write_text(
        '[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "shop"\n'
    )
    return project


def test_the_component_declares_in_yaml_what_python_does(components: Path, installed: Path) -> None:
    found = run(components, installed, LOAD).splitlines()
    assert found == [
        "['delta/customers', 'kafka/later_topic', 'kafka/orders_topic', 'own', 'sources/later', "
        "'sources/orders', 'views/counts', 'views/known', 'views/large']",
        "{0: 7} 2026-01-31 00:00:00+00:00 new",
        f"gold {components / 'warehouse'}",
    ]


@pytest.mark.full
@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("upstreams: [orders]", "upstreams: [other]", "names other, which are not declared before it"),
        ('start: {"0": 7}', "start: yesterday", "argument 'start' is 'yesterday'"),
        ("bronze: new", "bronze: some", "bronze"),
        ("SELECT id FROM", "SELECT ident FROM", "ident"),
    ],
)
def test_errors_in_the_yaml_are_explained(
    components: Path, installed: Path, right: str, wrong: str, words: str
) -> None:
    assert right in DEFS_YAML
    (components / "shop" / "defs" / "streams" / "defs.yaml").write_text(DEFS_YAML.replace(right, wrong))
    assert words in run(components, installed, LOAD)
