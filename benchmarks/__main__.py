"""`python -m benchmarks`: measure, print a table, and write everything as JSON if asked to."""

import json
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import (
    backfill,
    changes,
    cluster,
    counting,
    epochs,
    first,
    idle,
    ingest,
    joins,
    many,
    queries,
    refresh,
    situations,
    small,
    start,
    store,
    tables,
)
from benchmarks.measure import Comparison, machine
from benchmarks.world import World, world

BENCHMARKS: dict[str, Callable[..., Iterator[Comparison]]] = {
    "ingest": ingest.run,
    "backfill": backfill.run,
    "first": first.run,
    "start": start.run,
    "refresh": refresh.run,
    "epochs": epochs.run,
    "idle": idle.run,
    "store": store.run,
    "cluster": cluster.run,
    "tables": tables.run,
    "changes": changes.run,
    "queries": queries.run,
    "joins": joins.run,
    "counting": counting.run,
    "small": small.run,
    "many": many.run,
    "situations": situations.run,
}
SIZED = {"ingest", "backfill", "tables", "changes", "queries", "joins", "counting", "small", "store", "cluster"}
"""Those whose size is a number of rows that `--rows` sets."""
NAMED = {"joins", "queries", "store"}
"""Those of which `--only` chooses cases."""


def main(
    names: Annotated[list[str] | None, typer.Argument(help=f"Some of {', '.join(BENCHMARKS)}; all without it.")] = None,
    rows: Annotated[int | None, typer.Option(min=32, help=f"Rows of {', '.join(sorted(SIZED))}.")] = None,
    repetitions: Annotated[int | None, typer.Option(min=1, help="How often each side is measured.")] = None,
    only: Annotated[
        str | None, typer.Option(help=f"The cases of {', '.join(sorted(NAMED))} with this in their name.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all numbers to this file.")] = None,
) -> None:
    """Measure this project against plain Spark and Structured Streaming, each on the same data in one run."""
    unknown = sorted(set(names or []) - BENCHMARKS.keys())
    if unknown:
        raise typer.BadParameter(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the broker is stopped, too
    logging.getLogger("backfill_assets").setLevel(logging.WARNING)
    found: dict[str, Any] = {"machine": machine(), "comparisons": []}
    console = Console()
    table = _empty_table()
    chosen = names or list(BENCHMARKS)
    with world(s3="store" in chosen) as place:
        for each in _measured(place, chosen, rows=rows, repetitions=repetitions, only=only):
            summary = each.summary()
            found["comparisons"].append(summary)
            table.add_row(*_cells(summary))
            console.log(" ".join(_cells(summary)))
            if json_file is not None:  # after each of them: a benchmark that fails takes no other's numbers with it
                json_file.write_text(json.dumps(found, indent=1))
    console.print(table)
    console.print(json.dumps(found["machine"]))


def _measured(place: World, names: list[str], **given: int | str | None) -> Iterator[Comparison]:
    asked = {"rows": SIZED, "repetitions": BENCHMARKS.keys(), "only": NAMED}
    for name in names:
        options = {key: value for key, value in given.items() if value is not None and name in asked[key]}
        yield from BENCHMARKS[name](place, **options)


def _empty_table() -> Table:
    table = Table(title="seconds, medians; a ratio above 1 means that this project is faster")
    for heading in ("benchmark", "case", "peer", "rows", "ours", "peer's", "ratio", "lowest to highest"):
        table.add_column(heading)
    return table


def _cells(summary: dict[str, Any]) -> list[str]:
    return [
        summary["benchmark"],
        summary["case"],
        summary["peer"],
        f"{summary['rows']:,}",
        f"{summary['ours_median']:.3f}",
        f"{summary['theirs_median']:.3f}",
        f"{summary['ratio_median']:.2f}",
        f"{summary['ratio_low']:.2f} to {summary['ratio_high']:.2f}",
    ]


if __name__ == "__main__":
    typer.run(main)
