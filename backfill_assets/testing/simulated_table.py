"""Simulated Delta tables with delta-rs's optimistic concurrency, and an output that fails in every way a real one can.

A commit is made on the version that an object loaded when it last looked, and fails if anyone has committed since.
Files are staged beside the log; nobody sees them until a commit names them.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from backfill_assets.core.epoch.ports import Output
from backfill_assets.core.epoch.records import CommitRecord, Staged, StagedFile, TableState
from backfill_assets.errors import StagingError
from backfill_assets.testing.simulated_topic import Row

__all__ = [
    "CommitConflict",
    "Outcome",
    "SimulatedOutput",
    "SimulatedTable",
    "Timeout",
    "UnreliableOutput",
    "Version",
    "outcomes_from",
]

NO_TABLE = -1


class CommitConflict(Exception):  # noqa: N818  (what delta-rs calls it)
    """Somebody else has committed since the table was loaded."""


class Timeout(Exception):  # noqa: N818  (what it is)
    """No answer came: the commit may have happened, or not."""


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of a table.

    Attributes:
        rows: All rows of the table at this version.
        record: What the commit recorded; None for a commit that is not an epoch.
        data_change: Whether the commit changed rows, or only files.

    Examples:
        >>> Version().rows
        ()
    """

    rows: tuple[Row, ...] = ()
    record: CommitRecord | None = None
    data_change: bool = False


class SimulatedTable:
    """The log of one table, shared by all objects that have it open.

    Args:
        target: The table's name, such as `views/sales`.

    Examples:
        >>> table = SimulatedTable("views/sales")
        >>> table.empty()
        >>> table.write_external([Row("sales", 0, 0, "a")])
        >>> table.version, table.look().external
        (1, 1)
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self.versions: list[Version] = []
        self.files: dict[str, tuple[Row, ...]] = {}
        self.on_commit: list[Callable[[SimulatedTable], None]] = []

    @property
    def version(self) -> int:
        """The newest version; -1 if the table does not exist."""
        return len(self.versions) - 1

    @property
    def rows(self) -> Counter[Row]:
        """The rows that a reader of the newest version sees, with the number of duplicates."""
        return Counter(self.versions[-1].rows) if self.versions else Counter()

    @property
    def commits(self) -> list[CommitRecord]:
        """The records of all epochs, in order."""
        return [version.record for version in self.versions if version.record is not None]

    def look(self) -> TableState:
        """What the log says: the last epoch, and whether others wrote after it."""
        for at in range(self.version, NO_TABLE, -1):
            record = self.versions[at].record
            if record is not None:
                later = range(at + 1, self.version + 1)
                external = next((each for each in later if self.versions[each].data_change), None)
                return TableState(version=self.version, record=record, at=at, external=external)
        changed = next((at for at, each in enumerate(self.versions) if each.data_change), None)
        return TableState(version=self.version, external=changed)

    def schema(self) -> str:
        """The table's schema. With `empty`, this implements `run.TableCreator`."""
        return "source STRING, partition INT, offset LONG, value STRING"

    def empty(self) -> None:
        """Create the table without any epoch, if it does not exist."""
        if not self.versions:
            self._append(Version())

    def maintain(self) -> None:
        """Commit as maintenance does: files change, rows do not."""
        self._append(Version(rows=self.versions[-1].rows))

    def write_external(self, rows: Iterable[Row]) -> None:
        """Append rows as a writer that knows nothing of epochs.

        Args:
            rows: The rows.
        """
        self._append(Version(rows=(*self.versions[-1].rows, *rows), data_change=True))

    def restore(self, version: int) -> None:
        """Commit the rows of an earlier version, as `RESTORE TABLE … TO VERSION` does.

        Args:
            version: The earlier version.
        """
        self._append(Version(rows=self.versions[version].rows, data_change=True))

    def restore_backup(self, version: int) -> None:
        """Restore the folder from a backup: later versions are gone without a trace.

        Args:
            version: The newest version of the backup.
        """
        del self.versions[version + 1 :]

    def commit(self, record: CommitRecord, staged: Staged, *, on: int) -> None:
        """Commit an epoch. Like delta-rs, this does not check whether the files exist.

        Args:
            record: What the commit records.
            staged: The files to add.
            on: The version that the committing run has loaded.

        Raises:
            CommitConflict: There is a newer version.
        """
        if on != self.version:
            raise CommitConflict(f"{self.target}: loaded version {on}, found version {self.version}")
        kept = () if staged.replaces else self.versions[on].rows
        added = tuple(row for file in staged.files for row in self.files[file.path])
        self._append(Version(rows=kept + added, record=record, data_change=bool(added) or staged.replaces))

    def stage(self, folder: str, rows: Iterable[Row]) -> tuple[StagedFile, ...]:
        """Write a file that no reader sees yet.

        Args:
            folder: The attempt's folder.
            rows: The rows of the file.

        Returns:
            The file; nothing if there are no rows.
        """
        held = tuple(rows)
        path = f"{folder}/part-0.parquet"
        self.files[path] = held
        return (
            (StagedFile(path=path, size=len(held), rows=len(held), modified_ms=0, stats="{}", columns=()),)
            if held
            else ()
        )

    def _append(self, version: Version) -> None:
        self.versions.append(version)
        for hook in self.on_commit:
            hook(self)


class SimulatedOutput:
    """One run's access to a table; implements `ports.Output`.

    Args:
        table: The table.

    Examples:
        >>> SimulatedOutput(SimulatedTable("views/sales")).look().exists
        False
    """

    def __init__(self, table: SimulatedTable) -> None:
        self.table = table
        self.loaded = NO_TABLE

    def look(self) -> TableState:
        """Load the newest version; the next commit is made on it."""
        self.loaded = self.table.version
        return self.table.look()

    def commit(self, record: CommitRecord, staged: Staged) -> None:
        """Commit an epoch on the loaded version.

        Args:
            record: What the commit records.
            staged: The files to add.
        """
        self.table.commit(record, staged, on=self.loaded)

    def engine(self, staged: Staged) -> str:
        """How the rows are written; simulated epochs only add rows.

        Args:
            staged: The files to add.

        Returns:
            Always `append`.
        """
        assert staged.appends
        return "append"

    def verify(self, staged: Staged) -> None:
        """Check that every staged file exists with all its rows.

        Args:
            staged: The files.

        Raises:
            StagingError: A file is missing or has another number of rows.
        """
        for file in staged.files:
            found = self.table.files.get(file.path)
            if found is None or len(found) != file.rows:
                raise StagingError(
                    f"{self.table.target}: staged file {file.path}: expected {file.rows} rows, found "
                    f"{'no file' if found is None else len(found)}",
                    hint="nothing was committed; run it again",
                )


class Outcome(StrEnum):
    """What can happen to a commit, whether its caller sees an error or not."""

    WORKED = "worked"
    WORKED_BUT_RAISED = "worked but raised"
    DID_NOTHING = "did nothing"
    DID_NOTHING_AND_RAISED = "did nothing and raised"
    FAILED_CLEANLY = "failed cleanly"
    LANDED_LATE = "raised, and landed later"


class UnreliableOutput:
    """Wraps an output so that each commit has a chosen outcome; `look` and `verify` always work.

    A late commit arrives at the next commit of this object or at `land_late`, and only if nobody has taken its version:
    a store with put-if-absent can do nothing else with a delayed request.

    Args:
        inner: The output that works.
        pick: Returns the outcome of the next commit.

    Examples:
        >>> output = UnreliableOutput(SimulatedOutput(SimulatedTable("views/sales")), lambda: Outcome.LANDED_LATE)
        >>> output.look().version
        -1
    """

    def __init__(self, inner: SimulatedOutput, pick: Callable[[], Outcome]) -> None:
        self._inner = inner
        self._pick = pick
        self._late: Callable[[], None] | None = None

    def look(self) -> TableState:
        """Load the newest version."""
        return self._inner.look()

    def verify(self, staged: Staged) -> None:
        """Check staged files.

        Args:
            staged: The files.
        """
        self._inner.verify(staged)

    def engine(self, staged: Staged) -> str:
        """How the rows are written; simulated epochs only add rows.

        Args:
            staged: The files to add.

        Returns:
            Always `append`.
        """
        assert staged.appends
        return "append"

    def commit(self, record: CommitRecord, staged: Staged) -> None:
        """Commit, or fail, as the next outcome says.

        Args:
            record: What the commit records.
            staged: The files to add.

        Raises:
            CommitConflict: The commit failed, and says so.
            Timeout: There was no answer; the commit may have happened or not.
        """
        self.land_late()
        outcome = self._pick()
        match outcome:
            case Outcome.WORKED | Outcome.WORKED_BUT_RAISED:
                self._inner.commit(record, staged)
            case Outcome.LANDED_LATE:
                table, on = self._inner.table, self._inner.loaded
                self._late = lambda: table.commit(record, staged, on=on)
            case Outcome.FAILED_CLEANLY:
                raise CommitConflict(outcome.value)
            case Outcome.DID_NOTHING | Outcome.DID_NOTHING_AND_RAISED:
                pass
        if outcome not in {Outcome.WORKED, Outcome.DID_NOTHING}:
            raise Timeout(outcome.value)

    def land_late(self) -> None:
        """Let a delayed commit arrive now."""
        late, self._late = self._late, None
        if late is not None:
            try:
                late()
            except CommitConflict:
                return


def outcomes_from(random: Random, *, failing: float = 0.4) -> Callable[[], Outcome]:
    """Random outcomes for `UnreliableOutput`.

    Args:
        random: A seeded generator.
        failing: The share of commits that do not simply work.

    Returns:
        A function that returns the next outcome.

    Examples:
        >>> outcomes_from(Random(1), failing=0.0)().value
        'worked'
    """
    unlucky = [each for each in Outcome if each is not Outcome.WORKED]
    return lambda: random.choice(unlucky) if random.random() < failing else Outcome.WORKED


_output: type[Output] = UnreliableOutput
