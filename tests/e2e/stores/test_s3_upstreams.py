"""Upstreams in another store than the warehouse: read exactly, by Spark in the run's process and over Connect; keys shown
nowhere."""

import json
import os
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.adapters.local.servers import down, s3_variables, up
from backfill_assets.adapters.storage.object_store import ObjectFolder
from backfill_assets.app.table_checks import CHECKS
from tests.support.lake import Lake
from tests.support.processes import Processes
from tests.support.project import Project
from tests.support.runner import order_of, over_lake
from tests.support.servers import FOLDER

pytestmark = [pytest.mark.e2e, pytest.mark.full]

JOBS = [{"refresh": name, "chunk_rows": 20} for name in ("large", "by_key")]
PROOFS = [{"verify": name} for name in ("large", "by_key")]
PROVED = [dict.fromkeys(CHECKS, True)] * len(PROOFS)
LIMIT = 600


@dataclass
class Store:
    """A store with keys of its own, and a bucket in it."""

    root: Path
    variables: dict[str, str]
    bucket: str = field(default_factory=lambda: f"raw-{uuid.uuid4().hex}")

    def __post_init__(self) -> None:
        (self.root / ".backfill" / "s3" / "data" / self.bucket).mkdir()

    @property
    def storage(self) -> dict[str, str]:
        """How the bucket is declared to be reached; its keys are in the environment."""
        return {
            "provider": "s3",
            "endpoint": self.variables["AWS_ENDPOINT_URL"],
            "access_key_id": "env:RAW_KEY",
            "secret_access_key": "env:RAW_SECRET",
        }

    @property
    def folder(self) -> ObjectFolder:
        """A table in the bucket."""
        keys = {
            "access_key_id": self.variables["AWS_ACCESS_KEY_ID"],
            "secret_access_key": self.variables["AWS_SECRET_ACCESS_KEY"],
        }
        place = {"endpoint": self.variables["AWS_ENDPOINT_URL"], "region": "us-east-1", "allow_http": "true"}
        return ObjectFolder(uri=f"s3://{self.bucket}/lake/base", storage_options={**place, **keys})

    def take(self, table: Path) -> None:
        """Put what is new of a table on disk into the bucket, its log last."""
        there = {*self.folder.names("")}
        files = [each for each in table.rglob("*") if each.is_file() and not each.name.startswith(".")]
        for file in sorted(files, key=lambda each: ("_delta_log" in each.parts, each.name)):
            if (name := str(file.relative_to(table))) not in there:
                self.folder.put(name, file.read_bytes())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a second S3 server, which knows none of the first one's keys."""
    root = tmp_path_factory.mktemp("other")
    try:
        up(root, kafka=False, spark=False, s3=True)
        yield root
    finally:
        down(root)


@pytest.fixture
def raw(server: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A bucket in the second server; its keys are in the environment under names of their own."""
    made = Store(root=server, variables=dict(s3_variables(server)))
    monkeypatch.setenv("RAW_KEY", made.variables["AWS_ACCESS_KEY_ID"])
    monkeypatch.setenv("RAW_SECRET", made.variables["AWS_SECRET_ACCESS_KEY"])
    return made


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table on disk with deletion vectors, which is copied to the bucket."""
    made = Lake(tmp_path / "disk")
    made.write("base", made.spark.range(60).selectExpr("id", "id % 7 AS v").repartition(3))
    made.sql(
        "base",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "DELETE FROM {t} WHERE id % 10 = 4",
    )
    return made


def change(lake: Lake) -> None:
    lake.append("base", [{"id": 100, "v": 5}, {"id": 101, "v": 3}])
    lake.sql("base", "DELETE FROM {t} WHERE id = 7", "UPDATE {t} SET v = 40 WHERE id = 8")


def expected(lake: Lake) -> Counter[tuple[Any, ...]]:
    rows = lake.spark.sql(f"SELECT id, v * 2 FROM delta.`{lake.path('base')}` WHERE v <> 3").collect()
    return Counter(map(tuple, rows))


def order(project: Project, raw: Store) -> dict[str, object]:
    return {**order_of(project), "base": {"path": raw.folder.uri.replace("s3:", "s3a:"), "storage": raw.storage}}


def in_process(given: dict[str, object], *jobs: dict[str, Any]) -> tuple[int, list[dict[str, Any]], str]:
    """Do jobs with a Spark in a process of their own; its exit code, the answers, and what it said."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_REMOTE", "AWS_"))}
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.runner", json.dumps({**given, "jobs": jobs})],
        cwd=Path(__file__).parents[3],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def shown(root: Path, *more: str) -> str:
    """Everything below a folder, and other texts."""
    return "".join([*(each.read_bytes().decode("latin-1") for each in root.rglob("*") if each.is_file()), *more])


def assert_found(project: Project, lake: Lake) -> None:
    for name in ("large", "by_key"):
        assert project.rows(name, "id", "twice") == expected(lake), name


def declare(project: Project, raw: Store) -> None:
    project.declare(*over_lake(project.root, base={"path": raw.folder.uri, "storage": raw.storage}))


def test_a_local_warehouse_reads_tables_with_vectors_on_s3_in_the_runs_own_process(
    tmp_path: Path, raw: Store, lake: Lake
) -> None:
    project = Project(root=tmp_path / "project", servers="127.0.0.1:1")
    declare(project, raw)
    raw.take(Path(lake.path("base")))
    code, _, said = in_process(order(project, raw), *JOBS)
    assert code == 0, said[-3000:]
    assert_found(project, lake)
    change(lake)
    raw.take(Path(lake.path("base")))
    code, answers, more = in_process(order(project, raw), *JOBS, *PROOFS)
    assert (code, answers[len(JOBS) :]) == (0, PROVED), more[-3000:]
    assert_found(project, lake)
    text = shown(project.root, said, more)
    assert raw.variables["AWS_SECRET_ACCESS_KEY"] not in text
    assert "env:RAW_SECRET" not in text


def test_a_warehouse_on_s3_reads_tables_of_another_account_over_connect(
    on_s3: Project, raw: Store, lake: Lake, processes: Processes
) -> None:
    declare(on_s3, raw)
    raw.take(Path(lake.path("base")))
    assert processes.run(order(on_s3, raw), *JOBS)[0] == 0
    assert_found(on_s3, lake)
    change(lake)
    raw.take(Path(lake.path("base")))
    code, answers = processes.run(order(on_s3, raw), *JOBS, *PROOFS)
    assert (code, answers[len(JOBS) :]) == (0, PROVED)
    assert_found(on_s3, lake)
    stored = on_s3.workspace().store.place.objects("")
    text = "".join((stored.get(name) or b"").decode("latin-1") for name in stored.names(""))
    text += shown(Path(os.environ[FOLDER]) / ".backfill" / "spark")
    assert raw.variables["AWS_SECRET_ACCESS_KEY"] not in text


def test_a_bucket_of_the_same_name_in_another_store_is_refused_by_a_spark_that_knows_the_first(
    tmp_path: Path, s3: dict[str, str], raw: Store, lake: Lake, processes: Processes
) -> None:
    first = Store(root=Path(os.environ[FOLDER]), variables=s3, bucket=raw.bucket)
    for store in (first, raw):
        store.take(Path(lake.path("base")))
        change(lake)
    known = Project(root=tmp_path / "first", servers="127.0.0.1:1")
    given = {**order(known, first), "base": {"path": first.folder.uri, "storage": {**first.storage, **keys(s3)}}}
    assert processes.run(given, JOBS[0])[0] == 0
    other = Project(root=tmp_path / "other", servers="127.0.0.1:1")
    assert processes.run(order(other, raw), JOBS[0])[0] == 1
    declare(other, raw)
    assert other.workspace().table(other.declared["large"]).output.look().record is None, "nothing was created"


def keys(variables: dict[str, str]) -> dict[str, str]:
    return {
        "access_key_id": variables["AWS_ACCESS_KEY_ID"],
        "secret_access_key": variables["AWS_SECRET_ACCESS_KEY"],
    }


def test_a_run_that_is_killed_over_another_store_is_resumed(
    on_s3: Project, raw: Store, lake: Lake, processes: Processes
) -> None:
    declare(on_s3, raw)
    raw.take(Path(lake.path("base")))
    processes.kill(order(on_s3, raw), {**JOBS[0], "strategy": "rearranged"}, "staged", at=2)
    change(lake)
    raw.take(Path(lake.path("base")))
    assert processes.run(order(on_s3, raw), {**JOBS[0], "strategy": "rearranged"})[0] == 0
    assert on_s3.rows("large", "id", "twice") == expected(lake)
