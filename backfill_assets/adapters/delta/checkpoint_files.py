"""The files that a checkpoint of a log names, held as Arrow has them: a table may have a million of them, and as an object of
Python each takes a kilobyte."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["NO_FILES", "CheckpointFiles", "actions_of"]

_OTHERS: Final = ("protocol", "metaData", "sidecar")
_PARSED: Final = frozenset({"stats_parsed", "partitionValues_parsed"})
"""What a checkpoint says a second time."""
_BATCH: Final = 20_000


@dataclass(frozen=True, eq=False)
class CheckpointFiles:
    """The `add` actions of a checkpoint, one in each of the rows; and the numbers of the rows, in the `order` of paths."""

    rows: pa.Table
    order: npt.NDArray[np.int64]

    @classmethod
    def of(cls, parts: Iterable[pa.Table]) -> "CheckpointFiles":
        """Those of all parts of a checkpoint."""
        from pyarrow import compute as pc

        found = [each for each in parts if len(each)]
        if not found:
            return NO_FILES
        rows = pa.concat_tables(found, promote_options="permissive")
        return cls(rows, np.frombuffer(pc.sort_indices(rows["path"]).buffers()[1], np.int64)[: len(rows)])

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, path: str) -> int:
        """How many files have smaller paths."""
        return bisect_left(range(len(self)), path, key=lambda at: self._path(int(self.order[at])))

    def find(self, path: str) -> int | None:
        """The row of a path; None if there is none."""
        place = self.place(path)
        at = int(self.order[place]) if place < len(self) else -1
        return at if at >= 0 and self._path(at) == path else None

    def action(self, at: int) -> dict[str, Any]:
        """The action in a row."""
        (found,) = _dicts(self.rows.slice(at, 1))
        return found

    def merged(self, gone: Iterable[str], added: Sequence[str]) -> npt.NDArray[np.int64]:
        """The rows that are left without some paths, and sorted paths that were added, in one order: -1 stands for the first
        that was added, -2 for the second, and so on."""
        taken = [at for at in map(self.find, gone) if at is not None]
        places = [self.place(path) for path in added]
        order = np.insert(self.order, places, -1 - np.arange(len(added), dtype=np.int64))
        return order[~np.isin(order, taken)] if taken else order

    def actions(self, order: npt.NDArray[np.int64]) -> Iterator[dict[str, Any] | None]:
        """The actions in some rows, in their order; None where a number is none of a row."""
        for start in range(0, len(order), _BATCH):
            some = order[start : start + _BATCH]
            held = iter(_dicts(self.rows.take(_numbers(some[some >= 0]))))
            for at in some:
                yield next(held) if at >= 0 else None

    def _path(self, at: int) -> str:
        return str(self.rows.column("path")[at].as_py())


NO_FILES: Final = CheckpointFiles(pa.Table.from_batches([], pa.schema({"path": pa.string()})), np.array([], np.int64))


def actions_of(checkpoint: pa.NativeFile, files: list[pa.Table]) -> Iterator[Mapping[str, Any]]:
    """The actions of a Parquet checkpoint that say nothing of files. Those of files are put into `files`."""
    reader = pq.ParquetFile(checkpoint)
    schema = reader.schema_arrow
    there = [name for name in _OTHERS if name in schema.names]
    fields = [each.name for each in schema.field("add").type] if "add" in schema.names else []
    wanted = [*there, *(f"add.{name}" for name in fields if name not in _PARSED)]
    for batch in reader.iter_batches(batch_size=_BATCH, columns=wanted):
        rows = pa.Table.from_batches([batch])
        if fields:
            add = batch.column("add")
            files.append(pa.Table.from_struct_array(add.filter(add.is_valid())))
            rows = rows.filter(add.is_null()).drop_columns(["add"])
        yield from _dicts(rows)


def _numbers(rows: npt.NDArray[np.int64]) -> pa.Array:
    """The same for Arrow, which would import pandas to make it: that takes a third of a second."""
    return pa.Int64Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(rows.tobytes())])


def _dicts(rows: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.to_pylist(maps_as_pydicts="strict")
    return found
