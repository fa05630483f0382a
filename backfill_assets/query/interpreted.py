"""Whether sqlglot can be extended: its compiled modules, package sqlglotc, have classes of which Python makes no others."""

import sqlglot.parser

from backfill_assets.errors import EnvironmentSetupError

__all__ = ["check_interpreted"]


PARSER = sqlglot.parser.__file__
"""The file of sqlglot's parser."""


def check_interpreted() -> None:
    """Check that sqlglot's parser is Python. Errors: `EnvironmentSetupError`."""
    if not PARSER.endswith(".py"):
        raise EnvironmentSetupError(
            f"sqlglot is installed with its compiled modules: expected its parser in Python, found {PARSER}",
            hint="uninstall sqlglotc (pip uninstall sqlglotc), which `sqlglot[c]` and `sqlglot[rs]` bring: queries are read "
            "by an extension of the parser, which compiled modules do not allow",
        )
