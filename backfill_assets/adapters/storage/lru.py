"""A cache with a bound, for runs that go on for ever."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["LeastRecentlyUsed"]

K = TypeVar("K")
V = TypeVar("V")


@dataclass
class LeastRecentlyUsed(Generic[K, V]):
    """Keeps what was used last, `most` entries at the most."""

    most: int
    _kept: dict[K, V] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """What is kept; None where nothing is. It is no use of it."""
        return self._kept.get(key)

    def use(self, key: K, make: Callable[[], V]) -> V:
        """What is kept, or what `make` gives, which is kept from then on."""
        value = self._kept.pop(key) if key in self._kept else make()
        self._kept[key] = value
        while len(self._kept) > self.most:
            del self._kept[next(iter(self._kept))]
        return value
