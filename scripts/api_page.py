"""Writes docs/api.md from the docstrings of the public interface; `make api` runs it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import griffe
from griffe2md import ConfigDict, default_config, prepare_context, prepare_env

__all__ = ["PAGE", "ROOT", "SECTIONS", "Section", "loaded", "page"]

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"

HEAD = """# Public interface

The docstrings of everything that users import, written by `make api`; a test fails when this page is out of date.
[Refusals and errors](refusals.md) lists all error codes.
"""
CONFIG: ConfigDict = {
    **default_config,
    "docstring_section_style": "list",
    "heading_level": 3,
    "inherited_members": False,
    "line_length": 100,
    "members_order": "source",
    "show_bases": False,
    "show_if_no_docstring": False,
    "show_object_full_path": False,
    "show_root_full_path": False,
    "show_root_members_full_path": False,
    "show_signature_annotations": True,
    "summary": False,
}
LINK = re.compile(r"\[([^\[\]]+)\]\(#[^()]*\)")
"""How griffe2md links a type to its heading; most types have none on this page."""
STARS = re.compile(r"^- \*\*(\*+)", re.MULTILINE)
"""The stars of `*args` and `**kwargs`, which Markdown would take for emphasis."""


LITERALS = ("RecordFormat", "Bronze", "Isolation")


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page: names that a module exports, with or without their methods."""

    title: str
    module: str
    names: tuple[str, ...] = ()
    methods: bool = False


SECTIONS = (
    Section(
        title="Declarations",
        module="backfill_assets",
        names=("kafka_source", "delta_table", "materialized_view", "build_definitions", "Views"),
    ),
    Section(
        title="Resources",
        module="backfill_assets",
        names=("KafkaConnector", "SparkResource", "StateStore"),
    ),
    Section(
        title="What declarations return",
        module="backfill_assets.declare.model",
        names=(
            "KafkaSource",
            "DeltaTable",
            "MaterializedView",
            "Upstream",
            "DeclaredStrategy",
            "RefreshMode",
            *LITERALS,
        ),
        methods=True,
    ),
    Section(title="This deployment's resources", module="resources"),
    Section(title="Errors", module="backfill_assets.errors"),
    Section(title="Crash points", module="backfill_assets.testing.crash_points"),
    Section(title="Clock", module="backfill_assets.testing.manual_clock", methods=True),
    Section(title="Simulated topic", module="backfill_assets.testing.simulated_topic", methods=True),
    Section(title="Simulated table", module="backfill_assets.testing.simulated_table", methods=True),
    Section(title="Simulated ledger", module="backfill_assets.testing.simulated_ledger", methods=True),
    Section(title="Simulated world", module="backfill_assets.testing.simulation", methods=True),
    Section(title="Settings of a simulated world", module="backfill_assets.testing.world_settings", methods=True),
)


def page() -> str:
    """The page as it has to be, as Markdown."""
    return "\n".join((HEAD, *_parts(loaded())))


@cache
def loaded() -> griffe.ModulesCollection:
    """The code of all documented packages, by dotted names; it is read, not imported."""
    loader = griffe.GriffeLoader(search_paths=[ROOT], docstring_parser=griffe.Parser.google)
    for package in ("backfill_assets", "resources"):
        loader.load(package)
    loader.resolve_aliases()
    return loader.modules_collection


def _parts(code: griffe.ModulesCollection) -> Iterator[str]:
    templates = prepare_env()  # which reads each template once; `render_object_docs` does so for each object
    for section in SECTIONS:
        yield f"## {section.title}\n\n`{section.module}`\n"
        for name in section.names or _exported(code[section.module]):
            found = code[f"{section.module}.{name}"]
            template = templates.get_template(f"{found.kind.value}.md.jinja")
            rendered = template.render(**prepare_context(found, _config(found, section)))
            yield STARS.sub(lambda stars: "- **" + stars[1].replace("*", "\\*"), LINK.sub(r"\1", rendered))


def _exported(module: griffe.Module) -> list[str]:
    """The documented names that a module exports, in the order of their definition."""
    return [name for name, member in module.members.items() if name in (module.exports or ()) and member.docstring]


def _config(found: griffe.Object, section: Section) -> ConfigDict:
    methods = section.methods and found.is_class
    return {**CONFIG, "members": None if methods else []}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
