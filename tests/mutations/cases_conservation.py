"""Faults in checking an epoch's rows and files before its commit, and in comparing Spark with another reader."""

from tests.mutations.mutation import Mutation

__all__ = ["CONSERVATION"]

COUNTS = "backfill_assets/core/epoch/conservation.py"
SCANS = "backfill_assets/adapters/compute/scans.py"
TABLE_ROWS = "backfill_assets/adapters/compute/table_rows.py"
COUNTED = "tests/core/epoch/test_conservation.py"
READ = "tests/e2e/damage/test_inputs_conserved.py"
FILES_OF_KEYS = "tests/adapters/delta/test_files_of_keys.py"
HISTORY = f"{READ}::test_a_damaged_file_of_history_is_missed_and_read_once_it_is_restored"
CHANGED = f"{READ}::test_changes_in_a_damaged_file_are_missed_though_nothing_else_is_left_to_do"
STAGED_COLUMNS = "tests/core/epoch/test_staged_columns.py"
READER = "backfill_assets/adapters/proof/second_reader.py"
FILE_SAMPLES = "backfill_assets/adapters/proof/file_samples.py"
TOPIC_SAMPLES = "backfill_assets/adapters/proof/topic_samples.py"
PROOF_SAMPLES = "backfill_assets/app/proof_samples.py"
SAMPLING = "backfill_assets/core/sampling.py"
SECOND = "tests/e2e/damage/test_second_reader.py"
HIDDEN = f"{SECOND}::test_rows_that_a_session_hides_from_product_and_proof_are_missed"
HIDDEN_RECORDS = f"{SECOND}::test_records_that_a_session_hides_from_product_and_proof_are_missed"
OTHER_RECORDS = f"{SECOND}::test_records_read_again_are_in_the_source_and_in_its_views_as_they_are"
OWN = "tests/e2e/damage/test_own_rows_conserved.py"
OWN_ROWS = f"{OWN}::test_a_damaged_file_of_a_view_is_missed_by_its_next_epoch"
OWN_GROUPS = f"{OWN}::test_a_damaged_file_of_groups_over_a_source_is_missed"
MERGED = "tests/adapters/delta/test_merged_files.py"
REFUSED = f"{STAGED_COLUMNS}::test_files_with_other_columns_are_refused_before_the_commit"

CONSERVATION: tuple[Mutation, ...] = (
    # Rows that Spark reads
    Mutation(
        name="what Spark has read is not compared with what there is",
        file=SCANS,
        old="        if judgement is not Judgement.RIGHT:",
        new="        if judgement is None:",
        tests=(HISTORY, CHANGED),
    ),
    Mutation(
        name="a row may be missing",
        file=COUNTS,
        old="    if scan.least <= found.rows <= scan.most and",
        new="    if scan.least - 1 <= found.rows <= scan.most and",
        tests=(COUNTED,),
    ),
    Mutation(
        name="a row may be too many",
        file=COUNTS,
        old="    if scan.least <= found.rows <= scan.most and",
        new="    if scan.least <= found.rows <= scan.most + 1 and",
        tests=(COUNTED,),
    ),
    Mutation(
        name="rows of a view over tables are not counted",
        file="backfill_assets/adapters/compute/table_compute.py",
        old="attempt.at, count)",
        new="attempt.at)",
        tests=(OWN_ROWS,),
    ),
    Mutation(
        name="rows of a view over sources are not counted",
        file="backfill_assets/adapters/compute/source_compute.py",
        old="lambda: rows_at(spark, self.output, at, count)",
        new="lambda: rows_at(spark, self.output, at)",
        tests=(OWN_GROUPS,),
    ),
    Mutation(
        name="a merge may lose rows that it does not change",
        file=COUNTS,
        old="    if (found.added, found.fed) != (expected, fed):",
        new="    if found.fed != fed:",
        tests=(COUNTED, MERGED),
    ),
    Mutation(
        name="a merge may miss rows that it changes",
        file=COUNTS,
        old="    if (found.added, found.fed) != (expected, fed):",
        new="    if found.added != expected:",
        tests=(COUNTED, MERGED),
    ),
    Mutation(
        name="the rows of a merge are not added up",
        file="backfill_assets/adapters/delta/output.py",
        old="        check_rows(self.target, table, staged, merged)\n",
        new="",
        tests=(MERGED,),
    ),
    Mutation(
        name="of two tables that changed, the second takes those after it as changed",
        file="backfill_assets/adapters/compute/relational_changes.py",
        old="        old = [*(at for at in places if at > number), *later]",
        new="        old = [*(at for at in range(len(query.occurrences)) if at > number), *later]",
        tests=("tests/e2e/tables/test_places.py",),
    ),
    Mutation(
        name="a subquery without a name has one that Spark does not know",
        file="backfill_assets/query/row_columns.py",
        old="        if isinstance(subquery.parent, exp.From | exp.Join) and not subquery.alias and is_query:",
        new="        if not subquery:",
        tests=("tests/query/test_key_classes.py",),
    ),
    Mutation(
        name="rows that are read twice are an error at once",
        file=COUNTS,
        old="if unclear and not alone else",
        new="if unclear and alone else",
        tests=(COUNTED,),
    ),
    Mutation(
        name="what Spark left out of its plan has been read",
        file=COUNTS,
        old="return Judgement.RIGHT if needless else Judgement.COUNT_ALONE",
        new="return Judgement.RIGHT",
        tests=(COUNTED, CHANGED),
    ),
    Mutation(
        name="files are counted alone without being opened",
        file=SCANS,
        old="""rows.selectExpr("count(1) AS rows", "max(length(CAST(struct(*) AS STRING))) AS longest")""",
        new="""rows.selectExpr("count(1) AS rows")""",
        tests=(CHANGED,),
    ),
    Mutation(
        name="all places of a query that read a table share one count",
        file="backfill_assets/adapters/compute/table_inputs.py",
        old="        return Inputs(names, lambda name: self.rows(attempt, name))",
        new="        return Inputs(names, dict((name, self.rows(attempt, name)) for name in names).__getitem__)",
        tests=(f"{READ}::test_each_part_that_reads_a_table_is_counted_by_the_columns_that_it_reads",),
    ),
    Mutation(
        name="a scan that may end early is held to be cut short",
        file=COUNTS,
        old="found.rows > scan.most or scan.ends_early",
        new="found.rows > scan.most",
        tests=(COUNTED,),
    ),
    Mutation(
        name="bytes that are no text are a bound",
        file="backfill_assets/adapters/delta/key_statistics.py",
        old='column.type == "STRING" and NO_LETTER not in value',
        new='column.type == "STRING"',
        tests=(FILES_OF_KEYS,),
    ),
    Mutation(
        name="names of files are patterns",
        file="backfill_assets/adapters/delta/log_replay.py",
        old="""return _PLAIN_PATH.fullmatch(path) is not None""",
        new="""return ":" not in path""",
        tests=("tests/adapters/delta/test_log_replay.py",),
    ),
    Mutation(
        name="files of history are not counted",
        file=TABLE_ROWS,
        old="rows = count(read, lambda: held_rows(upstream.location, files))",
        new="rows = read",
        tests=(HISTORY,),
    ),
    Mutation(
        name="files of key ranges are not counted",
        file=TABLE_ROWS,
        old="if place.scans is not None and is_worth_counting(read, [each.stated_rows for each in files]):",
        new="if not files:",
        tests=(f"{READ}::test_a_damaged_file_that_may_have_keys_of_a_range_is_missed",),
    ),
    Mutation(
        name="key ranges are read from all rows of large files",
        file=COUNTS,
        old="rows <= max(FEW_ROWS, MOST_PER_ROW * read.rows)",
        new="rows >= 0",
        tests=(COUNTED,),
    ),
    Mutation(
        name="a file that ends where a range begins is left out, however many columns the range names",
        file="backfill_assets/core/strategies/key_cuts.py",
        old="(self.high < after or (beyond and self.high == after))",
        new="self.high <= after",
        tests=("tests/core/strategies/test_clustering.py",),
    ),
    Mutation(
        name="a file that ends where a range begins is read with it",
        file="backfill_assets/adapters/delta/key_statistics.py",
        old="beyond=alone)",
        new="beyond=False)",
        tests=(FILES_OF_KEYS,),
    ),
    Mutation(
        name="a file whose least key is the last of a range is left out",
        file="backfill_assets/core/strategies/key_cuts.py",
        old="self.low <= upto",
        new="self.low < upto",
        tests=("tests/core/strategies/test_clustering.py", FILES_OF_KEYS),
    ),
    Mutation(
        name="days of five digits are compared as texts",
        file="backfill_assets/adapters/delta/key_statistics.py",
        old="""(column.type == "DATE" and DAY.fullmatch(text)) else None""",
        new="""column.type == "DATE" else None""",
        tests=(FILES_OF_KEYS,),
    ),
    Mutation(
        name="files of a key are found by the name that a column has in the schema",
        file="backfill_assets/adapters/delta/key_statistics.py",
        old="return str(names[column.name][0]) if",
        new="return column.name if",
        tests=(FILES_OF_KEYS,),
    ),
    Mutation(
        name="files of changes are not counted",
        file=TABLE_ROWS,
        old="return unfiltered(count(_changes(spark, upstream, changed), lambda: _held(upstream, changed)))",
        new="return unfiltered(_changes(spark, upstream, changed))",
        tests=(CHANGED,),
    ),
    Mutation(
        name="files of a source are not counted",
        file="backfill_assets/adapters/compute/source_compute.py",
        old="return count(rows, lambda: total_rows(each.rows for each in files)).where(",
        new="return rows.where(",
        tests=(f"{READ}::test_a_damaged_file_of_a_source_is_missed_by_its_views",),
    ),
    Mutation(
        name="groups are computed again from whatever is read of the table",
        file="backfill_assets/adapters/compute/version_rows.py",
        old="return count(rows, lambda: stated_rows(loaded))",
        new="return rows",
        tests=(f"{READ}::test_groups_that_are_computed_again_need_all_rows_of_the_table",),
    ),
    Mutation(
        name="groups of a table with deletion vectors are computed again from whatever is read",
        file=TABLE_ROWS,
        old="lambda: sum(upstream.rows(version)) if (said := stated()) is None else said",
        new="stated",
        tests=(f"{READ}::test_groups_that_are_computed_again_need_all_rows_of_the_table[true]",),
    ),
    Mutation(
        name="rows that a vector hides are expected of files of which the log does not say the rows",
        file="backfill_assets/adapters/delta/footers.py",
        old="rows[file.path] - file.deleted for",
        new="rows[file.path] for",
        tests=("tests/adapters/delta/test_footers.py",),
    ),
    Mutation(
        name="a file whose footer cannot be read has no rows",
        file="backfill_assets/adapters/delta/footers.py",
        old="            raise _unreadable(table, path, error) from error",
        new="            return 0 if error else 1",
        tests=("tests/adapters/delta/test_footers.py",),
    ),
    Mutation(
        name="all rows have to be read of a table of which one is enough",
        file="backfill_assets/query/relational.py",
        old="        read_in_part=read_in_part(root, found),",
        new="        read_in_part=frozenset(),",
        tests=("tests/query/test_place_reads.py",),
    ),
    # Columns of staged files
    Mutation(
        name="staged files may have any columns",
        file="backfill_assets/adapters/delta/output.py",
        old="if staged.files and self._table is not None:",
        new="if staged.files and self._table is None:",
        tests=(REFUSED,),
    ),
    Mutation(
        name="columns that a staged file has not are not missed",
        file="backfill_assets/core/epoch/staged_columns.py",
        old="for name in (*expected, *found):",
        new="for name in found:",
        tests=(STAGED_COLUMNS,),
    ),
    Mutation(
        name="columns that only a staged file has are not seen",
        file="backfill_assets/core/epoch/staged_columns.py",
        old="for name in (*expected, *found):",
        new="for name in expected:",
        tests=(STAGED_COLUMNS,),
    ),
    Mutation(
        name="a time of any unit is a time",
        file="backfill_assets/adapters/delta/arrow_types.py",
        old="""if pa.types.is_timestamp(kind) and kind.unit == "us":""",
        new="if pa.types.is_timestamp(kind):",
        tests=(STAGED_COLUMNS,),
    ),
    Mutation(
        name="a time without a zone is one with it",
        file="backfill_assets/adapters/delta/arrow_types.py",
        old="""return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP\"""",
        new="""return "TIMESTAMP\"""",
        tests=(STAGED_COLUMNS,),
    ),
    # Another reader than Spark
    Mutation(
        name="rows that Spark lacks are not missed",
        file=READER,
        old="lacking, surplus = (found - by_spark).total(), (by_spark - found).total()",
        new="lacking, surplus = 0, (by_spark - found).total()",
        tests=(f"{HIDDEN}[rows]",),
    ),
    Mutation(
        name="rows that only Spark has are not seen",
        file=READER,
        old="lacking, surplus = (found - by_spark).total(), (by_spark - found).total()",
        new="lacking, surplus = (found - by_spark).total(), 0",
        tests=(f"{SECOND}::test_days_that_a_session_moves_are_seen",),
    ),
    Mutation(
        name="a file that only Spark can read is passed over",
        file=READER,
        old="        if file.rows is None\n",
        new="        if file.rows is not None\n",
        tests=(f"{SECOND}::test_a_damaged_file_that_a_session_passes_over_is_named",),
    ),
    Mutation(
        name="results of the query over rows read again are not looked up in the view",
        file=READER,
        old="    if not found.missing:\n",
        new="    if found.missing >= 0:\n",
        tests=(f"{SECOND}::test_what_the_query_makes_of_rows_read_again_must_be_in_the_view",),
    ),
    Mutation(
        name="rows are read at other places than were selected",
        file=FILE_SAMPLES,
        old="skip=places.start - first,",
        new="skip=places.start,",
        tests=("tests/adapters/proof/test_file_samples.py",),
    ),
    Mutation(
        name="rows from the middle of a file are slices",
        file=FILE_SAMPLES,
        old="        yield batch.take(pa.array(range(start, end), pa.int64()))",
        new="        yield batch.slice(start, end - start)",
        tests=("tests/adapters/proof/test_file_samples.py",),
    ),
    Mutation(
        name="files with hidden rows are read again as they are",
        file=FILE_SAMPLES,
        old="if simple and not file.deleted and",
        new="if simple and",
        tests=("tests/adapters/proof/test_file_samples.py",),
    ),
    Mutation(
        name="each proof reads the same places again",
        file=SAMPLING,
        old="""sha256(f"{seed}/{name}".encode())""",
        new="sha256(name.encode())",
        tests=("tests/core/test_sampling.py",),
    ),
    Mutation(
        name="records that the table lacks are not missed",
        file=TOPIC_SAMPLES,
        old="        if row is None:\n            yield",
        new="        if row is None:\n            continue\n            yield",
        tests=("tests/adapters/proof/test_topic_samples.py", HIDDEN_RECORDS),
    ),
    Mutation(
        name="values of records are believed as Spark parsed them",
        file=TOPIC_SAMPLES,
        old="        pairs |= {name:",
        new="        _ = {name:",
        tests=("tests/adapters/proof/test_topic_samples.py", OTHER_RECORDS),
    ),
    Mutation(
        name="no records of a topic are read again",
        file=PROOF_SAMPLES,
        old="ranges = sample_offsets(held, case.seed)",
        new="ranges = sample_offsets({}, case.seed)",
        tests=(HIDDEN_RECORDS,),
    ),
    Mutation(
        name="the full proof reads nothing again",
        file="backfill_assets/app/table_checks.py",
        old="""uuid.uuid4().hex[:12]) if full and seed is not None else""",
        new="""uuid.uuid4().hex[:12]) if not full else""",
        tests=(HIDDEN,),
    ),
    Mutation(
        name="a file that another one has replaced is counted as if it were the first",
        file="backfill_assets/adapters/delta/footers.py",
        old="if (found := stream.size()) != (sizes[path] or found):",
        new="if (found := stream.size()) < 0:",
        tests=("tests/adapters/delta/test_footers.py",),
    ),
    Mutation(
        name="the log's size of a file of the feed is not known",
        file="backfill_assets/adapters/delta/logged_changes.py",
        old="""int(each["size"]) for each""",
        new="""0 for each""",
        tests=("tests/adapters/delta/test_table_changes.py",),
    ),
)
