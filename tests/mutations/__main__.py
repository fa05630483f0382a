"""Runs the mutations: `python -m tests.mutations`, or with words, those whose names hold one of them.

Prints a line for each. Exit code 1 where tests that concern a fault did not find it.
"""

import sys
import tempfile
from pathlib import Path

from tests.mutations.cases import MUTATIONS
from tests.mutations.mutation import Mutation, copy_of_the_project, fails

SAID = {True: "found", False: "NOT FOUND", None: "-"}


def main(words: list[str]) -> int:
    """Try each mutation in turn, in one copy of the project."""
    chosen = [each for each in MUTATIONS if not words or any(word in each.name for word in words)]
    missed = []
    print(f"{'by the gate':12} {'by the rest':12} fault", flush=True)
    with tempfile.TemporaryDirectory(prefix="backfill-mutations-") as folder:
        project = copy_of_the_project(Path(folder))
        for mutation in chosen:
            in_gate, in_rest = _try(project, mutation)
            print(f"{SAID[in_gate]:12} {SAID[in_rest]:12} {mutation.name}", flush=True)
            if not in_gate or in_rest is False:
                missed.append(mutation.name)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults found", flush=True)
    return 1 if missed or not chosen else 0


def _try(project: Path, mutation: Mutation) -> tuple[bool | None, bool | None]:
    module = project / mutation.file
    sound = module.read_text()
    module.write_text(mutation.applied(sound))
    try:
        return fails(project, mutation.tests, full=False), fails(project, mutation.tests, full=True)
    finally:
        module.write_text(sound)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
