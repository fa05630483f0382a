"""Whether staged files have exactly the columns of their table."""

from collections.abc import Iterable
from dataclasses import dataclass

from backfill_assets.core.epoch.records import Columns, StagedFile

__all__ = ["Misfit", "misfit"]


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """A column that differs between a file and its table; None stands for a missing one."""

    path: str
    column: str
    expected: str | None
    found: str | None


def misfit(files: Iterable[StagedFile], columns: Columns) -> Misfit | None:
    """The first column, file by file, that is missing, has another type, or is not in the table; None if all fit.

    Names are case-sensitive, as for readers outside Spark. The order of columns does not matter.

    Args:
        files: Staged files, each with the columns in its footer.
        columns: The columns of the table, with types spelled in the same way.
    """
    expected = dict(columns)
    for file in files:
        found = dict(file.columns)
        for name in (*expected, *found):
            if expected.get(name) != found.get(name):
                return Misfit(path=file.path, column=name, expected=expected.get(name), found=found.get(name))
    return None
