"""Spark takes its classes from the archive of them."""

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from backfill_assets.adapters.local.spark_cluster import Master, new_secret, start_master, wait_for_master
from backfill_assets.adapters.runtime.class_archive import archive_options
from backfill_assets.adapters.runtime.java import java_home
from backfill_assets.adapters.runtime.processes import stop
from backfill_assets.adapters.runtime.tcp_ports import free_port
from backfill_assets.app.warm_up import archive_classes
from tests.support.servers import FOLDER, servers
from tests.support.spark_workers import has_mapped, parts_of

pytestmark = pytest.mark.e2e

MAIN = "org.apache.spark.deploy.SparkSubmit"


def started(options: str, folder: Path) -> tuple[str, str]:
    """What Spark says of itself on both outputs, and from where Java took its main class."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    log = folder / "classes"
    said = subprocess.run(
        [Path(spec.origin).parent / "bin" / "spark-submit", "--version"],
        env={**os.environ, "JAVA_HOME": java_home(), "JDK_JAVA_OPTIONS": f"{options} -Xlog:class+load:file={log}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    ).stdout
    (loaded,) = (line for line in log.read_text().splitlines() if f" {MAIN} " in line)
    return said.replace(options, ""), loaded.rpartition("source: ")[2]


def test_spark_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    archive_classes()
    with_archive, source = started(archive_options(), tmp_path)
    assert source == "shared objects file (top)"
    without, source = started("", tmp_path)
    assert source.endswith(".jar")
    assert len(with_archive.splitlines()) == len(without.splitlines()) > 10, "Java says nothing of the archive"


def test_the_servers_take_theirs_from_it_too(tmp_path: Path) -> None:
    archive = archive_classes()
    servers(spark=True)
    assert has_mapped(parts_of(Path(os.environ[FOLDER]))["spark"], archive)
    port = free_port()
    master = Master(port=port, pages=free_port(other_than=[port]), secret=new_secret(tmp_path))
    started = start_master(tmp_path, master)
    try:
        wait_for_master(tmp_path, port=port, process=started)
        assert has_mapped(psutil.Process(started.pid), archive)
    finally:
        stop([started])
