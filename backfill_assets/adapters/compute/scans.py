"""Counts the rows that Spark reads of an epoch's inputs, in the same pass that computes the epoch.

Each scan is observed where its rows leave the files. Spark has no count of a scan that it took out of its plan (a condition
that is false, a join with nothing), and counts rows twice that it reads twice (a cross join, the sampling before a sort, a
task whose output was lost). `core.epoch.conservation` decides what is then read once more.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import gcd
from typing import TYPE_CHECKING, Any

from backfill_assets.adapters.compute.spark_errors import is_of_values
from backfill_assets.adapters.spark.session import is_remote
from backfill_assets.core.epoch.conservation import MOST_ALONE, Found, Judgement, Scan, judged, mismatch
from backfill_assets.core.epoch.records import Plan
from backfill_assets.query.ddl import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

__all__ = ["Count", "Inputs", "Scans", "uncounted"]

Count = Callable[["DataFrame", Callable[[], "int | None"]], "DataFrame"]
"""Has rows counted that Spark reads of a table. The function says how many there are, None if that is not known."""

_ROWS, _HASH = "rows", "__hash"
_PARITY = "parity"
_SUMS = {f"sum_{low}": f"sum(shiftright({_HASH}, {low}) & 65535)" for low in (0, 16, 32, 48)}
"""Sums of four parts of the rows' hashes, of 16 bits each."""
_NESTED = re.compile(r"\b(?:map|array|struct|variant)\b")


def uncounted(rows: "DataFrame", _stated: Callable[[], int | None]) -> "DataFrame":
    """A `Count` of what need not be counted."""
    return rows


@dataclass(frozen=True)
class Inputs(Mapping[str, "DataFrame"]):
    """The rows of upstreams by `names`, which `make` makes anew for each place of a query that asks for them.

    Each place reads columns of its own, and Spark keeps one count of each name in a plan: that of whichever place is last.
    """

    names: Collection[str]
    make: "Callable[[str], DataFrame]"

    def __getitem__(self, name: str) -> "DataFrame":
        if name not in self.names:
            raise KeyError(name)
        return self.make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names


@dataclass(frozen=True, kw_only=True)
class _Observed:
    scan: Scan
    rows: "DataFrame"
    observation: "Observation"


@dataclass(frozen=True, kw_only=True)
class Scans:
    """What Spark reads to compute one epoch. `by` makes what counts a scan, `computed` is told of each action that wrote
    something, and `check` compares. What else is to be told of the epoch can be measured in the same pass.

    `implied`: what is read may be left out by Spark, as other scans decide whether there is anything to read it for.
    `ends_early`: Spark may stop reading, as the query has a LIMIT or looks for one row.
    `every_value`: a table may be read at several places, or several times for one place, and Spark may leave out some of
    these reads, keep only one of their counts, or add them up. So that one count stands for all, every value is read with it:
    otherwise each would be of other columns, and a file may be damaged in one of these alone.
    """

    plan: Plan
    implied: bool = False
    ends_early: bool = False
    every_value: bool = False
    _observed: dict[str, _Observed] = field(default_factory=dict)
    _sent: dict[str, Found] = field(default_factory=dict)
    _measured: dict[str, tuple[str, "Observation"]] = field(default_factory=dict)
    _noted: dict[str, int] = field(default_factory=dict)

    def by(self, scan: Callable[[int], Scan]) -> Count:
        """Counts rows that are read as the scan that `scan` makes of how many there are; none if that is not known."""

        def count(rows: "DataFrame", stated: Callable[[], int | None]) -> "DataFrame":
            there = stated()
            return rows if there is None else self._observe(rows, scan(there))

        return count

    def measure(self, rows: "DataFrame", name: str) -> "DataFrame":
        """Has rows counted for reports alone; `measured` tells how many there were."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812

        place = f"measured_{len(self._measured)}"
        self._measured[place] = (name, Observation(place))
        return rows.observe(self._measured[place][1], F.count(F.lit(1)).alias(_ROWS))

    def note(self, name: str, rows: int) -> None:
        """The same of rows that are known without Spark."""
        self._noted[name] = self._noted.get(name, 0) + rows

    def measured(self, name: str) -> int:
        """How many rows were measured under a name, all together; rows that Spark left out count for nothing."""
        found = (
            self._sent.get(place) or _in_process(at) for place, (given, at) in self._measured.items() if given == name
        )
        return self._noted.get(name, 0) + sum(each.rows for each in found if each is not None)

    def computed(self, written: "DataFrame") -> None:
        """Take over the counts of an action that is done. A Spark Connect server sends them with its answer, to its frame: of
        what lies below SQL text, nowhere else."""
        if is_remote(written.sparkSession):
            flows = written.executionInfo.flows if written.executionInfo is not None else ()
            self._sent.update(
                (name, _found(found))
                for name, found in flows
                if name in self._observed.keys() | self._measured.keys() and _ROWS in found
            )

    @contextmanager
    def checked(self) -> "Iterator[None]":
        """Checks what is computed inside: at its end, and where it fails by values, as missing rows may cause that."""
        try:
            yield
        except Exception as error:
            if is_of_values(error):
                self._check_alone()
            raise
        self.check()

    def check(self) -> None:
        """Refuse what was read if it is not what there is: at each place that Spark has counted, or once if it has counted
        none. Errors: `ReadMismatchError`."""
        places: dict[Scan, list[tuple[_Observed, Found | None]]] = {}
        for name, each in self._observed.items():
            found = self._sent.get(name) or _in_process(each.observation)
            places.setdefault(each.scan, []).append((each, found))
        for scan, all_found in places.items():
            counted = [place for place in all_found if place[1] is not None]
            for each, found in counted or all_found[:1]:
                self._judge(scan, each, found)

    def _check_alone(self) -> None:
        """The same, of scans that an action has begun and not finished, so that its counts mean nothing."""
        for scan, each in {each.scan: each for each in self._observed.values()}.items():
            if 0 < scan.least <= MOST_ALONE:
                self._judge(scan, each, None)

    def _judge(self, scan: Scan, each: _Observed, found: Found | None) -> None:
        judgement = judged(scan, found)
        if judgement is Judgement.COUNT_ALONE:
            found = Found(rows=_alone(each.rows))
            judgement = judged(scan, found, alone=True)
        if judgement is not Judgement.RIGHT:
            raise mismatch(self.plan.target, self.plan.epoch, scan, 0 if found is None else found.rows)

    def _observe(self, rows: "DataFrame", scan: Scan) -> "DataFrame":
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812

        name = f"scan_{len(self._observed)}"
        known = replace(scan, implied=self.implied, ends_early=self.ends_early)
        self._observed[name] = _Observed(scan=known, rows=rows, observation=Observation(name))
        observation, counts = self._observed[name].observation, F.count(F.lit(1)).alias(_ROWS)
        if not self.every_value:
            return rows.observe(observation, counts)
        hashed = rows.withColumn(_HASH, F.expr(_hash_of(rows.dtypes)))
        more = {_PARITY: f"bit_xor({_HASH})", **_SUMS}
        return hashed.observe(observation, counts, *(F.expr(sql).alias(each) for each, sql in more.items())).drop(_HASH)


def _hash_of(columns: Sequence[tuple[str, str]]) -> str:
    """SQL that takes every value of columns, which have these types: Spark has no hash of maps."""
    simple = (f"CAST({quoted(name)} AS STRING)" if _NESTED.search(kind) else quoted(name) for name, kind in columns)
    return f"xxhash64({', '.join(simple)})"


def _in_process(observation: Any) -> Found | None:
    """The count of an observation within this process; None where no action has read these rows.

    Python's own way to ask waits for an action that may never come, and fails for a scan that was taken out of the plan.
    Spark completes observations before it returns from an action.
    """
    observed = getattr(observation, "_jo", None)
    if observed is None or not observed.future().isCompleted():
        return None
    row = observed.getRow()
    return _found({name: row.getAs(name) for name in row.schema().fieldNames()}) if row.size() else None


def _found(metrics: Mapping[str, Any]) -> Found:
    """What an observation tells. Where all rows are read several times, each bit of their hashes is set an even number of
    times, or the number of times divides all sums. By chance, this is so for less than one scan of a hundred."""
    rows = int(metrics[_ROWS])
    sums = [int(metrics[name] or 0) for name in _SUMS if name in metrics]
    common = gcd(rows, *sums)
    again = bool(rows) and bool(sums) and (not metrics[_PARITY] or common & (common - 1) != 0)
    return Found(rows=rows, again=again)


def _alone(rows: "DataFrame") -> int:
    """How many rows a job reads that takes every value, as files that are damaged have rows as long as nobody opens them."""
    (counted,) = rows.selectExpr("count(1) AS rows", "max(length(CAST(struct(*) AS STRING))) AS longest").collect()
    return int(counted[_ROWS])
