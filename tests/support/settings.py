"""How much is proven: the gate (`make test`) in minutes, or everything (`make test-full`) with production settings."""

import os
from typing import Any

import pytest

from backfill_assets.app import table_checks

__all__ = [
    "CHECKS",
    "CHECKS_ELSEWHERE",
    "FULL",
    "IN_A_STORE",
    "JAVA",
    "ON_A_CLUSTER",
    "PLACE",
    "QUICK",
    "SPARK",
    "examples",
    "one_in_gate",
    "seeds",
]

FULL = os.environ.get("BACKFILL_TEST_FULL") == "1"
"""Whether this is the full proof."""

QUICK = os.environ.get("BACKFILL_TEST_QUICK") == "1"
"""Whether this is a first look (`make test-fast`), with a third of the gate's examples and seeds."""

PLACE = os.environ.get("BACKFILL_TEST_PLACE", "disk")
"""Where tables of projects lie and Spark computes: on a `disk`, with Spark in each process; on `s3`, with a Spark server; the
same on a `cluster`; in an emulator of `azure` or `gcs`, with a Spark server; or on a disk, and only checks are made of copies
on S3 (`checks_on_s3`), by a Spark server or by a cluster (`checks_on_cluster`)."""
ON_A_CLUSTER = PLACE in {"cluster", "checks_on_cluster"}
CHECKS_ELSEWHERE = PLACE in {"checks_on_s3", "checks_on_cluster"}
IN_A_STORE = ("s3", "cluster", "azure", "gcs")
"""The places where tables of projects lie in a store."""

SPARK: dict[str, str] = (
    {}
    if FULL
    # Most plans here run once over a few rows: to compile a plan takes longer than to interpret it. Nobody looks at one.
    else {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.ui.explainMode": "simple",
    }
)
"""Spark settings in addition to the product's own: none in the full proof."""

JAVA = (
    ""
    if FULL
    else "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:NewRatio=1 -XX:MetaspaceSize=256m"
)
"""Options of every JVM. While tests keep all cores busy, the optimizing compiler (C2) costs more than it saves. With C1 alone
the code cache is 48 MB by default, which Spark overflows: the JVM would discard and recompile code all the time. Garbage is
collected less often where half of the memory is for new objects, and not as soon as Spark's classes are loaded."""

CHECKS = table_checks.CHECKS if FULL else ("positions_contiguous", "ledger_matches_table", "exactly_once")
"""The checks that views pass in scenarios whose rows are compared with their query anyway. Checks have tests of their own,
so the gate needs no jobs of Spark here that count rows and compare keys."""

_MORE_EXAMPLES = 10
_FEWER = 3


def examples(gate: int, full: int = 0) -> int:
    """The number of examples that Hypothesis tries, given that of the gate, and that of the full proof if it is more than ten
    times as many."""
    return max(gate * _MORE_EXAMPLES, full) if FULL else _looked_at(gate)


def seeds(gate: int, full: int) -> range:
    """The seeds of a simulation: the same in every run, and more in the full proof."""
    return range(full if FULL else _looked_at(gate))


def _looked_at(gate: int) -> int:
    return max(gate // _FEWER, 1) if QUICK else gate


def one_in_gate(first: str, *others: str) -> list[Any]:
    """Parameters of which the gate tries only the first, because the rule under test is the same for all."""
    return [first, *(pytest.param(each, marks=pytest.mark.full) for each in others)]
