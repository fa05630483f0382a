"""Opens the data files of a table with Arrow, and tells which of them are missing or damaged."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from backfill_assets.adapters.delta.touched_files import LoggedFile
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.errors import ReadMismatchError

__all__ = ["SMALL_BYTES", "ArrowReader"]

SMALL_BYTES: Final = 16 * 2**20
"""Files of an object store up to this size are fetched by one request."""


class ArrowReader:
    """Reads files of one table. Small ones of an object store are remembered until they are forgotten. With `sized` a file
    must have the size that the log says: it is damaged if another one was written in its place."""

    def __init__(self, location: TableLocation, *, sized: bool = False) -> None:
        self._location, self._sized = location, sized
        self._contents: dict[str, bytes] = {}

    @contextmanager
    def opened(self, file: LoggedFile, *, dictionaries: Collection[str] = ()) -> Iterator[pq.ParquetFile]:
        """A file of the table; the values of columns in `dictionaries`, of texts, are given once each.

        Errors: `ReadMismatchError` if it is missing or damaged; those of a store that fails.
        """
        with ExitStack() as stack:
            try:
                source = self._content(file) or stack.enter_context(self._location.files().open_input_file(file.stored))
                if self._sized and source.size() != (file.size or source.size()):
                    raise self._unreadable(file, f"it has {source.size()} bytes, expected {file.size} as the log says")
                footer = pq.read_metadata(source) if dictionaries else None
                there = footer.schema.to_arrow_schema().names if footer is not None else []
                yield pq.ParquetFile(
                    source,
                    metadata=footer,
                    page_checksum_verification=True,
                    coerce_int96_timestamp_unit="us",
                    read_dictionary=[name for name in dictionaries if name in there],
                )
            except (FileNotFoundError, KeyError, pa.ArrowException) as error:
                raise self._unreadable(file, error) from None
            except OSError as error:  # also what Arrow says of a damaged page; a store that fails is asked again
                if not self._location.is_local and file.size > SMALL_BYTES:
                    raise
                raise self._unreadable(file, error) from None

    def forget(self, paths: Iterable[str]) -> None:
        """Let the contents of files go that are not read again."""
        for path in paths:
            self._contents.pop(path, None)

    def _content(self, file: LoggedFile) -> pa.BufferReader | None:
        if self._location.is_local or file.size > SMALL_BYTES:
            return None
        if file.path not in self._contents:
            content = self._location.objects().get(file.stored)
            if content is None:
                raise FileNotFoundError(file.stored)
            self._contents[file.path] = content
        return pa.BufferReader(self._contents[file.path])

    def _unreadable(self, file: LoggedFile, why: object) -> ReadMismatchError:
        return ReadMismatchError(
            f"{self._location.uri}: its file {file.stored} cannot be read: {' '.join(str(why).split())}",
            hint="nothing was committed; restore the file, or `backfill reset` builds the table anew",
            table=self._location.uri,
            expected=(file.rows, file.rows),
            found=0,
        )
