"""The end of a table's log as one object: what a run has copied of it, so that the next one need not request each entry.

It is no part of the table. What it says counts as far as the store lists the same objects, by the tags that it gave them.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from zlib import compress, decompress, error

from backfill_assets.adapters.storage.documents import TAIL
from backfill_assets.errors import StoredFormatError

__all__ = ["PATH", "Tagged", "Tail"]

PATH = "_delta_log/_backfill_tail"
"""Where it lies in a table's folder; readers of Delta tables pass over names that they do not know."""

LARGEST = 2**20
"""The bytes of its objects at most."""

Tagged = tuple[str, bytes]
"""An object's tag, as the store gave it, and its content."""


@dataclass(frozen=True, kw_only=True)
class Tail:
    """The version at whose checkpoint a log is read from (-1: its beginning), and objects of the log by their paths."""

    begins: int
    objects: Mapping[str, Tagged]

    @classmethod
    def of(cls, stored: bytes | None) -> Self | None:
        """The tail that is stored; None if there is none, or none that this release reads."""
        try:
            return None if stored is None else TAIL.read(stored, cls._made, target="", place=PATH)
        except (StoredFormatError, AttributeError, error):  # it is made anew
            return None

    @classmethod
    def _made(cls, document: dict[str, Any]) -> Self:
        if type(document["begins"]) is not int:
            raise ValueError(f"expected a version, found {document['begins']!r}")
        objects = {path: (tag, decompress(b64decode(content))) for path, (tag, content) in document["objects"].items()}
        return cls(begins=document["begins"], objects=objects)

    @property
    def is_small(self) -> bool:
        """Whether it may be stored."""
        return sum(len(content) for _, content in self.objects.values()) <= LARGEST

    def stored(self) -> bytes:
        """What is stored of it."""
        objects = {path: (tag, b64encode(compress(content)).decode()) for path, (tag, content) in self.objects.items()}
        return json.dumps(TAIL.written({"begins": self.begins, "objects": objects})).encode()
