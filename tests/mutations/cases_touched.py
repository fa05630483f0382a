"""Faults in which files a merge opens."""

from typing import Final

from tests.mutations.mutation import Mutation

__all__ = ["TOUCHED"]

SPANS: Final = "backfill_assets/core/epoch/touched_spans.py"
FILES: Final = "backfill_assets/adapters/delta/touched_files.py"
SAME: Final = "backfill_assets/adapters/delta/same_key.py"
PURE: Final = "tests/core/epoch/test_touched_spans.py"
REAL: Final = "tests/adapters/delta/test_touched_files.py"

TOUCHED: Final = (
    Mutation(
        name="a file is spared that begins where a change ends",
        file=SPANS,
        old="last = bisect_right(changes, file[1]",
        new="last = bisect_left(changes, file[1]",
        tests=(PURE, REAL),
    ),
    Mutation(
        name="a file is spared that ends where a change begins",
        file=SPANS,
        old="first = bisect_left(changes, file[0]",
        new="first = bisect_right(changes, file[0]",
        tests=(PURE, REAL),
    ),
    Mutation(
        name="spans beyond the most are left out",
        file=SPANS,
        old="for group in _groups(spans, MOST_SPANS)]",
        new="for group in list(_groups(spans, len(spans) or 1))[:MOST_SPANS]]",
        tests=(PURE,),
    ),
    Mutation(
        name="a file without bounds is taken to hold nothing",
        file=SPANS,
        old="if not changes or None in files:",
        new="if not changes:",
        tests=(PURE, REAL),
    ),
    Mutation(
        name="only the first value of a block counts",
        file=SPANS,
        old="return [(block[0], block[-1]) for block in _groups(values, most)]",
        new="return [(block[0], block[0]) for block in _groups(values, most)]",
        tests=(PURE,),
    ),
    Mutation(
        name="a null among the changes has no file",
        file=FILES,
        old="    if column.null_count:\n",
        new="    column = column.drop_null()\n    if column.null_count:\n",
        tests=(REAL,),
    ),
    Mutation(
        name="nulls of staged rows have no file",
        file=FILES,
        old='or (stats.get("nullCount") or {}).get(name) != 0:',
        new="or False:",
        tests=(REAL,),
    ),
    Mutation(
        name="a merge opens every file",
        file="backfill_assets/adapters/delta/output.py",
        old='*lies_in("t", spans)]),',
        new='*lies_in("t", {})]),',
        tests=(REAL,),
    ),
    Mutation(
        name="the highest value of a span is left out",
        file=SAME,
        old="AND {column} <= {high})",
        new="AND {column} < {high})",
        tests=(REAL,),
    ),
    Mutation(
        name="a quote ends a text",
        file=SAME,
        old="""escaped = value.replace("'", "''")""",
        new="escaped = value",
        tests=(REAL,),
    ),
)
