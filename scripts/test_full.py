"""The full proof, in parts: `make test-full`, or `make test-full PART=kills` for one of them.

Runs under Spark's production settings, with large budgets of Hypothesis and simulation. What has passed on a commit is
noted in `.backfill/test-full.json` and not run again on it, so that a run that was stopped goes on where it was; a part
that is named is always run. A part that fails does not keep the others from their run; it is exit code 1 at the end.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["commit_of_project", "main"]

ROOT = Path(__file__).resolve().parent.parent
NOTES = ROOT / ".backfill" / "test-full.json"
PYTEST = ("-m", "pytest", "--numprocesses", "2", "--dist", "loadfile", "--no-loadscope-reorder", "--durations", "10")
ALONE = ("-m", "pytest", "--durations", "10")
CONTRACT = "tests/e2e/kills/test_contract.py"
KILLS = [f"tests/e2e/kills/test_{each}.py" for each in ("kill_rules", "kill_snapshot", "kill_replace", "rivals")]
DAMAGE = [f"tests/e2e/damage/test_checks_catch{each}.py" for each in ("", "_tables")]
TABLES = sorted(f"tests/e2e/tables/{each.name}" for each in (ROOT / "tests/e2e/tables").glob("test_*.py"))
PLACES = {
    "contract-s3": "s3",
    "contract-cluster": "cluster",
    "damage-s3": "checks_on_s3",
    "damage-cluster": "checks_on_cluster",
    "azure": "azure",
    "google": "gcs",
}
"""Where the tables of a part lie and its Spark computes, if not on this disk and in each process."""
PARTS = {
    "pure": (*PYTEST, "-m", "not e2e"),
    **{name: (*PYTEST, f"tests/e2e/{name}") for name in ("kafka", "kills", "damage", "dagster", "cli", "stores")},
    # By far the most tests, so that a run which is stopped has not lost an hour.
    **{f"tables-{part}": (*PYTEST, *TABLES[part - 1 :: 4]) for part in range(1, 5)},
    # Once more where the warehouse is on S3 and Spark a server, or a cluster: the contract of all strategies, kills at the
    # steps of their epochs, rivals; and the checks, of copies there of tables that are damaged.
    "contract-s3": (*PYTEST, "-m", "not disk", CONTRACT, *KILLS),
    "damage-s3": (*PYTEST, *DAMAGE),
    # In one process: the cluster is small, and tests kill parts of it that all of them use.
    "contract-cluster": (*ALONE, "-m", "not disk", CONTRACT, *KILLS, "tests/e2e/kills/test_lost_server.py"),
    "damage-cluster": (*ALONE, *DAMAGE),
    "cluster": (*ALONE, "tests/e2e/cluster"),
    # With an emulator, which needs Node.js.
    "azure": (*ALONE, "tests/e2e/elsewhere"),
    # The same with one of Google's store, which needs Go.
    "google": (*ALONE, "tests/e2e/elsewhere/test_in_a_store.py"),
    "mutations": ("-m", "tests.mutations"),
    "demo": ("-m", "examples.demo"),
    "demo-cluster": ("-m", "examples.demo", "--cluster"),
}


def main() -> int:
    """Run the part that is named, or all that have not passed on this commit."""
    named = sys.argv[1:]
    if unknown := set(named) - PARTS.keys():
        print(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
        return 2
    commit = commit_of_project()
    passed = _passed(commit)
    failed: list[str] = []
    for number, name in enumerate(PARTS, 1):
        if name in named or (not named and name not in passed):
            print(f"==> part {number} of {len(PARTS)}: {name}", flush=True)
            seconds = _run(name)
            if seconds is None:
                passed.pop(name, None)
                failed.append(name)
            else:
                passed[name] = seconds
            _note(commit, passed)
    for name in PARTS:
        ended = (
            f"passed in {passed[name] / 60:.1f} min" if name in passed else "FAILED" if name in failed else "not run"
        )
        print(f"{name:12} {ended}")
    print(f"on commit {commit}")
    return 1 if failed else 0


def commit_of_project() -> str:
    """The commit, and whether files differ from it."""
    asked = (["git", "rev-parse", "--short", "HEAD"], ["git", "status", "--porcelain"])
    head, changes = (
        subprocess.run(each, cwd=ROOT, capture_output=True, text=True, check=True).stdout for each in asked
    )
    return head.strip() + (" with changes" if changes else "")


def _run(name: str) -> float | None:
    """How many seconds a part took; None if it failed."""
    began = time.monotonic()
    environment = {
        **os.environ,
        "BACKFILL_TEST_FULL": "1",
        "TZ": "UTC",
        "BACKFILL_TEST_PLACE": PLACES.get(name, "disk"),
    }
    code = subprocess.run([sys.executable, *PARTS[name]], cwd=ROOT, env=environment, check=False).returncode
    print(f"==> {name}: {'passed' if code == 0 else f'FAILED with exit code {code}'}", flush=True)
    return time.monotonic() - began if code == 0 else None


def _passed(commit: str) -> dict[str, float]:
    """The parts that have passed on a commit, and how many seconds each took."""
    noted = json.loads(NOTES.read_text()) if NOTES.exists() else {}
    return dict(noted["passed"]) if noted.get("commit") == commit else {}


def _note(commit: str, passed: dict[str, float]) -> None:
    NOTES.parent.mkdir(exist_ok=True)
    NOTES.write_text(json.dumps({"commit": commit, "passed": passed}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
