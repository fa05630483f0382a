"""Whether staged files have just the columns of the table that is to take them."""

from collections.abc import Iterable
from dataclasses import dataclass

from backfill_assets.core.epoch.records import Columns, StagedFile

__all__ = ["Misfit", "misfit"]


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """A column that a file and a table do not have alike; None stands for one that is not there."""

    path: str
    column: str
    expected: str | None
    found: str | None


def misfit(files: Iterable[StagedFile], columns: Columns) -> Misfit | None:
    """The first column, file by file, that is missing, has another type, or is in no table; None where all fit.

    Names count with their case, as readers outside Spark look them up; their order does not count, nor does it for them.

    Args:
        files: Staged files, each with what its footer says of its columns.
        columns: Those of the table, types spelled in the same way.
    """
    expected = dict(columns)
    for file in files:
        found = dict(file.columns)
        for name in (*expected, *found):
            if expected.get(name) != found.get(name):
                return Misfit(path=file.path, column=name, expected=expected.get(name), found=found.get(name))
    return None
