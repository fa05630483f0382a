"""The embedded servers' files, ports and token: other users of the machine can neither read nor use them."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from backfill_assets.adapters.local.servers import endpoints, spark_token
from backfill_assets.adapters.runtime.private_files import private_folder, write_private
from backfill_assets.errors import EnvironmentSetupError
from tests.support.commands import run
from tests.support.servers import FOLDER, servers
from tests.support.strangers import refuses_strangers

pytestmark = pytest.mark.e2e

USE_SPARK = """
from pathlib import Path
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.storage.warehouse import Warehouse

print(SparkResource(root="{root}").runner(Warehouse(uri="/w")).run(lambda spark: spark.range(3).count()))
"""


@pytest.fixture(scope="module")
def root() -> Path:
    """The root of the run's servers."""
    servers(spark=True)
    return Path(os.environ[FOLDER])


def address(root: Path) -> str:
    found = endpoints(root)
    assert found is not None
    return str(found.spark_remote)


@pytest.fixture
def anyone_may_read() -> Iterator[None]:
    """A user whose files are readable by everyone by default."""
    before = os.umask(0)
    yield
    os.umask(before)


def entries(root: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, dict[str, int]]] = json.loads((root / ".backfill" / "endpoints.json").read_text())
    return found["processes"]


def use_spark(root: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Use the server of `root` like a run, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", USE_SPARK.format(root=root)],
        env={**os.environ, **environment},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_spark_server_serves_its_owner(root: Path) -> None:
    done = use_spark(root)
    assert done.stdout == "3\n", done.stderr


@pytest.mark.parametrize("token", ["", "/;token=guessed"])
def test_the_spark_server_serves_nobody_without_its_token(root: Path, token: str) -> None:
    done = use_spark(root, SPARK_REMOTE=f"{address(root)}{token}")
    assert done.returncode == 1
    refusal = done.stderr[done.stderr.index("EnvironmentSetupError") :]
    assert "asks for a token, and " in refusal
    assert ".backfill/spark/token" in refusal
    assert "guessed" not in done.stderr + done.stdout
    if not token:
        assert "none was given" in refusal


def test_no_other_port_of_the_spark_server_takes_messages_from_strangers(root: Path) -> None:
    process = psutil.Process(entries(root)["spark"]["pid"])
    listening = {each.laddr.port for each in process.net_connections() if each.status == psutil.CONN_LISTEN}
    assert all(each.laddr.ip.endswith("127.0.0.1") for each in process.net_connections())
    for port in listening - {int(address(root).rpartition(":")[2])}:
        assert refuses_strangers(port)


def test_the_token_is_in_its_file_alone(root: Path) -> None:
    token = spark_token(root)
    assert token
    arguments = psutil.Process(entries(root)["spark"]["pid"]).cmdline()
    told = run(["up", "--json", "--no-kafka"], root, dict(os.environ))
    assert json.loads(told.out)["spark_remote"] == address(root)
    files = [path for path in (root / ".backfill").rglob("*") if path.is_file() and path.stat().st_size < 2**20]
    holders = [str(path.relative_to(root)) for path in files if token.encode() in path.read_bytes()]
    assert holders == [".backfill/spark/token"]
    assert not [text for text in (*arguments, told.out, told.err, repr(endpoints(root))) if token in text]


def test_files_and_folder_of_the_servers_are_their_owners_alone(root: Path) -> None:
    folder = root / ".backfill"
    modes = {name: stat.S_IMODE((folder / name).stat().st_mode) for name in (".", "endpoints.json", "spark/token")}
    assert modes == {".": 0o700, "endpoints.json": 0o600, "spark/token": 0o600}


@pytest.mark.usefixtures("anyone_may_read")
def test_a_private_file_is_never_readable_by_others_not_even_while_it_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    private_folder(folder)
    write_private(folder / "a", "old")
    with (folder / "a").open() as old:
        write_private(folder / "a", "new")
        assert old.read() == "old", "whoever reads meanwhile has a whole file"
    assert (folder / "a").read_text() == "new"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == ["a"]


def test_a_folder_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    private_folder(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError("what the system says to all but the owner and root")

    monkeypatch.setattr(Path, "chmod", refused)
    with pytest.raises(EnvironmentSetupError, match="belongs to one of them"):
        private_folder(tmp_path)
