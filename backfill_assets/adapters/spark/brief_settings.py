"""Settings of a session that hold for a while."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.conf import RuntimeConfig

__all__ = ["set_briefly"]


@contextmanager
def set_briefly(conf: "RuntimeConfig", wanted: Mapping[str, str]) -> Iterator[None]:
    """Give a session settings that it does not have yet, and take them away in the end."""
    for name, value in wanted.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name in wanted:
            conf.unset(name)
