"""Stored JSON documents, each with the number of its format.

A release reads only its own formats, so that it never misinterprets what another one stored. Each kind of document has
a number of its own, which is raised whenever its keys, or their meaning, change.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from backfill_assets.adapters.storage.packing import pack, unpack
from backfill_assets.errors import StoredFormatError

__all__ = ["COMMIT", "CONTROLS", "LEASE", "PASS", "PLAN", "SKIP", "SPOOLED", "TAIL", "DocumentKind"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class DocumentKind:
    """One kind of stored document.

    Attributes:
        name: Its name in errors.
        format: The number of the format that this release writes and reads.
        remedy: What can be done instead of a reset if it cannot be read, as the end of a sentence.
    """

    name: str
    format: int
    remedy: str = ""

    def written(self, document: Mapping[str, object]) -> dict[str, object]:
        """The document as it is stored: its long maps packed by `packing`."""
        return {"format": self.format, **pack(document)}

    def read(self, stored: object, make: Callable[[dict[str, Any]], T], *, target: str, place: str) -> T:
        """The value of a stored document.

        Args:
            stored: The document: its JSON as bytes, or already parsed.
            make: Makes a value of it; may raise `ValueError`, `KeyError` or `TypeError`.
            target: The table that it belongs to, `sources/<name>` or `views/<name>`.
            place: Where it is stored, for messages.

        Raises:
            StoredFormatError: It has another format, or is damaged.
        """
        try:
            document = json.loads(stored) if isinstance(stored, bytes) else stored
            found = document.get("format") if isinstance(document, dict) else None
            if isinstance(document, dict) and type(found) is int and found == self.format:
                return make(unpack({name: value for name, value in document.items() if name != "format"}))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._damaged(target, place, error) from None
        raise self._other(target, place, found)

    def _other(self, target: str, place: str, found: object) -> StoredFormatError:
        newer = type(found) is int and found > self.format
        use = "use the newer release that wrote it" if newer else "continue with the release that wrote it"
        return StoredFormatError(
            f"{target}: {place} is a {self.name} of {_named(found)}, expected format {self.format}",
            hint=f"{use}; or `backfill reset {target.partition('/')[2]}` rebuilds the table with this one{self.remedy}",
            expected=self.format,
            found=found,
            place=place,
        )

    def _damaged(self, target: str, place: str, error: Exception) -> StoredFormatError:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        return StoredFormatError(
            f"{target}: {place} is not a {self.name} of format {self.format}: {why}",
            hint="something other than this project wrote it. Restore it from a backup, or `backfill reset "
            f"{target.partition('/')[2]}` rebuilds the table{self.remedy}",
            expected=self.format,
            found=None,
            place=place,
        )


def _named(found: object) -> str:
    return "no known format" if found is None else f"format {found!r}"


COMMIT = DocumentKind(name="commit", format=3)
PLAN = DocumentKind(name="plan", format=2)
CONTROLS = DocumentKind(
    name="setting", format=2, remedy="; or delete the object, and pause or throttle the table again"
)
LEASE = DocumentKind(name="lease", format=2, remedy="; or delete the object once no run works on the table")
PASS = DocumentKind(name="pass", format=2)
SKIP = DocumentKind(name="row to leave out", format=2, remedy="; or delete the object, and name the row again")
SPOOLED = DocumentKind(name="list of captured files", format=2)
TAIL = DocumentKind(name="end of a log", format=1)
