"""A cache with a bound, for runs that never end."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["LeastRecentlyUsed"]

K = TypeVar("K")
V = TypeVar("V")


@dataclass
class LeastRecentlyUsed(Generic[K, V]):
    """Keeps the `most` entries that were used last."""

    most: int
    _kept: dict[K, V] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """The entry; None if there is none. This does not count as a use."""
        return self._kept.get(key)

    def use(self, key: K, make: Callable[[], V]) -> V:
        """The entry; if there is none, what `make` returns, which is kept from then on."""
        value = self._kept.pop(key) if key in self._kept else make()
        self._kept[key] = value
        while len(self._kept) > self.most:
            del self._kept[next(iter(self._kept))]
        return value
