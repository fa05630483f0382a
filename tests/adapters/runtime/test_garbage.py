"""What a process has loaded is not looked at again by full collections, and what it makes later is."""

import subprocess
import sys

PROGRAM = """
import gc
from backfill_assets.adapters.runtime.garbage import pass_over_what_is_loaded

loaded = [[] for _ in range(1000)]
pass_over_what_is_loaded()
frozen = gc.get_freeze_count()
later = []
later.append(later)
pass_over_what_is_loaded()
print(frozen > 1000, gc.get_freeze_count() <= frozen, any(each is later for each in gc.get_objects()))
"""


def test_what_is_loaded_is_passed_over_once_in_a_process() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True"]
