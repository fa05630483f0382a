"""The command line as people and scripts call it: what it prints, its exit codes, and what Dagster records of it."""

import json
import os
import re
import shutil
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from deltalake import DeltaTable

from backfill_assets import kafka_source, materialized_view
from backfill_assets.adapters.runtime.tcp_ports import free_port
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.defs.jobs import TABLES_JOB
from tests.support.commands import run, start
from tests.support.dagster_project import DagsterProject
from tests.support.project import Project

pytestmark = pytest.mark.e2e

DEFINITIONS = """
from backfill_assets import KafkaConnector, build_definitions, kafka_source, materialized_view
orders = kafka_source("orders", topic="{topic}", schema="id LONG")
even = materialized_view("even", query="SELECT id FROM orders WHERE id % 2 = 0", upstreams=[orders])
defs = build_definitions(even, resources={{"backfill_kafka": KafkaConnector(connect_seconds=3)}})
"""
SECONDS = 300


@dataclass
class CommandLine:
    """Calls `backfill` in a project's folder."""

    root: Path
    servers: str
    environment: dict[str, str] = field(default_factory=dict)

    def environment_of(self, **given: str) -> dict[str, str]:
        """A command's environment."""
        kept = {name: value for name, value in os.environ.items() if name not in {"DAGSTER_HOME", "SPARK_REMOTE"}}
        return {**kept, "KAFKA_BOOTSTRAP_SERVERS": self.servers, "COLUMNS": "200", **self.environment, **given}

    def outputs(self, *arguments: str, code: int, **given: Any) -> tuple[str, str]:
        """What a command prints to both outputs; its exit code must be `code`."""
        done = run(arguments, self.root, self.environment_of(**given))
        assert done.code == code, f"{arguments}: {done.code}\n{done.out}\n{done.err}"
        assert "Traceback" not in done.out + done.err
        return done.out, done.err

    def call(self, *arguments: str, code: int = 0, **given: Any) -> str:
        """What a command prints: its answer, and if it fails, its error."""
        out, err = self.outputs(*arguments, code=code, **given)
        return out if code in {0, 3} else out + err

    def json(self, *arguments: str, code: int = 0, **given: Any) -> Any:
        """The document that a command prints with `--json`."""
        return json.loads(self.outputs(*arguments, "--json", code=code, **given)[0])


def begun(project: Project, remote: str) -> CommandLine:
    """A project with a source of 30 records and a view, neither created; commands use a Spark server that is running."""
    topic = project.topic()
    project.produce(topic, [{"id": number} for number in range(30)])
    (project.root / "workspace.yaml").write_text("load_from: [{python_file: definitions.py}]\n")
    (project.root / "definitions.py").write_text(DEFINITIONS.format(topic=topic))
    return CommandLine(project.root, project.servers, {"SPARK_REMOTE": remote})


@pytest.fixture
def cli(project: Project, remote: str) -> CommandLine:
    """The command line in a new project."""
    return begun(project, remote)


@pytest.fixture(scope="module")
def refreshed(broker: str, remote: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[CommandLine, str]:
    """The command line in a project that was refreshed once, and what that printed. It is only copied."""
    cli = begun(Project(root=tmp_path_factory.mktemp("refreshed"), servers=broker), remote)
    return cli, cli.call("refresh", "orders", "even")


@pytest.fixture
def live(refreshed: tuple[CommandLine, str], tmp_path: Path) -> CommandLine:
    """The command line in a copy of the project that was refreshed once."""
    cli, _ = refreshed
    shutil.copytree(cli.root, tmp_path, dirs_exist_ok=True)
    return replace(cli, root=tmp_path)


@pytest.mark.full
def test_plan_describes_a_view_that_does_not_exist_and_one_that_is_partly_backfilled(cli: CommandLine) -> None:
    assert [(each["name"], each["state"]) for each in cli.json("status")] == [
        ("orders", "not created"),
        ("even", "not created"),
    ]
    assert re.search(r"even is not created yet.*\n`source` .* orders", cli.call("plan", "even"))
    planned = cli.json("plan", "even")
    assert (planned["exists"], planned["epoch"], planned["reads"]) == (False, None, [])
    assert (planned["choice"]["requested"], planned["choice"]["chosen"]) == (None, "source")

    stopped = cli.json("refresh", "even", "--max-rows", "10", "--chunk-rows", "5", code=3)
    assert stopped["tables"]["even"]["stopped_reason"] == "max_rows"
    assert "Epoch 3 would read:\n  topic t" in cli.call("plan", "even")
    assert {read["kind"] for read in cli.json("plan", "even")["reads"]} == {"kafka"}


@pytest.mark.full
def test_a_view_is_verified_maintained_rebuilt_replaced_reset_and_dropped(live: CommandLine) -> None:
    cli = live
    verified = cli.json("verify", "even")
    assert (verified["tables"], [each["passed"] for each in verified["checks"]]) == ({}, [True] * len(CHECKS))

    assert cli.json("maintain", "even") == {"name": "even", "swept": []}
    assert cli.json("rebuild") == {"rebuilt": ["sources/orders", "views/even"]}
    replaced = {"name": "even", "switched": True, "kept": False, "stopped_reason": "caught_up"}
    assert cli.json("replace", "even") == replaced
    assert "what it was before is not kept" in cli.call("replace", "even", "--undo", code=1)
    assert "nothing lies beside even" in cli.call("replace", "even", "--forget")
    assert cli.json("reset", "even")["incarnation"]
    assert cli.json("drop", "even") == {"name": "even", "dropped": True}
    assert cli.json("status", "even")[0]["state"] == "dropped"
    assert recorded(cli) == {"backfill_tables": [("SUCCESS", 1)], "verify_even": [("SUCCESS", 1)]}


@pytest.mark.full
def test_a_view_that_was_replaced_is_put_back_by_one_command(live: CommandLine) -> None:
    cli, file = live, live.root / "definitions.py"
    old = file.read_text()
    file.write_text(old.replace("id % 2 = 0", "id % 2 = 1"))
    done = {"name": "even", "switched": True, "kept": True, "stopped_reason": "caught_up"}
    assert cli.json("replace", "even") == done
    assert rows_of_even(cli) == list(range(1, 30, 2))
    assert cli.json("replace", "even", "--undo") == {"name": "even", "undone": True}
    assert rows_of_even(cli) == list(range(0, 30, 2))
    assert "DEFINITION_CHANGED" in cli.call("refresh", "even", code=1), "the old declaration has to be restored"
    file.write_text(old)
    assert cli.json("refresh", "even")["tables"]["even"]["stopped_reason"] == "caught_up"
    assert all(each["passed"] for each in cli.json("verify", "even")["checks"])
    assert "what it was before is not kept" in cli.call("replace", "even", "--undo", code=1)


def rows_of_even(cli: CommandLine) -> list[int]:
    found = DeltaTable(cli.root / "warehouse" / "views" / "even").to_pyarrow_table(columns=["id"])
    return sorted(found["id"].to_pylist())


@pytest.mark.full
def test_without_a_server_a_command_starts_a_spark_of_its_own(cli: CommandLine) -> None:
    del cli.environment["SPARK_REMOTE"]
    assert cli.json("refresh", "orders")["tables"]["orders"]["stopped_reason"] == "caught_up"


def recorded(cli: CommandLine) -> dict[str, list[tuple[str, int]]]:
    """How often each job ended in which way, according to the project's instance."""
    with dg.DagsterInstance.from_config(str(cli.root / ".dagster")) as instance:
        found = [(run.job_name, run.status.value) for run in instance.get_runs()]
    return {
        job: sorted({(status, found.count((job, status))) for name, status in found if name == job})
        for job in {name for name, _ in found}
    }


@pytest.mark.full
def test_what_a_view_is_to_leave_out_is_listed_and_taken_back(cli: CommandLine) -> None:
    assert cli.call("skip", "even") == "even leaves out no rows\n"
    found = cli.json("skip", "even", "--partition", "1", "--offset", "3", "--offset", "4")
    assert [(row["place"], row["status"]) for row in found["left_out"]] == [
        ({"partition": 1, "offset": 3}, "waiting"),
        ({"partition": 1, "offset": 4}, "waiting"),
    ]
    assert re.search(r"source orders, partition 1, offset 4 +waiting", cli.call("skip", "even"))
    assert len(cli.json("status", "even")[0]["left_out"]) == 2
    assert re.search(r"partition 1, offset 3 +waiting", cli.call("status", "even"))
    assert len(cli.json("skip", "even", "--partition", "1", "--offset", "3", "--undo")["left_out"]) == 1
    for arguments, said in (
        (["--offset", "3"], "named by --partition and --offset"),
        (["--partition", "1", "--offset", "3", "--undo"], "does not leave out"),
        (["--source", "none", "--partition", "1", "--offset", "3"], "reads orders; found 'none'"),
        (["--key", "id=3"], "named by --partition and --offset"),
    ):
        assert said in cli.call("skip", "even", *arguments, code=2)
    assert "ingests every record" in cli.call("skip", "orders", "--partition", "1", "--offset", "3", code=2)


def test_pause_resume_and_throttle_hold_until_they_are_changed(cli: CommandLine) -> None:
    assert cli.json("pause", "even") == {"name": "even", "paused": True, "rows_per_second": None}
    assert cli.json("refresh", "even", code=3)["tables"]["even"]["stopped_reason"] == "paused"
    assert cli.call("throttle", "even", "5.5") == "even: paused, 5.5 rows/s\n"
    assert cli.call("resume", "even") == "even: not paused, 5.5 rows/s\n"
    assert cli.call("throttle", "even", "off") == "even: not paused, no limit\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("status", "revenue"), "there is no source or view 'revenue'; expected one of even, orders"),
        (("refresh", "orders", "revenue"), "there is no source or view 'revenue'"),
        (("throttle", "even", "fast"), "expected rows per second or 'off', found 'fast'"),
        (("replace", "orders"), "'orders' is a source; expected a view"),
        (("replace", "even", "--undo", "--forget"), "expected one of them"),
        (("status", "-m", "other"), "there is no module 'other'"),
        (("status", "-m", "json"), "module 'json' holds 0 Definitions objects"),
        (("refresh",), "Missing argument"),
    ],
)
def test_wrong_usage_is_a_message_with_advice_and_exit_code_2(
    cli: CommandLine, arguments: tuple[str, ...], words: str
) -> None:
    found = cli.call(*arguments, code=2)
    assert words in found
    assert "What to do: " in found or "Usage: " in found


def test_a_failed_run_is_a_message_with_advice_and_exit_code_1(cli: CommandLine) -> None:
    dead = f"127.0.0.1:{free_port()}"
    result = cli.json("refresh", "orders", code=1, KAFKA_BOOTSTRAP_SERVERS=dead)
    (message,) = result["errors"]
    assert message.startswith(f"sources/orders: [BROKER_UNAVAILABLE] no Kafka broker answered at {dead}")
    assert "What to do: " in message
    assert "views/even does not exist" in cli.call("reset", "even", code=1)
    assert not any(each["passed"] for each in cli.json("verify", "even", code=1)["checks"])


def test_a_refresh_reports_tables_and_checks_and_dagster_records_it(
    refreshed: tuple[CommandLine, str], live: CommandLine
) -> None:
    cli, (_, text) = live, refreshed
    assert text.count("caught_up") == 2
    assert text.count(" yes ") == 2 * len(CHECKS)
    idle = cli.json("refresh", "orders", "even")
    assert {name: found["epochs"] for name, found in idle["tables"].items()} == {"orders": 0, "even": 0}
    (even,) = cli.json("status", "even")
    assert (even["progress"]["phase"], even["progress"]["lag_rows"], even["problem"]) == ("live", 0, "")
    assert re.search(r"orders +1 +finished +15 +0", cli.call("status", "even"))
    assert recorded(cli) == {"backfill_tables": [("SUCCESS", 2)]}


def test_a_view_whose_first_run_has_begun_is_shown_as_starting(cli: CommandLine, project: Project) -> None:
    project.workspace().state.put_lease("views/even", "a-run")
    assert cli.json("status", "even")[0]["state"] == "starting"


def test_status_continues_when_the_broker_is_down_or_a_source_is_missing(live: CommandLine) -> None:
    cli, dead = live, f"127.0.0.1:{free_port()}"
    orders, even = cli.json("status", KAFKA_BOOTSTRAP_SERVERS=dead)
    assert orders["problem"].startswith("no Kafka broker answered")
    assert (orders["progress"]["epoch"], orders["progress"]["lag_rows"]) == (1, None)
    assert (even["problem"], even["progress"]["lag_rows"]) == ("", 0)
    cli.call("drop", "orders")
    (even,) = cli.json("status", "even")
    assert even["problem"] == "source 'orders' was dropped: expected its table"
    assert "was dropped" in cli.call("status")


def test_a_refresh_that_is_submitted_is_shown_before_it_begins(cli: CommandLine, project: Project) -> None:
    orders = kafka_source("orders", topic="t", schema="id LONG")
    project.declare(orders, materialized_view("even", query="SELECT id FROM orders", upstreams=[orders]))
    assert states(cli) == {"orders": "not created", "even": "not created"}
    with dg.DagsterInstance.from_config(str(cli.root / ".dagster")) as instance:
        job = DagsterProject(project, instance).definitions().resolve_job_def(TABLES_JOB)
        key = project.declared["even"].key
        instance.create_run_for_job(job.get_subset(asset_selection={key}), asset_selection=frozenset({key}))
        assert states(cli) == {"orders": "not created", "even": "queued"}
        instance.wipe()
        instance.create_run_for_job(job)
    assert states(cli) == {"orders": "queued", "even": "queued"}
    (cli.root / ".dagster" / "dagster.yaml").write_text("no such setting: 1\n")
    assert states(cli) == {"orders": "not created", "even": "not created"}, (
        "what Dagster does not tell hides nothing else"
    )


def states(cli: CommandLine) -> dict[str, str]:
    return {each["name"]: each["state"] for each in cli.json("status")}


def test_another_module_may_hold_the_definitions(cli: CommandLine) -> None:
    lazy = "import dagster as dg\nimport definitions\n@dg.definitions\ndef defs():\n    return definitions.defs\n"
    (cli.root / "lazy.py").write_text(lazy)
    assert [each["name"] for each in cli.json("status", "-m", "lazy")] == ["orders", "even"]


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_the_ui_takes_another_port_when_its_own_is_taken(cli: CommandLine, taken_port: int) -> None:
    process = start(["ui", "--port", str(taken_port)], cli.root, cli.environment_of())
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
    found = re.search(r"http://127.0.0.1:(\d+)", line)
    assert found, line
    assert int(found[1]) != taken_port
    assert (cli.root / ".dagster").is_dir()
