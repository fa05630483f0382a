"""Faults in the contents of a version, according to its log and the spool, and in the statistics of its files."""

from tests.mutations.mutation import Mutation

__all__ = ["FILES"]

CHECKPOINT = "backfill_assets/adapters/delta/checkpoint_files.py"
REPLAY = "backfill_assets/adapters/delta/log_replay.py"
FILE_BOUNDS = "backfill_assets/adapters/delta/file_bounds.py"
BOUNDS = "backfill_assets/core/epoch/bounds.py"
REPLAYED = "tests/adapters/delta/test_log_replay.py"
ALL_PARTS = f"{REPLAYED}::test_all_parts_of_a_checkpoint_are_read_and_an_incomplete_one_is_ignored"
BY_NAME = f"{REPLAYED}::test_a_deletion_vector_is_found_by_its_name_as_the_protocol_of_delta_has_it"
PLAIN = f"{REPLAYED}::test_files_are_plain_only_if_every_feature_of_the_protocol_is_known"
HERE = "backfill_assets/adapters/delta/arrow_files.py"
OUTPUT = "backfill_assets/adapters/delta/output.py"
STAGED = "backfill_assets/adapters/compute/staged_rows.py"
COMMITS = "tests/adapters/delta/test_real_commits.py"
WRITTEN_HERE = "tests/adapters/delta/test_arrow_files.py"
ALIKE = "tests/e2e/stores/test_s3_requests.py::test_rows_are_staged_alike_by_spark_and_by_this_process"
CUT = "tests/core/epoch/test_bounds.py::test_a_string_that_is_too_long_is_cut_and_its_last_character_raised"

SPARK_FILES = "backfill_assets/adapters/delta/spark_files.py"
SPARK = "tests/adapters/delta/test_spark_files.py"
ALIKE = "tests/e2e/stores/test_s3_requests.py::test_rows_are_staged_alike_by_spark_and_by_this_process"

FILES: tuple[Mutation, ...] = (
    # Checkpoints
    Mutation(
        name="a checkpoint that lacks a part is taken for one",
        file=REPLAY,
        old="if len(parts) == wanted[kind]]",
        new="if len(parts) <= wanted[kind]]",
        tests=(ALL_PARTS,),
    ),
    Mutation(
        name="parts of several checkpoints of a version are put together",
        file=REPLAY,
        old="""kind = (int(match[1]), match[4] or match[3] or "")""",
        new="""kind = (int(match[1]), "")""",
        tests=(ALL_PARTS,),
    ),
    Mutation(
        name="of a checkpoint in parts the first one is read",
        file=REPLAY,
        old="    for part in parts:\n        try:",
        new="    for part in parts[:1]:\n        try:",
        tests=(ALL_PARTS,),
    ),
    Mutation(
        name="sidecars of a checkpoint are not read",
        file=REPLAY,
        old="""            yield from _checkpointed(files, f"{_LOG}/_sidecars/{name}", held)""",
        new="            continue",
        tests=(f"{REPLAYED}::test_files_that_a_checkpoint_names_in_its_sidecars_are_a_part_of_it",),
    ),
    Mutation(
        name="files of a checkpoint that were removed since are still there",
        file=CHECKPOINT,
        old="return order[~np.isin(order, taken)] if taken else order",
        new="return order",
        tests=(f"{REPLAYED}::test_every_version_is_as_delta_rs_has_it_with_and_without_checkpoints",),
    ),
    Mutation(
        name="files of a checkpoint are in the order in which it has them",
        file=CHECKPOINT,
        old='np.frombuffer(pc.sort_indices(rows["path"]).buffers()[1], np.int64)[: len(rows)]',
        new="np.arange(len(rows), dtype=np.int64)",
        tests=(REPLAYED, "tests/adapters/delta/test_carried_replay.py"),
    ),
    Mutation(
        name="a file of a checkpoint that gets a deletion vector is there twice",
        file=REPLAY,
        old="        if self.held.find(path) is not None:\n            self.gone.add(path)",
        new="        if self.held.find(path) is not None and path not in self.active:\n            self.gone = {*self.gone}",
        tests=(REPLAYED, "tests/adapters/delta/test_carried_replay.py"),
    ),
    # Deletion vectors, and what files alone define
    Mutation(
        name="deletion vectors in one file are one",
        file=REPLAY,
        old="""@{vector.get('offset')}\"""",
        new='"',
        tests=(f"{REPLAYED}::test_a_removed_deletion_vector_is_identified_by_its_offset_in_a_shared_file",),
    ),
    Mutation(
        name="a deletion vector is looked for outside of its folder",
        file=REPLAY,
        old="""folder = f"{prefix}/" if prefix else \"\"""",
        new='folder = ""',
        tests=(BY_NAME,),
    ),
    Mutation(
        name="the name of a deletion vector is read in another alphabet",
        file=REPLAY,
        old="encoded.translate(str.maketrans(_Z85, _B85))",
        new="encoded",
        tests=(BY_NAME,),
    ),
    Mutation(
        name="files of mapped columns hold columns as they are",
        file=REPLAY,
        old="simple = reader_version == 1 or (",
        new="simple = reader_version in {1, 2} or (",
        tests=(PLAIN,),
    ),
    Mutation(
        name="what nobody knows of a table's protocol changes nothing in reading it",
        file=REPLAY,
        old="set(reader_features or ()) <= _PLAIN_FEATURES",
        new="set(reader_features or ()) >= set()",
        tests=(PLAIN,),
    ),
    Mutation(
        name="files of partitions hold the columns that they are partitioned by",
        file=REPLAY,
        old="return simple and not partition_columns",
        new="return simple",
        tests=(PLAIN,),
    ),
    Mutation(
        name="of a pinned version one file is kept in the spool",
        file="backfill_assets/adapters/delta/spool.py",
        old=""""files": [each.action for each in version.files],""",
        new=""""files": [each.action for each in version.files[:1]],""",
        tests=("tests/adapters/delta/test_spool.py::test_the_whole_contents_of_a_pinned_version_are_kept",),
    ),
    # What Spark reads and writes
    Mutation(
        name="each file of a large table in a store is looked for",
        file="backfill_assets/adapters/compute/table_rows.py",
        old="few = upstream.location.is_local or len(paths) <= FEW_OBJECTS",
        new="few = True",
        tests=("tests/e2e/stores/test_s3_requests.py::test_spark_does_not_look_for_many_files_one_by_one",),
    ),
    Mutation(
        name="files of tasks that were given up count, and lists of files stay",
        file=SPARK_FILES,
        old="    return listed(location, folder)",
        new="    return found_in(location, folder)",
        tests=(ALIKE,),
    ),
    Mutation(
        name="names of files are as a list writes them",
        file=SPARK_FILES,
        old="{unquote(each['path'])}",
        new="{each['path']}",
        tests=(f"{SPARK}::test_only_files_of_tasks_that_succeeded_count",),
    ),
    Mutation(
        name="the list of a folder's files stays",
        file=SPARK_FILES,
        old="    _delete_others(location, folder, {each.path for each in found})\n",
        new="",
        tests=(f"{SPARK}::test_only_files_of_tasks_that_succeeded_count",),
    ),
    Mutation(
        name="Delta writes columns of names that it refuses",
        file=SPARK_FILES,
        old="not location.is_local and fits_delta(rows.schema.jsonValue())",
        new="not location.is_local",
        tests=(ALIKE,),
    ),
    Mutation(
        name="files have the column that names their folder",
        file=SPARK_FILES,
        old='    "delta.writePartitionColumnsToParquet": "false",\n',
        new="",
        tests=(ALIKE,),
    ),
    Mutation(
        name="the length of a CHAR is Delta's business",
        file=SPARK_FILES,
        old="rows.withMetadata(field.name, {}) if field.metadata else rows",
        new="rows",
        tests=(ALIKE,),
    ),
    Mutation(
        name="names of fields are not looked at",
        file=SPARK_FILES,
        old='for key in ("fields", "type", "elementType", "keyType", "valueType")',
        new='for key in ("fields",)',
        tests=(f"{SPARK}::test_names_that_a_new_delta_table_must_not_have_are_found_wherever_they_are",),
    ),
    # Bounds
    Mutation(
        name="a property may name columns whose bounds are not exact",
        file=FILE_BOUNDS,
        old="return naming(names) == text and set(names) <= boundable(table.schema().to_json()).keys()",
        new="return naming(names) == text",
        tests=("tests/adapters/delta/test_file_bounds.py::test_a_property_that_somebody_else_set_is_not_kept",),
    ),
    Mutation(
        name="files that delta-rs writes have bounds of floats inside",
        file=FILE_BOUNDS,
        old="""        if isinstance(each.type, PrimitiveType) and each.type.type not in {"float", "double"}""",
        new="        if isinstance(each.type, PrimitiveType)",
        tests=(
            "tests/adapters/delta/test_file_bounds.py::test_bounds_are_exact_after_appends_merges_an_overwrite_and_compaction",
        ),
    ),
    Mutation(
        name="bounds may have a letter too many",
        file=BOUNDS,
        old="or len(value) <= MAX_TEXT:",
        new="or len(value) <= MAX_TEXT + 1:",
        tests=(CUT,),
    ),
    Mutation(
        name="half of a surrogate pair ends a bound",
        file=BOUNDS,
        old="return chr(_SURROGATES.stop if code in _SURROGATES else code)",
        new="return chr(code)",
        tests=(CUT,),
    ),
    # Files that this process writes, and what a run has loaded
    Mutation(
        name="files of this process have bounds of floats",
        file=HERE,
        old="is_plain = not (pa.types.is_nested(column.type) or pa.types.is_floating(column.type))",
        new="is_plain = not pa.types.is_nested(column.type)",
        tests=(f"{WRITTEN_HERE}::test_a_reader_gets_back_every_value_and_no_statistics_of_floats",),
    ),
    Mutation(
        name="pages of files of this process have no checksums",
        file=HERE,
        old="write_page_checksum=True",
        new="write_page_checksum=False",
        tests=(f"{WRITTEN_HERE}::test_a_page_that_is_damaged_later_is_noticed",),
    ),
    Mutation(
        name="a few rows for a store are written by Spark",
        file=STAGED,
        old="if given.tasks.number == 1 and not folder.table.is_local:",
        new="if given.tasks.number == 0:",
        tests=("tests/e2e/stores/test_s3_requests.py::test_a_refresh_of_a_thousand_records_takes_few_requests",),
    ),
    Mutation(
        name="rows are collected however large they are",
        file=STAGED,
        old="if found.pop(_BYTES) > FEW_BYTES:",
        new="if found.pop(_BYTES) < 0:",
        tests=(ALIKE,),
    ),
    Mutation(
        name="each operation has the rows of all",
        file=STAGED,
        old="rows.filter(pc.equal(rows.column(OPERATION), kind))",
        new="rows",
        tests=(ALIKE,),
    ),
    Mutation(
        name="a commit is made on a version that was not looked at",
        file=OUTPUT,
        old="if table.version() != self._at:",
        new="if table.version() < self._at:",
        tests=(f"{COMMITS}::test_a_commit_is_made_on_the_version_of_the_last_look_whoever_has_read_the_table_since",),
    ),
    Mutation(
        name="a log that has changed is taken for what was seen before",
        file=OUTPUT,
        old="if mark is None or mark != self._seen[0]:",
        new="if mark is None or self._seen[0] is None:",
        tests=(f"{COMMITS}::test_a_commit_is_made_on_the_version_of_the_last_look_whoever_has_read_the_table_since",),
    ),
    Mutation(
        name="a version that was loaded stands for any other",
        file="backfill_assets/adapters/storage/warehouse.py",
        old="if self.loaded is not None and self.loaded.version() == version:",
        new="if self.loaded is not None:",
        tests=(f"{COMMITS}::test_what_one_part_of_a_run_has_loaded_another_one_need_not_load",),
    ),
)
