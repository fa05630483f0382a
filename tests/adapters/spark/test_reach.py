"""A session is told how to reach the stores, and refused with the reason if it does not reach the same ones."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.errors.exceptions.connect import AnalysisException

from backfill_assets.adapters.spark.reach import _digest, check_reached, reach_table, told
from backfill_assets.adapters.spark.reaching_runner import ReachingRunner
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.storage.asked_stores import AskedStores
from backfill_assets.adapters.storage.put_if_absent import MARKER
from backfill_assets.adapters.storage.upstream_location import TableElsewhere
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.errors import DroppedError, EnvironmentSetupError

TOLD = {"fs.s3a.endpoint": "https://e", "fs.s3a.access.key": "an-id", "fs.s3a.secret.key": "a-secret"}


class OnS3(Warehouse):
    """A folder of which Spark is told what it is told of a store."""

    @property
    def spark_settings(self) -> dict[str, str]:
        return TOLD


@dataclass
class Session:
    """What a session sees of the store: lines, or an error."""

    seen: list[str] | Exception
    settings: dict[str, str] = field(default_factory=dict)
    reads: int = 0

    @property
    def conf(self) -> Any:
        return self

    @property
    def read(self) -> Any:
        return self

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value

    def text(self, _address: str) -> Any:
        return self

    def format(self, _kind: str) -> Any:
        return self

    def load(self, _address: str) -> Any:
        return self

    def selectExpr(self, _digest: str) -> Any:  # noqa: N802 (as in PySpark)
        return self

    def collect(self) -> list[dict[str, str]]:
        self.reads += 1
        if isinstance(self.seen, Exception):
            raise self.seen
        return [{"value": line, "digest": line} for line in self.seen]

    @property
    def sparkContext(self) -> Any:  # noqa: N802 (as in PySpark)
        return self

    def setJobGroup(self, *_given: object, **_more: object) -> None:  # noqa: N802 (as in PySpark)
        pass


NOT_THERE = AnalysisException(message="no such path", errorClass="PATH_NOT_FOUND")


def reached(tmp_path: Path, seen: list[str] | Exception, marker: bytes | None = b"mine\n") -> Session:
    """A session of which it was seen to that it reaches the store."""
    warehouse, session = OnS3(uri=str(tmp_path)), Session(seen)
    if marker is not None:
        warehouse.objects("").put(MARKER, marker)
    given: Any = session
    assert id(told(given, warehouse)) == id(session)
    check_reached(given, warehouse)
    return session


def test_a_session_that_sees_what_this_process_wrote_is_used_with_its_settings(tmp_path: Path) -> None:
    assert reached(tmp_path, ["mine"]).settings == TOLD


def test_before_anything_was_written_there_is_nothing_to_see(tmp_path: Path) -> None:
    assert reached(tmp_path, NOT_THERE, marker=None).settings == TOLD


@pytest.mark.parametrize("seen", [["another's"], [], NOT_THERE], ids=["other", "empty", "missing"])
def test_a_store_of_the_same_name_that_is_another_is_refused(tmp_path: Path, seen: list[str] | Exception) -> None:
    with pytest.raises(EnvironmentSetupError, match="Spark reaches another store than this process"):
        reached(tmp_path, seen)


def test_a_missing_connector_is_told_with_where_its_modules_are_named(tmp_path: Path) -> None:
    missing = RuntimeError("java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found")
    with pytest.raises(EnvironmentSetupError, match="Spark has no connector") as found:
        reached(tmp_path, missing)
    assert "ivy-s3a.xml" in found.value.hint


def test_whatever_else_a_connector_says_is_told_without_keys(tmp_path: Path) -> None:
    said = RuntimeError("Forbidden: the key an-id with a-secret has no rights")
    with pytest.raises(EnvironmentSetupError, match="Forbidden: the key … with … has no rights") as found:
        reached(tmp_path, said)
    assert found.value.__cause__ is None


def test_a_local_warehouse_asks_nothing_of_a_session(tmp_path: Path) -> None:
    session = Session(RuntimeError("asked"))
    given: Any = session
    assert id(told(given, Warehouse(uri=str(tmp_path)))) == id(session)
    check_reached(given, Warehouse(uri=str(tmp_path)))
    assert session.settings == {}


def fail(error: Exception) -> None:
    raise error


def test_that_the_warehouse_is_reached_is_asked_before_spark_writes_once_and_not_of_what_it_only_reads(
    tmp_path: Path,
) -> None:
    session = Session(["mine"])
    runner = running(session, warehouse := OnS3(uri=str(tmp_path)))
    warehouse.objects("").put(MARKER, b"mine\n")
    assert runner.run(lambda _session: session.reads) == 0
    runner.run(lambda _session: runner.reach())
    ReachingRunner(runner, lambda: ()).run(lambda _session: runner.reach())
    with pytest.raises(ZeroDivisionError):
        runner.run(lambda _session: fail(ZeroDivisionError()))
    assert session.reads == 1
    runner.close()
    runner.run(lambda _session: runner.reach())
    assert session.reads == 2, "another session is asked, too"
    runner.close()


def test_a_store_of_which_spark_has_read_what_only_this_process_has_written_is_not_asked(tmp_path: Path) -> None:
    session = Session(["another's"])
    runner = running(session, OnS3(uri=str(tmp_path)))
    runner.run(lambda _session: ReachingRunner(runner, lambda: ()).note_reached())
    runner.run(lambda _session: runner.reach())
    assert session.reads == 0
    runner.close()


def test_an_error_is_explained_by_a_store_that_is_not_reached(tmp_path: Path) -> None:
    session = Session(["another's"])
    runner = running(session, warehouse := OnS3(uri=str(tmp_path)))
    warehouse.objects("").put(MARKER, b"mine\n")
    with pytest.raises(DroppedError):  # it says itself what it is
        runner.run(lambda _session: fail(DroppedError("gone")))
    for _ in range(2):
        with pytest.raises(EnvironmentSetupError, match="Spark reaches another store than this process"):
            runner.run(lambda _session: fail(RuntimeError("no such file")))
    session.seen = ["mine"]
    with pytest.raises(RuntimeError, match="no such file"):
        runner.run(lambda _session: fail(RuntimeError("no such file")))
    runner.close()


BUCKET = {"fs.s3a.bucket.raw.endpoint": "https://e", "fs.s3a.bucket.raw.secret.key": "a-secret"}


class OnRaw(TableElsewhere):
    """A table in a folder that stands for a bucket."""

    @property
    def bucket(self) -> str:
        return "raw"


def elsewhere(folder: Path, name: str = "customers") -> OnRaw:
    write_deltalake(str(folder / name), pa.table({"id": [1]}))
    write_deltalake(str(folder / name), pa.table({"id": [2]}), mode="append")
    return OnRaw(uri=str(folder / name), name=name, spark_settings=BUCKET, asked=AskedStores())


def digest(table: OnRaw) -> str:
    return hashlib.sha256(Path(table.uri, "_delta_log", "00000000000000000001.json").read_bytes()).hexdigest()


def test_a_session_that_sees_a_tables_newest_commit_is_used_with_the_settings_of_its_bucket(tmp_path: Path) -> None:
    table = elsewhere(tmp_path)
    session: Any = Session([digest(table)])
    reach_table(session, table)
    assert session.settings == BUCKET


@pytest.mark.parametrize("seen", [["another's"], [], NOT_THERE], ids=["other", "empty", "missing"])
def test_another_store_with_a_bucket_of_that_name_is_refused(tmp_path: Path, seen: list[str] | Exception) -> None:
    session: Any = Session(seen)
    with pytest.raises(
        EnvironmentSetupError, match="Spark reaches another store than this process for table 'customers'"
    ):
        reach_table(session, elsewhere(tmp_path))


def test_what_a_connector_says_of_a_tables_store_is_told_without_keys(tmp_path: Path) -> None:
    session: Any = Session(RuntimeError("Forbidden: the secret is a-secret"))
    with pytest.raises(EnvironmentSetupError, match="Forbidden: the secret is …"):
        reach_table(session, elsewhere(tmp_path))


def test_of_a_table_that_does_not_exist_there_is_nothing_to_see(tmp_path: Path) -> None:
    session: Any = Session(RuntimeError("asked"))
    reach_table(session, OnRaw(uri=str(tmp_path / "no"), name="no", spark_settings=BUCKET, asked=AskedStores()))
    assert session.settings == BUCKET


def test_an_address_that_spark_takes_for_a_pattern_is_not_compared(tmp_path: Path) -> None:
    table = elsewhere(tmp_path, "a{b}")
    session: Any = Session(RuntimeError("asked"))
    reach_table(session, table)
    assert session.settings == BUCKET


def test_a_bucket_is_reached_once_in_a_session_before_the_first_action_that_reads_from_it(tmp_path: Path) -> None:
    table = elsewhere(tmp_path)
    session = Session([digest(table)])
    runner = running(session)
    views = [ReachingRunner(runner, lambda: [table]), ReachingRunner(runner, lambda: [table])]
    assert runner.run(lambda _session: session.reads) == 0
    assert [view.run(lambda _session: session.reads) for view in (*views, views[0])] == [1, 1, 1]
    views[0].close()
    assert views[1].started
    runner.close()


def test_a_store_that_is_not_reached_stops_the_views_that_read_from_it_and_no_others(tmp_path: Path) -> None:
    runner = running(Session(["another's"]))
    table = elsewhere(tmp_path)
    for _ in range(2):
        with pytest.raises(EnvironmentSetupError, match="another store"):
            ReachingRunner(runner, lambda: [table]).run(lambda _session: pytest.fail("it was read"))
    assert ReachingRunner(runner, lambda: ()).run(lambda _session: "read") == "read"
    runner.close()


def running(session: Session, warehouse: Warehouse | None = None) -> SparkRunner:
    given: Any = session
    return SparkRunner(lambda: given, warehouse)


def test_what_spark_says_of_a_file_that_is_there_is_told(tmp_path: Path) -> None:
    """Only a missing file is one that Spark does not see."""
    odd = AnalysisException(message="no right to read", errorClass="UNSUPPORTED_FEATURE")
    with pytest.raises(EnvironmentSetupError, match="no right to read"):
        reached(tmp_path, odd)
    given: Any = Session(odd)
    with pytest.raises(AnalysisException, match="no right to read"):
        _digest(given, "s3a://lake/a")
