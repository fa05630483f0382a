"""What drives the history of a query over several tables that is read in chunks."""

from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from backfill_assets.core.progress.value import Value

__all__ = ["Driving"]


class Driving(Value):
    """How the history of a query over several tables is read in chunks: by the files of tables that drive it, or by the
    hashes of a key.

    `places` has the table of each place in the query's text that is bound to a chunk, by the place's number: one in each part
    of UNION ALL, or all that have the key. `hashes` has SQL for the hash of the key in the rows of each such place; none if
    files are read. All rows of the tables `beside` are read with each chunk, at their pinned versions.
    """

    places: dict[int, str]
    beside: tuple[str, ...]
    hashes: dict[int, str] = Field(default_factory=dict)

    @model_serializer(mode="wrap")
    def _stored(self, store: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Hashes that there are none of are not stored."""
        document: dict[str, Any] = store(self)
        return {name: value for name, value in document.items() if value or name != "hashes"}
