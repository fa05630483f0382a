"""Whether stores can be read: asked once for each, within seconds, before their clients would try for minutes."""

from dataclasses import dataclass, field, replace
from threading import Lock

from backfill_assets.adapters.storage.object_store import ObjectFolder
from backfill_assets.adapters.storage.store_errors import cannot_be_read
from backfill_assets.errors import EnvironmentSetupError

__all__ = ["SECONDS", "AskedStores"]

SECONDS = 20.0
"""For how long a store that does not answer is asked."""


@dataclass
class AskedStores:
    """The answers of stores in one run: one request for each folder, and none for a local disk."""

    _answers: dict[str, EnvironmentSetupError | None] = field(default_factory=dict, init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def check(self, what: str, folder: ObjectFolder) -> None:
        """Check that the store of a folder lists it, which a missing bucket, wrong keys and a dead store all prevent.

        Args:
            what: What the folder is, for the message.
            folder: A folder; it may be empty or missing.

        Raises:
            EnvironmentSetupError: The store cannot be read, with the reason.
        """
        if folder.is_local:
            return
        with self._lock:
            if folder.uri not in self._answers:
                self._answers[folder.uri] = _answer(what, folder)
            refused = self._answers[folder.uri]
        if refused is not None:
            raise refused


def _answer(what: str, folder: ObjectFolder) -> EnvironmentSetupError | None:
    try:
        replace(folder, seconds=SECONDS).try_to_list()
    except Exception as error:  # of as many kinds as there are stores
        return cannot_be_read(what, folder.uri, error, folder.storage_options)
    return None
