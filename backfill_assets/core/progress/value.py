"""What all values that are saved have in common."""

from pydantic import BaseModel, ConfigDict

__all__ = ["Value"]


class Value(BaseModel):
    """A frozen value that is saved as JSON and read back checked."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
