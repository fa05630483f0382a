"""What Python's garbage collector looks at."""

import gc
from functools import cache

__all__ = ["pass_over_what_is_loaded"]


@cache
def pass_over_what_is_loaded() -> None:
    """Let full collections pass over everything that the process has loaded: modules, and what they hold.

    A run with positions of 10,000 partitions makes so many objects that full collections are frequent, and most of their time
    goes to what is never garbage. Once in a process, because what is garbage at that moment stays.
    """
    gc.freeze()
