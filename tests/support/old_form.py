"""Tables and documents as another release stored them: in another format, with other keys."""

import json
from pathlib import Path
from typing import Any

__all__ = ["RENAMED", "as_stored_by", "commits_as_stored_by"]

RENAMED = {"partitions": "splits", "commit_ms": "at_ms"}
"""Keys of commits, with their names in format 1."""


def as_stored_by(document: Any, number: int | None) -> Any:
    """The document as a release with this format (None: without a format number) writes it."""
    described = _renamed({name: value for name, value in document.items() if name != "format"})
    return described if number is None else {"format": number, **described}


def commits_as_stored_by(table: Path, number: int | None) -> None:
    """Rewrite all commits of this project in a table's log as a release with this format writes them."""
    for entry in sorted(table.glob("_delta_log/*.json")):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for action in actions:
            info = action.get("commitInfo", {})
            if "backfill" in (said := json.loads(info.get("userMetadata") or "{}")):
                info["userMetadata"] = json.dumps({"backfill": as_stored_by(said["backfill"], number)})
        entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)
        entry.write_text("\n".join(map(json.dumps, actions)))


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {RENAMED.get(name, name): _renamed(each) for name, each in value.items()}
    return [_renamed(each) for each in value] if isinstance(value, list) else value
