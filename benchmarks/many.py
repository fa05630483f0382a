"""Much of everything: 1,000 tables in one code location, 10,000 partitions of a topic, a table of 1,000,000 files, 100,000
waiting versions. What this costs without Spark, against a tenth of it: a ratio of 0.1 is linear. Each is measured in a
process of its own, whose memory is in the details.
"""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from backfill_assets import delta_table, materialized_view
from backfill_assets.adapters.kafka.connector import KafkaConnector
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.state.state_store import StateStore
from backfill_assets.app.refresh import refresh
from backfill_assets.app.status import status
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.progress.positions import SnapshotPosition, TablePosition
from backfill_assets.declare.model import Declared, MaterializedView
from backfill_assets.defs.definitions import definitions_at
from benchmarks.epochs import made_up
from benchmarks.measure import Comparison
from benchmarks.world import World, declared_over

__all__ = ["run"]

SIZES = {"tables": 1_000, "partitions": 10_000, "files": 1_000_000, "versions": 100_000}
ROWS_OF_VERSION = 10
READ = 100
"""As many versions fit into the epoch that is planned."""

_ROOT = Path(__file__).resolve().parent.parent


def run(world: World, *, sizes: Mapping[str, int] | None = None) -> Iterator[Comparison]:
    """Each case at its size, and at a tenth of it."""
    for name, size in (sizes or SIZES).items():
        found = []
        for number in (size, size // 10):
            with world.folder() as folder:
                _PREPARED[name](world, folder, number)
                asked = [sys.executable, "-m", "benchmarks.many", name, str(number), str(folder)]
                said = subprocess.run(asked, cwd=_ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
                found.append(json.loads(said.splitlines()[-1]))
        large, small = found
        for case in large["seconds"]:
            yield Comparison(
                benchmark="many",
                case=f"{size:,} {name}: {case}",
                peer="a tenth of it",
                rows=size,
                ours=(large["seconds"][case],),
                theirs=(small["seconds"][case],),
                details={"mib": large["mib"], "mib_of_a_tenth": small["mib"]},
            )


def _view(name: str = "seen", over: str = "many") -> MaterializedView:
    table = delta_table(over, path=f"lake/{over}")
    return materialized_view(name, query=f"SELECT id FROM {over} WHERE id > 0", upstreams=[table], strategy="snapshot")


def _workspace(folder: Path, *declared: Declared) -> Workspace:
    return Workspace(
        declared={each.name: each for each in declared},
        store=StateStore(root=str(folder)),
        kafka=KafkaConnector(bootstrap_servers="127.0.0.1:1", root=str(folder)),
        spark=SparkResource(root=str(folder)),
    )


def _tables_there(world: World, folder: Path, number: int) -> None:
    """One view and its table are made by Spark; the others are copies under other names."""
    write_deltalake(str(folder / "lake" / "many0"), pa.table({"id": [1, 2, 3]}), configuration=_APPEND_ONLY)
    view = _view("seen0", "many0")
    world.refresh(folder, {view.name: view}, view.name)
    for at in range(1, number):
        shutil.copytree(folder / "lake" / "many0", folder / "lake" / f"many{at}")
        made = folder / "warehouse" / "views" / f"seen{at}"
        shutil.copytree(folder / "warehouse" / "views" / "seen0", made)
        plans = folder / "warehouse" / "_state" / "plans" / "views" / f"seen{at}"
        shutil.copytree(plans.with_name("seen0"), plans)
        for entry in [*made.glob("_delta_log/*.json"), *plans.rglob("*.json")]:
            entry.write_text(entry.read_text().replace("seen0", f"seen{at}").replace("many0", f"many{at}"))


def _tables(folder: Path, number: int) -> Iterator[tuple[str, Callable[[], object]]]:
    views = [_view(f"seen{at}", f"many{at}") for at in range(number)]
    made: list[dg.Definitions] = []

    def load() -> None:
        store = {"backfill_state": StateStore(root=str(folder))}
        made.append(definitions_at(folder, tuple(views), resources=store))
        made[0].get_repository_def()

    def tick() -> None:
        repository, resources = made[0].get_repository_def(), dict(made[0].resources or {})
        with dg.build_sensor_context(
            instance=dg.DagsterInstance.ephemeral(), repository_def=repository, resources=resources
        ) as context:
            found = repository.get_sensor_def("new_delta_data").evaluate_tick(context)
        assert (found.skip_message or "").count("up to date") == number, found

    def look() -> None:
        workspace = _workspace(folder, *views)
        assert {status(workspace, each.name).state for each in views} == {"idle"}

    yield "definitions are loaded", load
    yield "a tick of a sensor where nothing is new", tick
    yield "the status of all", look


def _partitions(folder: Path, number: int) -> Iterator[tuple[str, Callable[[], object]]]:
    workspace = made_up(_workspace(folder, *declared_over("made-up").values()), partitions=number, rows=8 * number)
    yield "the table is created", lambda: refresh(workspace, "orders", Limits(max_rows=0), run_id="creates")

    def read() -> None:
        done = refresh(workspace, "orders", Limits(chunk_rows=number), run_id="epochs")
        assert done.report.totals.epochs == 8

    yield "8 epochs with rows of each partition", read


_APPEND_ONLY = {"delta.appendOnly": "true"}


def _files_there(_world: World, folder: Path, number: int) -> None:
    """The log of a table of so many files, in a checkpoint; of these there are those that an epoch would read."""
    table = folder / "lake" / "many"
    write_deltalake(str(table), pa.table({"id": [1]}), configuration=_APPEND_ONLY)
    DeltaTable(table).create_checkpoint()
    (path,) = table.glob("_delta_log/*.checkpoint.parquet")
    rows = pq.read_table(path)
    rows = rows.cast(pa.schema([pa.field(each.name, _nullable(each.type)) for each in rows.schema]))
    is_file = [each is not None for each in rows["add"].to_pylist()]
    (one,) = (at for at, each in enumerate(is_file) if each)
    others = rows.filter(pa.array([not each for each in is_file]))
    add = rows["add"].combine_chunks().take(pa.array([one] * number))
    names = [each.name for each in add.type]
    values = dict(zip(names, add.flatten(), strict=True))
    paths = [f"part-{at:07}-{'0' * 28}.parquet" for at in range(number)]
    values["path"] = pa.array(paths)
    (there,) = table.glob("*.parquet")
    for each in paths[: 2 * READ]:
        (table / each).hardlink_to(there)
    many = pa.StructArray.from_arrays([values[name] for name in names], fields=list(add.type))
    columns = {each.name: pa.nulls(number, each.type) for each in rows.schema} | {"add": many}
    pq.write_table(pa.concat_tables([others, pa.table(columns, schema=rows.schema)]), path)
    hint = table / "_delta_log" / "_last_checkpoint"
    hint.write_text(json.dumps({"version": 0, "size": number + len(others)}))


def _nullable(kind: pa.DataType) -> pa.DataType:
    """A type in which each field of a struct may be null: pyarrow writes no others where the struct is."""
    if not pa.types.is_struct(kind):
        return kind
    return pa.struct([pa.field(each.name, _nullable(each.type)) for each in kind.fields])


def _files(folder: Path, number: int) -> Iterator[tuple[str, Callable[[], object]]]:
    view = _view()
    parts = _workspace(folder, view).table(view).parts
    begun: list[SnapshotPosition] = []

    def begin() -> None:
        found = parts.decider.begin()
        assert found.total == number
        begun.append(parts.decider.kind.model_validate(found.position))

    def plan() -> None:
        step = parts.decider.next(begun[0], live=False, budget=READ)
        assert step is not None
        assert step.after.tables["many"].rows == min(READ, number)

    yield "a life begins", begin
    yield f"an epoch of {READ} of them is planned", plan


def _versions_there(_world: World, folder: Path, number: int) -> None:
    """A log of so many versions that each added a file. Of the files there are those that an epoch would read."""
    table = folder / "lake" / "many"
    write_deltalake(str(table), pa.table({"id": [0] * ROWS_OF_VERSION}), configuration=_APPEND_ONLY)
    (first,) = table.glob("*.parquet")
    log = table / "_delta_log"
    entry = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    add = next(each["add"] for each in entry if "add" in each)
    for version in range(1, number + 1):
        path = f"part-{version:07}.parquet"
        if version <= READ:
            (table / path).hardlink_to(first)
        info = {"commitInfo": {"timestamp": add["modificationTime"] + version, "operation": "WRITE"}}
        (log / f"{version:020d}.json").write_text(json.dumps(info) + "\n" + json.dumps({"add": {**add, "path": path}}))
    DeltaTable(table).create_checkpoint()


def _versions(folder: Path, number: int) -> Iterator[tuple[str, Callable[[], object]]]:
    view = _view()
    parts = _workspace(folder, view).table(view).parts
    at: list[SnapshotPosition] = []

    def look() -> None:
        upstream = _workspace(folder, view).inputs(view).tables["many"]
        began = upstream.commit_timestamp(0)
        assert began is not None
        table = TablePosition(table_id=upstream.now().table_id, pinned=0, version=0, commit_ms=began, buckets={})
        at.append(SnapshotPosition(tables={"many": table}))

    def plan() -> None:
        step = parts.decider.next(at[0], live=True, budget=READ * ROWS_OF_VERSION)
        assert step is not None
        assert step.after.tables["many"].version == READ

    def lag() -> None:
        assert parts.decider.lag(at[0]) == {"many": number * ROWS_OF_VERSION}

    yield "a look at the table", look
    yield f"an epoch of {READ} of them is planned", plan
    yield "the lag", lag


_PREPARED: Mapping[str, Callable[[World, Path, int], None]] = {
    "tables": _tables_there,
    "partitions": lambda *_: None,
    "files": _files_there,
    "versions": _versions_there,
}
_MEASURED: Mapping[str, Callable[[Path, int], Iterator[tuple[str, Callable[[], object]]]]] = {
    "tables": _tables,
    "partitions": _partitions,
    "files": _files,
    "versions": _versions,
}


def _measured(name: str, number: int, folder: Path) -> dict[str, object]:
    """The seconds of each step of a case, and how much memory its process has used."""
    seconds = {}
    for case, step in _MEASURED[name](folder, number):
        started = time.perf_counter()
        step()
        seconds[case] = time.perf_counter() - started
    (most,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return {"seconds": seconds, "mib": int(most.split()[1]) // 1024}


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))))
