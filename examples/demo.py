"""The demo: flights arrive on a real broker while two views are backfilled, and one run is killed in the middle.

Half of the flights are on the topic before the views exist; the rest keeps arriving. Ingest and view run in processes of
their own, each a run of the same Dagster instance that `make ui` shows. With `--cluster`, the tables are in an object store
and computed by the workers of a cluster, of which one loses its executor.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated

import psutil
import typer
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.table import Table

from backfill_assets.adapters.local.s3_server import BUCKET
from backfill_assets.adapters.local.servers import SparkNeeds, down, s3_variables, up
from backfill_assets.app.lifecycle import drop
from backfill_assets.app.status import Status, status
from backfill_assets.app.workspace import Workspace
from backfill_assets.cli.local_project import load_definitions
from backfill_assets.defs.assets import workspace_in
from examples.flights_data import flight_records, send

REPOSITORY = Path(__file__).resolve().parent.parent
TOPIC, PARTITIONS = "flights", 4
VIEWS = ("late_departures", "routes")
GROUPED = ("delays", "bad_days")
"""A view that groups, and a view over that view."""
ALL_FLIGHTS, SHORT_FLIGHTS = 336_776, 24_000
ARRIVES_WITHIN = {ALL_FLIGHTS: 30, SHORT_FLIGHTS: 5}
"""In how many seconds the second half of so many flights arrives."""
LIMIT_SECONDS = 240

console = Console(soft_wrap=True)


def main(
    short: Annotated[bool, typer.Option("--short", help="A few flights in a folder of its own, for tests.")] = False,
    cluster: Annotated[bool, typer.Option("--cluster", help="On an object store and a Spark cluster.")] = False,
) -> None:
    """Backfill two views from a live topic, kill a run, resume, prove the result."""
    if not short:
        demo(REPOSITORY, flights=ALL_FLIGHTS, cluster=cluster)
        return
    with tempfile.TemporaryDirectory(prefix="backfill-demo-") as folder:
        (Path(folder) / ".dagster").mkdir()
        for name in ("definitions.py", "workspace.yaml", ".dagster/dagster.yaml"):
            shutil.copy(REPOSITORY / name, Path(folder) / name)
        demo(Path(folder), flights=SHORT_FLIGHTS, cluster=cluster)


def demo(root: Path, *, flights: int, cluster: bool) -> None:
    """Run the demo in the project at `root`; its servers are stopped at the end."""
    started = time.monotonic()
    os.chdir(root)
    os.environ.pop("KAFKA_BOOTSTRAP_SERVERS", None)
    os.environ.pop("SPARK_REMOTE", None)
    os.environ["DAGSTER_HOME"] = str(root / ".dagster")
    say(f"Starting a Kafka broker and a Spark server{', its cluster and an S3 server' * cluster} on this machine")
    servers = up(root, s3=cluster, needs=SparkNeeds(stores=frozenset({"s3"} if cluster else ()), cluster=cluster))
    console.print(f"Kafka {servers.bootstrap_servers}, Spark {servers.spark_remote}")
    if cluster:
        os.environ |= {**s3_variables(root), "BACKFILL_WAREHOUSE": f"s3://{BUCKET}/warehouse"}
        console.print(f"Spark master {servers.spark_master}, S3 {servers.s3_endpoint}")
    try:
        with memory_watch(root) as memory:
            # The runs have already checked all tables; a short demo does not check them again.
            proved = () if flights == SHORT_FLIGHTS else ("flights", *VIEWS, *GROUPED)
            run = Demo(root=root, servers=str(servers.bootstrap_servers), flights=flights, proved=proved)
            run.prepare()
            run.backfill_under_fire()
            run.catch_up()
            correct = run.prove()
        console.print(
            f"\nTook {time.monotonic() - started:.0f} s; at most {memory[0] / 2**30:.1f} GiB of memory in all."
        )
    finally:
        down(root)
    if not correct:
        raise SystemExit(1)
    if root == REPOSITORY:
        console.print("[bold]make ui[/bold] shows the same assets, runs, checks and sensors in Dagster.")


@dataclass
class Demo:
    """The steps of the demo over one project."""

    root: Path
    servers: str
    flights: int
    proved: Sequence[str]
    workspace: Workspace = field(init=False)

    def __post_init__(self) -> None:
        self.workspace = workspace_in(load_definitions("definitions"))

    def prepare(self) -> None:
        """Begin from nothing, whatever an earlier demo left; then put half of the flights on the topic."""
        for name in (*reversed(GROUPED), *VIEWS, "flights"):
            if self.status(name).progress is not None:
                drop(self.workspace, name)
        admin = AdminClient({"bootstrap.servers": self.servers})
        if TOPIC in admin.list_topics(timeout=10).topics:
            admin.delete_topics([TOPIC])[TOPIC].result(timeout=10)
            wait_for("the old topic to go", lambda: TOPIC not in admin.list_topics(timeout=10).topics)
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(timeout=10)
        say(f"Sending the first {self.flights // 2:,} flights, before any view exists")
        self.send(0, self.flights // 2)

    def backfill_under_fire(self) -> None:
        """Backfill a view while ingest runs and flights arrive; kill its run in the middle; resume it."""
        pace = {"seconds": ARRIVES_WITHIN[self.flights]}
        rest = threading.Thread(target=self.send, args=(self.flights // 2, self.flights), kwargs=pace)
        rest.start()
        say("The other half arrives from now on; ingest and view work in runs of their own")
        ingest = threading.Thread(target=self.ingest_while, args=(rest,))
        ingest.start()
        view = self.start("refresh", VIEWS[0], "--chunk-rows", str(self.flights // 12))
        wait_for("the view's first epoch", lambda: self.epoch(VIEWS[0]) >= 1 or view.poll() is not None)
        for executor in islice(executors(self.root), 1):
            executor.kill()
            say("An executor of the cluster was killed with SIGKILL; the run goes on")
        wait_for("the view's second epoch", lambda: self.epoch(VIEWS[0]) >= 2 or view.poll() is not None)
        view.send_signal(signal.SIGKILL)
        view.wait()
        before = self.status(VIEWS[0])
        say("The view's run was killed with SIGKILL in the middle")
        self.show([before])
        say("A new run resumes it from its last commit, while the other view is backfilled beside it")
        runs = [self.start("refresh", name, "--chunk-rows", str(self.flights // 4)) for name in VIEWS]
        for run in runs:
            run.wait(LIMIT_SECONDS)
        for thread in (rest, ingest):
            thread.join(LIMIT_SECONDS)

    def catch_up(self) -> None:
        """One run takes the source and its live views."""
        say("All flights have arrived; one run brings the source and both views up to date")
        self.run("refresh", "flights", *VIEWS)
        say("Delays are grouped by carrier and day, and a view over that view picks the bad days")
        self.run("refresh", *GROUPED)
        self.show([self.status(name) for name in ("flights", *VIEWS, *GROUPED)])

    def prove(self) -> bool:
        """Run all checks of `proved`, and count both sides with nothing of Spark's: the package's file against the tables."""
        if self.proved:
            say("Proving exactly-once output: every row derived again from Kafka, compared with the tables")
            with ThreadPoolExecutor(2) as pool:
                for printed in pool.map(lambda name: self.output("verify", name), self.proved):
                    console.print(printed, markup=False, highlight=False)
        say("Counting both sides")
        expected = self.expected()
        table = Table("", "expected from the file", "found in the table", box=None)
        for name, count in expected.items():
            table.add_row(name, f"{count:,}", f"{self.count(name):,}")
        console.print(table)
        return all(self.count(name) == count for name, count in expected.items())

    def expected(self) -> dict[str, int]:
        """Row counts by plain Python over the package's file."""
        counts = dict.fromkeys(("flights", *VIEWS), 0)
        days: dict[tuple[object, ...], list[float]] = {}
        for record in flight_records(self.flights):
            counts["flights"] += 1
            counts["late_departures"] += float(str(record["dep_delay"] or 0)) > 15
            counts["routes"] += float(str(record["air_time"] or 0)) > 0
            late = days.setdefault(tuple(record[part] for part in ("carrier", "year", "month", "day")), [])
            if record["dep_delay"] is not None:
                late.append(float(str(record["dep_delay"])))
        bad = sum(sum(late) / len(late) > 60 for late in days.values() if late)
        return {**counts, "delays": len(days), "bad_days": bad}

    def count(self, name: str) -> int:
        """Rows in a table, by delta-rs."""
        loaded = self.workspace.store.place.table(self.workspace.registry.find(name).target).load()
        return 0 if loaded is None else int(loaded.to_pyarrow_dataset().count_rows())

    def send(self, start: int, end: int, *, seconds: float = 0.0) -> None:
        """Send flights, spread over some seconds if asked to."""
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 20})
        began = time.monotonic()
        for number, record in enumerate(islice(flight_records(end), start, None)):
            send(producer, TOPIC, record)
            if number % 1000 == 0:
                time.sleep(max(0.0, seconds * number / (end - start) - (time.monotonic() - began)))
        producer.flush(60)

    def ingest_while(self, rest: threading.Thread) -> None:
        """Refresh the source again and again while flights arrive."""
        while rest.is_alive():
            self.output("refresh", "flights")

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start a command of the project in a process of its own."""
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command(*words), cwd=self.root, env=environment(), stdout=quiet, stderr=quiet)

    def run(self, *words: str) -> None:
        """Run a command of the project, and print what it says; its failure ends the demo."""
        console.print(self.output(*words), markup=False, highlight=False)

    def output(self, *words: str) -> str:
        """What a command of the project says; its failure ends the demo."""
        done = subprocess.run(
            command(*words),
            cwd=self.root,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        if done.returncode not in {0, 3}:
            raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout}\n{done.stderr}")
        return done.stdout.rstrip()

    def status(self, name: str) -> Status:
        """How a table stands."""
        return status(self.workspace, name)

    def epoch(self, name: str) -> int:
        """The last committed epoch of a table; 0 while it is not there."""
        record = self.workspace.table(self.workspace.registry.find(name)).output.look().record
        return record.epoch if record is not None else 0

    def show(self, found: list[Status]) -> None:
        """Print where tables stand."""
        table = Table("name", "phase", "epoch", "rows done", "of", "percent", "lag", box=None)
        for each in found:
            now = each.progress
            if now is not None:
                numbers = (now.epoch, now.rows_done, now.rows_total, now.backfill_percent, now.lag_rows)
                table.add_row(each.name, now.phase, *(f"{number:,}" for number in numbers))
        console.print(table)


def command(*words: str) -> list[str]:
    """A command of the project, by the Python that runs this one."""
    return [str(Path(sys.executable).parent / "backfill"), *words]


def environment() -> dict[str, str]:
    """The environment of the demo's processes: the examples can be imported, and widths do not wrap."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "140"}


def say(text: str) -> None:
    """Head a step."""
    console.print(f"\n[bold]{text}[/bold]")


def wait_for(what: str, holds: Callable[[], bool]) -> None:
    """Wait until a condition holds; a demo that hangs says on what."""
    until = time.monotonic() + LIMIT_SECONDS
    while not holds():
        if time.monotonic() > until:
            raise SystemExit(f"waited {LIMIT_SECONDS} s for {what}")
        time.sleep(0.1)


def executors(root: Path) -> Iterator[psutil.Process]:
    """The executors of a cluster of this demo."""
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        if "CoarseGrainedExecutorBackend" in words and str(root / ".backfill") in words:
            yield process


def _memory(process: psutil.Process, root: Path) -> int:
    """The resident memory of a process of this demo; 0 for any other."""
    try:
        ours = psutil.Process() in {process, *process.parents()}
        server = str(root / ".backfill") in " ".join(process.cmdline())
        return int(process.memory_info().rss) if ours or server else 0
    except psutil.Error:
        return 0


@contextmanager
def memory_watch(root: Path) -> Iterator[list[int]]:
    """The most memory, in bytes, that this process, its runs and the project's servers held at once; read it at the end."""
    most = [0]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            most[0] = max(most[0], sum(_memory(process, root) for process in psutil.process_iter()))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    typer.run(main)
