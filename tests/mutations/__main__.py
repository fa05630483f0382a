"""Runs the mutations: `python -m tests.mutations`, or with words, those whose names hold one of them.

Prints a line for each. Exit code 1 where tests that concern a fault did not find it. A run of all goes on where it was
stopped on the same commit.
"""

import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from scripts.test_full import commit_of_project
from tests.mutations.cases import MUTATIONS
from tests.mutations.mutation import ROOT, Mutation, copy_of_the_project, fails
from tests.support.servers import Guard

SAID = {True: "found", False: "NOT FOUND", None: "-"}
WORKERS = 2
SOUND = ("tests/core/epoch/test_limits.py", "tests/e2e/tables/test_places.py")
"""Tests that have to pass where there is no fault."""
STARTS_SERVERS = ("backfill_assets/adapters/local/", "backfill_assets/adapters/runtime/spark_conf.py")
NOTES = ROOT / ".backfill" / "mutations.json"


def main(words: list[str]) -> int:
    """Try each mutation, two at a time: each of two workers has a copy of the project, and both share the servers."""
    noted = Noted(commit_of_project())
    chosen = [mutation for mutation in MUTATIONS if not words or any(word in mutation.name for word in words)]
    left = [mutation for mutation in chosen if words or mutation.name not in noted.found]
    missed = []
    print(
        f"{len(left)} of {len(chosen)} faults have to be tried\n{'by the gate':12} {'by the rest':12} fault", flush=True
    )
    with tempfile.TemporaryDirectory(prefix="backfill-mutations-") as folder, ThreadPoolExecutor(WORKERS) as pool:
        guard = Guard()
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(WORKERS):
            copies.put(copy_of_the_project(Path(folder) / str(number)))
        if fails(Path(folder) / "0", SOUND, full=False) is not False:
            print(f"{' '.join(SOUND)} fails without a fault, so that nothing can be found by tests")
            return 1
        for mutation, in_gate, in_rest in pool.map(lambda mutation: _try(copies, mutation), left):
            print(f"{SAID[in_gate]:12} {SAID[in_rest]:12} {mutation.name}", flush=True)
            if in_gate and in_rest is not False:
                noted.add(mutation.name)
            else:
                missed.append(mutation.name)
        guard.close()
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults found", flush=True)
    return 1 if missed or not chosen else 0


class Noted:
    """The faults that were found on a commit, in a file."""

    def __init__(self, commit: str) -> None:
        noted = json.loads(NOTES.read_text()) if NOTES.exists() else {}
        self._commit = commit
        self.found: list[str] = noted["found"] if noted.get("commit") == commit else []

    def add(self, name: str) -> None:
        """Note one more."""
        self.found.append(name)
        NOTES.parent.mkdir(exist_ok=True)
        NOTES.write_text(json.dumps({"commit": self._commit, "found": self.found}, indent=1))


def _try(copies: "SimpleQueue[Path]", mutation: Mutation) -> tuple[Mutation, bool | None, bool | None]:
    project = copies.get()
    module = project / mutation.file
    sound = module.read_text()
    module.write_text(mutation.applied(sound))
    try:
        own = mutation.file.startswith(STARTS_SERVERS)
        in_gate, in_rest = (fails(project, mutation.tests, full=full, servers=not own) for full in (False, True))
    finally:
        module.write_text(sound)
        copies.put(project)
    return mutation, in_gate, in_rest


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
