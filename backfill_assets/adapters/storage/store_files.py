"""A table's folder in an object store as a file system, whose errors are those of this package."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import pyarrow.fs as pafs
from deltalake.fs import DeltaStorageHandler

from backfill_assets.adapters.storage.object_store import retried
from backfill_assets.adapters.storage.store_errors import cannot_be_read, cannot_be_written

__all__ = ["StoreFiles"]

T = TypeVar("T")


class StoreFiles(DeltaStorageHandler):
    """As delta-rs has it, but what a store says of lists and deletions is an `EnvironmentSetupError`, and a list whose answer
    is cut is asked for again. Errors of opened files stay: who reads one tells a damaged file from a store that fails.
    """

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        super().__init__(uri, dict(options) or None)
        self._uri, self._options = uri, options

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        """What is at these paths."""
        return self._asked(lambda: super(StoreFiles, self).get_file_info(paths))

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        """What is in a folder."""
        return self._asked(lambda: super(StoreFiles, self).get_file_info_selector(selector))

    def delete_dir(self, path: str) -> None:
        """Delete a folder with all that is in it."""
        with self._deleting(path):
            super().delete_dir(path)

    def delete_file(self, path: str) -> None:
        """Delete a file."""
        with self._deleting(path):
            super().delete_file(path)

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return retried(ask)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise cannot_be_read("the table", self._uri, error, self._options) from None

    @contextmanager
    def _deleting(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise cannot_be_written(f"{self._uri}/{path}", error, self._options) from None
