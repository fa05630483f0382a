"""`backfill up --s3 --cluster` on its own: who reaches it, who sees its secrets, and that `backfill down` leaves nothing."""

import json
import os
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

import psutil
import pytest

from backfill_assets.adapters.local.servers import down, endpoints, s3_variables
from backfill_assets.adapters.local.spark_cluster import Master, saved_secret
from backfill_assets.app.warm_up import archive_classes
from tests.support.commands import run
from tests.support.spark_workers import WORKERS, Cluster, has_mapped, is_running, parts_of, processes_of, wait_until
from tests.support.strangers import refuses_strangers

pytestmark = [pytest.mark.e2e, pytest.mark.full]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project whose cluster no other test has started."""
    folder = tmp_path_factory.mktemp("closed-cluster")
    (folder / "workspace.yaml").touch()
    done = run(["up", "--json", "--no-kafka", "--s3", "--cluster"], folder, dict(os.environ))
    try:
        assert done.code == 0, done.err
        found = endpoints(folder)
        assert found is not None
        assert json.loads(done.out)["spark_master"] == found.spark_master
        wait_until("an executor on each worker", lambda: len(Cluster(folder).executors()) == len(WORKERS))
        yield folder
    finally:
        down(folder)


def ports_of(root: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((root / ".backfill" / "endpoints.json").read_text())["ports"]
    return found


def master_of(root: Path) -> Master:
    ports = ports_of(root)
    secret = saved_secret(root / ".backfill" / "spark-master")
    return Master(port=ports["spark-master"], pages=ports["spark-master-pages"], secret=secret)


def listening(process: psutil.Process) -> set[int]:
    found = [each for each in process.net_connections() if each.status == psutil.CONN_LISTEN]
    assert all(each.laddr.ip.endswith("127.0.0.1") for each in found), "it is reached from other machines"
    return {each.laddr.port for each in found}


def shows_pages(port: int) -> bool:
    """Whether a port has pages, and not Spark's own protocol; they must not be shown without a token."""
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20)
    except urllib.error.HTTPError as error:
        return error.code == HTTPStatus.FORBIDDEN
    except OSError:
        return False
    raise AssertionError(f"port {port} shows its pages to everybody")


def test_every_port_of_the_cluster_is_on_loopback_and_refuses_strangers(root: Path) -> None:
    parts, executors = parts_of(root), Cluster(root).executors()
    for name in ("spark-master", *WORKERS):
        messages = {port for port in listening(parts[name]) if not shows_pages(port)}
        assert len(messages) == 1, f"{name} listens on something else, too"
        assert all(map(refuses_strangers, messages))
    for executor in executors.values():
        assert all(map(refuses_strangers, listening(executor)))
    assert all(map(refuses_strangers, listening(parts["spark"]) - {ports_of(root)["spark"]}))


def test_the_master_shows_its_workers_to_who_knows_the_secret(root: Path) -> None:
    master = master_of(root)
    assert len(master.workers()) == len(WORKERS)
    assert replace(master, secret="A" * len(master.secret)).workers() == frozenset()


def small_content(path: Path) -> bytes:
    """What is in a small file; nothing of others, and of one that goes while Spark works."""
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size < 2**20 else b""
    except FileNotFoundError:
        return b""


def test_secrets_of_the_cluster_are_in_files_of_their_owner_and_not_among_arguments(root: Path) -> None:
    hidden = [master_of(root).secret, s3_variables(root)["AWS_SECRET_ACCESS_KEY"]]
    for process in processes_of(root):
        assert not [word for word in process.cmdline() if any(secret in word for secret in hidden)]
    holders = [path for path in (root / ".backfill").rglob("*") if hidden[0].encode() in small_content(path)]
    named = {str(path.relative_to(root / ".backfill")) for path in holders}
    parts = ("spark", "spark-master", *WORKERS)
    assert named == {"spark-master/secret", *(f"{part}/conf/spark-defaults.conf" for part in parts)}
    assert {stat.S_IMODE(path.stat().st_mode) for path in holders} == {0o600}


def test_all_of_its_programs_take_their_classes_from_the_archive(root: Path) -> None:
    archive = archive_classes()
    java = [each for each in processes_of(root) if "org.apache.spark" in " ".join(each.cmdline())]
    assert len(java) == len(("server", "master")) + 2 * len(WORKERS)
    assert all(has_mapped(process, archive) for process in java)


def test_executors_find_the_keys_of_the_store_in_their_environment(root: Path) -> None:
    variables = s3_variables(root)
    for executor in Cluster(root).executors().values():
        assert {name: executor.environ().get(name) for name in variables} == variables
        assert "SPARK_CONNECT_AUTHENTICATE_TOKEN" not in executor.environ()


def test_a_second_call_starts_what_was_lost_and_down_ends_all_of_it(root: Path) -> None:
    before = {name: process.pid for name, process in parts_of(root).items()}
    Cluster(root).lose(WORKERS[0])
    again = run(["up", "--json", "--no-kafka", "--s3", "--cluster"], root, dict(os.environ))
    assert again.code == 0, again.err
    after = {name: process.pid for name, process in parts_of(root).items()}
    assert {name for name in before if after[name] != before[name]} == {WORKERS[0]}
    wait_until("the executor to be back", lambda: len(Cluster(root).executors()) == len(WORKERS))
    everything = processes_of(root)
    assert len(everything) == len(before) + len(WORKERS)
    ended = run(["down", "--json"], root, dict(os.environ))
    assert set(json.loads(ended.out)["stopped"]) == before.keys()
    wait_until("all processes to end", lambda: not any(map(is_running, everything)))
