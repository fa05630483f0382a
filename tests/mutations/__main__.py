"""Runs the mutations: `python -m tests.mutations`, or with words, those whose names hold one of them.

Prints a line for each. Exit code 1 where tests that concern a fault did not find it.
"""

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutations.cases import MUTATIONS
from tests.mutations.mutation import Mutation, copy_of_the_project, fails
from tests.support.servers import Guard

SAID = {True: "found", False: "NOT FOUND", None: "-"}
WORKERS = 2


def main(words: list[str]) -> int:
    """Try each mutation, two at a time: each of two workers has a copy of the project, and both share the servers."""
    chosen = [mutation for mutation in MUTATIONS if not words or any(word in mutation.name for word in words)]
    missed = []
    print(f"{'by the gate':12} {'by the rest':12} fault", flush=True)
    with tempfile.TemporaryDirectory(prefix="backfill-mutations-") as folder, ThreadPoolExecutor(WORKERS) as pool:
        guard = Guard()
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(WORKERS):
            copies.put(copy_of_the_project(Path(folder) / str(number)))
        for mutation, in_gate, in_rest in pool.map(lambda mutation: _try(copies, mutation), chosen):
            print(f"{SAID[in_gate]:12} {SAID[in_rest]:12} {mutation.name}", flush=True)
            if not in_gate or in_rest is False:
                missed.append(mutation.name)
        guard.close()
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults found", flush=True)
    return 1 if missed or not chosen else 0


def _try(copies: "SimpleQueue[Path]", mutation: Mutation) -> tuple[Mutation, bool | None, bool | None]:
    project = copies.get()
    module = project / mutation.file
    sound = module.read_text()
    module.write_text(mutation.applied(sound))
    try:
        in_gate, in_rest = (fails(project, mutation.tests, full=full) for full in (False, True))
    finally:
        module.write_text(sound)
        copies.put(project)
    return mutation, in_gate, in_rest


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
