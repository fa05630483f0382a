"""Faults in merges that open few files, and in what is learned of the reach of keys."""

from typing import Final

from tests.mutations.mutation import Mutation

__all__ = ["TOUCHED"]

SPANS: Final = "backfill_assets/core/epoch/touched_spans.py"
FILES: Final = "backfill_assets/adapters/delta/touched_files.py"
SAME: Final = "backfill_assets/adapters/delta/same_key.py"
PURE: Final = "tests/core/epoch/test_touched_spans.py"
REAL: Final = "tests/adapters/delta/test_touched_files.py"

MERGED: Final = "backfill_assets/adapters/delta/merged_rows.py"
ARROW: Final = "backfill_assets/adapters/delta/arrow_files.py"
CHOICE: Final = "backfill_assets/core/strategies/rule_choice.py"
HERE: Final = "tests/adapters/delta/test_merged_rows.py"
WRITTEN: Final = "tests/adapters/delta/test_arrow_files.py"
LEARNED: Final = "tests/core/strategies/test_rule_choice.py"
REACH: Final = "tests/e2e/tables/test_reach.py"

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
        old="for group in _groups(spans, most)]",
        new="for group in list(_groups(spans, len(spans) or 1))[:most]]",
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
        name="an instant beyond the years of Python stops each merge",
        file="backfill_assets/adapters/delta/merged_rows.py",
        old="plain_values(new.column(self._key[0])) or [None] * len(new)",
        new="new.column(self._key[0]).to_pylist()",
        tests=(
            "tests/adapters/delta/test_merged_rows.py::test_instants_beyond_the_years_of_python_are_keys_as_others_are",
        ),
    ),
    Mutation(
        name="a null among the changes has no file",
        file=FILES,
        old="    return [] if column.null_count else sorted(plain_values(pc.unique(column)) or [])",
        new="    return sorted(plain_values(pc.unique(column.drop_null())) or [])",
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
    Mutation(
        name="rows of a later part of a file are replaced in the first",
        file=MERGED,
        old="begins += len(old)",
        new="begins += 0",
        tests=(HERE,),
    ),
    Mutation(
        name="rows of a later part of a file are found in the first",
        file=MERGED,
        old="begins, size = begins + len(part), size + len(part)",
        new="begins, size = 0, size + len(part)",
        tests=(HERE,),
    ),
    Mutation(
        name="a row that is replaced stays",
        file=MERGED,
        old="stays[rows] = False",
        new="stays[rows] = True",
        tests=(HERE,),
    ),
    Mutation(
        name="the feed of a merge lacks what rows became",
        file=MERGED,
        old='_feed(feed, after.filter(kept), "update_postimage")',
        new='_feed(feed, after.filter(deleted), "update_postimage")',
        tests=(HERE,),
    ),
    Mutation(
        name="the feed of a merge lacks new rows",
        file=MERGED,
        old='_feed(feed, new, "insert")',
        new='_feed(feed, new.slice(0, 0), "insert")',
        tests=(HERE,),
    ),
    Mutation(
        name="floats are compared by their bits",
        file=MERGED,
        old="return pc.if_else(pc.is_nan(values), nan, pc.add(values, zero))",
        new="return values if nan and zero else values",
        tests=(HERE,),
    ),
    Mutation(
        name="a row is found by the last column of its key",
        file=MERGED,
        old="pc.index_in(pc.add(pc.multiply(codes, len(values)), value), value_set=seen)",
        new="pc.index_in(pc.add(pc.multiply(codes, 0), value), value_set=seen)",
        tests=(HERE,),
    ),
    Mutation(
        name="of two changes of a key one is taken",
        file=MERGED,
        old="if len(pc.unique(codes)) < len(keys):",
        new="if len(pc.unique(codes)) < 0:",
        tests=(HERE,),
    ),
    Mutation(
        name="a damaged page of a view is taken for what it was",
        file="backfill_assets/adapters/delta/arrow_reader.py",
        old="page_checksum_verification=True,",
        new="",
        tests=(HERE,),
    ),
    Mutation(
        name="a merge in this process commits what does not add up",
        file="backfill_assets/adapters/delta/output.py",
        old="        check_rows(self.target, table, staged, merged)\n",
        new="",
        tests=("tests/adapters/delta/test_merged_files.py",),
    ),
    Mutation(
        name="a constraint is passed over",
        file="backfill_assets/adapters/delta/output.py",
        old='return "delta-rs" if asks_more(table) or not',
        new='return "delta-rs" if not',
        tests=(HERE,),
    ),
    Mutation(
        name="nested keys are compared by Arrow",
        file="backfill_assets/adapters/delta/output.py",
        old='asks_more(table) or not are_findable(table, staged.key) else "arrow"',
        new='asks_more(table) else "arrow"',
        tests=(HERE,),
    ),
    Mutation(
        name="the bounds of a file are those of its first rows",
        file=ARROW,
        old='max(part["maxValues"][name] for part in having)',
        new='max(part["maxValues"][name] for part in having[:1])',
        tests=(WRITTEN,),
    ),
    Mutation(
        name="a group without bounds is left out of those of its file",
        file=ARROW,
        old='if having and all(name in part["minValues"] for part in having):',
        new='having = [part for part in having if name in part["minValues"]]\n        if having:',
        tests=(WRITTEN,),
    ),
    Mutation(
        name="a dot in a name gives statistics to floats",
        file=ARROW,
        old='return is_plain and "." not in column.name',
        new="return is_plain",
        tests=(WRITTEN,),
    ),
    Mutation(
        name="reach is learned from changes of other tables, too",
        file=CHOICE,
        old="after.keys_touched and after.rows_read and _changed(before, after) == set(changed)",
        new="after.keys_touched and after.rows_read and _changed(before, after) >= set(changed)",
        tests=(LEARNED,),
    ),
    Mutation(
        name="reach is learned from epochs that went by no key",
        file=CHOICE,
        old="if after.keys_touched and after.rows_read and",
        new="if after.rows_read and",
        tests=(LEARNED,),
    ),
    Mutation(
        name="reach is learned across lives",
        file=CHOICE,
        old="after.kind is CommitKind.EPOCH and after.incarnation == before.incarnation",
        new="after.kind is CommitKind.EPOCH",
        tests=(LEARNED,),
    ),
    Mutation(
        name="keys that reach much are followed",
        file=CHOICE,
        old="changes.are_many(changes.rows * changes.reach)",
        new="changes.are_many(changes.rows)",
        tests=(LEARNED, REACH),
    ),
    Mutation(
        name="what keys reach is not counted",
        file="backfill_assets/adapters/compute/table_compute.py",
        old="REACHED: rows + scans.measured(REACHED)}",
        new="REACHED: rows}",
        tests=(REACH,),
    ),
    Mutation(
        name="letters are escaped in the log",
        file="backfill_assets/adapters/delta/commits.py",
        old="text = json.dumps(value, ensure_ascii=False)",
        new="text = json.dumps(value)",
        tests=(REAL, "tests/adapters/delta/test_file_bounds.py"),
    ),
    Mutation(
        name="letters that are escaped in the log stay so",
        file="backfill_assets/adapters/delta/file_bounds.py",
        old='return odd or bool(_PAIR.search(file.action.get("stats") or ""))',
        new="return odd",
        tests=("tests/adapters/delta/test_file_bounds.py",),
    ),
    Mutation(
        name="timestamps of another writer are read in nanoseconds",
        file="backfill_assets/adapters/delta/arrow_reader.py",
        old='                    coerce_int96_timestamp_unit="us",\n',
        new="",
        tests=(HERE,),
    ),
    Mutation(
        name="a row that is not there makes up for one that is there twice",
        file=MERGED,
        old="        self._check_found(found)\n",
        new="",
        tests=(HERE,),
    ),
    Mutation(
        name="a new row may be there already",
        file=MERGED,
        old="if missing or several or there:",
        new="if missing or several:",
        tests=(HERE,),
    ),
    Mutation(
        name="fields of structs may not be null",
        file="backfill_assets/adapters/delta/arrow_types.py",
        old="return pa.struct([pa.field(part.name, _wide(part.type)) for part in kind])",
        new="return kind",
        tests=(HERE,),
    ),
    Mutation(
        name="a constraint that came before a commit is passed over",
        file="backfill_assets/adapters/delta/output.py",
        old='(record.engine == "arrow" and asks_more(table)):',
        new='record.engine == "":',
        tests=(HERE,),
    ),
    Mutation(
        name="a comment on a column counts as a write",
        file="backfill_assets/adapters/delta/epochs_in_log.py",
        old="return [(each.name, each.type, each.nullable) for each in schema.fields]",
        new="return [(each.name, each.type, each.nullable, str(each.metadata)) for each in schema.fields]",
        tests=("tests/adapters/delta/test_real_commits.py",),
    ),
)
