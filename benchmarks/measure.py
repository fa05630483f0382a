"""Measuring: two ways of doing the same, in turns, in one run; and what machine that was on.

A single time says little on a machine that others use too, so everything is a ratio of neighbours: above 1, this project
is the faster one.
"""

import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from statistics import median
from typing import Any, Protocol

import psutil

from backfill_assets.adapters.runtime.spark_conf import cores

__all__ = ["Comparison", "Sides", "compare", "in_turns", "machine", "timed"]

PACKAGES = ("pyspark", "delta-spark", "deltalake", "dagster", "confluent-kafka", "pyarrow")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Seconds of this project and of a peer for the same work, pair by pair; `rows` is what one repetition handles."""

    benchmark: str
    case: str
    peer: str
    rows: int
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    details: dict[str, float] = field(default_factory=dict)

    @property
    def ratios(self) -> list[float]:
        """The peer's time over ours, for each pair."""
        return [theirs / ours for ours, theirs in zip(self.ours, self.theirs, strict=True)]

    def summary(self) -> dict[str, Any]:
        """All of it with medians and spread, as JSON takes it."""
        ratios = sorted(self.ratios)
        return {
            **asdict(self),
            "ours_median": median(self.ours),
            "theirs_median": median(self.theirs),
            "ratio_median": median(ratios),
            "ratio_low": ratios[0],
            "ratio_high": ratios[-1],
        }


class Sides(Protocol):
    """Both ways of doing one thing; each returns its seconds and notes in `contents` what it wrote."""

    contents: set[object]

    def ours(self) -> float:
        """This project's way."""
        ...

    def theirs(self) -> float:
        """The peer's way."""
        ...


def compare(sides: Sides, *, repetitions: int, warmups: int, **labels: Any) -> Comparison:
    """Measure both ways in turns, and see that they wrote the same; `labels` are those of the comparison."""
    ours, theirs = in_turns(sides.ours, sides.theirs, repetitions=repetitions, warmups=warmups)
    assert len(sides.contents) == 1, f"both must write the same rows: {sides.contents}"
    return Comparison(ours=ours, theirs=theirs, **labels)


def timed(action: Callable[[], object]) -> float:
    """How long an action takes, in seconds."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def in_turns(
    ours: Callable[[], float], theirs: Callable[[], float], *, repetitions: int, warmups: int = 1
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The seconds of both, taken in turns; who goes first changes each time, and the first rounds do not count."""
    pairs = []
    for number in range(warmups + repetitions):
        if number % 2:
            second, first = theirs(), ours()
        else:
            first, second = ours(), theirs()
        pairs.append((first, second))
    counted = pairs[warmups:]
    return tuple(first for first, _ in counted), tuple(second for _, second in counted)


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": cores(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_1m": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }
