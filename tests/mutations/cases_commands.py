"""Faults of commands and servers, and of what is counted and compared."""

from tests.mutations.mutation import Mutation

__all__ = ["COMMANDS"]

COMMAND = "backfill_assets/cli/commands.py"
SERVERS = "backfill_assets/adapters/local/servers.py"
S3 = "backfill_assets/adapters/local/s3_server.py"
FIRST = "backfill_assets/adapters/compute/first_rows.py"
ROWS = "backfill_assets/adapters/compute/table_rows.py"
CALLED = "tests/cli/test_commands.py"
STARTED = "tests/adapters/local/test_servers.py"
STORE = "tests/adapters/local/test_s3_server.py"
CLUSTER = "tests/adapters/local/test_spark_cluster.py"
IN_ORDER = (
    "tests/e2e/tables/test_first_rows.py::test_rows_come_in_the_order_that_the_query_says_and_nulls_where_it_says"
)
READ = "tests/e2e/damage/test_inputs_conserved.py"
OF_TOPICS = "tests/e2e/damage/test_groups_of_topics.py"

COMMANDS: tuple[Mutation, ...] = (
    Mutation(
        name="nulls come first wherever rows descend",
        file=FIRST,
        old="return column.desc_nulls_first() if by.nulls_first else column.desc_nulls_last()",
        new="return column.desc_nulls_first()",
        tests=(IN_ORDER,),
    ),
    Mutation(
        name="rows that ascend descend",
        file=FIRST,
        old="return column.asc_nulls_first() if by.nulls_first",
        new="return column.desc_nulls_first() if by.nulls_first",
        tests=(IN_ORDER,),
    ),
    Mutation(
        name="the sum of nothing is 0",
        file="backfill_assets/adapters/sql/apply_aggregate.py",
        old='return f"CASE WHEN {count} > 0 THEN {value} END"',
        new='return f"CASE WHEN {count} > 0 THEN {value} END" if call.function == "avg" else value',
        tests=("tests/e2e/tables/test_aggregate_maintenance.py::test_a_group_with_nothing_but_nulls_has_null_results",),
    ),
    Mutation(
        name="all records are read as if they had to be committed",
        file="backfill_assets/adapters/compute/source_compute.py",
        old='.option("kafka.isolation.level", read.isolation)',
        new='.option("kafka.isolation.level", "read_committed")',
        tests=("tests/adapters/kafka/test_spark_reader.py",),
    ),
    Mutation(
        name="rows of change files are not counted",
        file=ROWS,
        old="return None if whole is None else whole + footer_rows",
        new="return None if whole is None or files.feed else whole + footer_rows",
        tests=(f"{READ}::test_files_of_a_change_data_feed_are_missed_by_what_they_say_themselves",),
    ),
    Mutation(
        name="captured rows are not counted",
        file="backfill_assets/adapters/compute/table_inputs.py",
        old="return attempt.scans.by(partial(scan_of, read))(rows, lambda: footer_rows(",
        new="return (lambda found, _counted: found)(rows, lambda: footer_rows(",
        tests=(f"{READ}::test_captured_changes_are_missed_when_they_are_read_again",),
    ),
    Mutation(
        name="groups over a topic are compared with themselves",
        file="backfill_assets/adapters/proof/rows.py",
        old="compared(rows_at(spark, table, version), derive(spark, derived),",
        new="compared(rows_at(spark, table, version), rows_at(spark, table, version),",
        tests=(OF_TOPICS,),
    ),
    Mutation(
        name="groups over a topic are not compared where nothing is new",
        file="backfill_assets/adapters/proof/since.py",
        old="if written.nothing and not derived.reads:",
        new="if written.nothing or not derived.reads:",
        tests=(OF_TOPICS,),
    ),
    Mutation(
        name="pages of the cluster are shown to everybody",
        file="backfill_assets/adapters/local/spark_cluster.py",
        old='"spark.ui.filters": _FILTER,',
        new="",
        tests=(f"{CLUSTER}::test_nobody_else_can_send_programs_to_it_or_end_them",),
    ),
    Mutation(
        name="the cluster is reached from other machines",
        file="backfill_assets/adapters/local/spark_programs.py",
        old='        "SPARK_LOCAL_IP": HOST,\n',
        new="",
        tests=(f"{CLUSTER}::test_nobody_else_can_send_programs_to_it_or_end_them",),
    ),
    Mutation(
        name="the key of the local store can be read by others",
        file=S3,
        old='write_private(folder / _VARIABLES_FILE, "".join(f"{name}={value}\\n" for name, value in variables.items()))',
        new='(folder / _VARIABLES_FILE).write_text("".join(f"{name}={value}\\n" for name, value in variables.items()))',
        tests=(STORE,),
    ),
    Mutation(
        name="the local store has other keys at each start",
        file=S3,
        old="if not (folder / _KEY).exists():",
        new="if True:",
        tests=(STORE,),
    ),
    Mutation(
        name="the local store does not start in every folder",
        file=S3,
        old="data=_escaped(folder / _DATA)",
        new="data=str((folder / _DATA).resolve())",
        tests=(STORE,),
    ),
    Mutation(
        name="the local store gets another port at each start",
        file=SERVERS,
        old="last=state.ports.get(_S3)",
        new="last=None",
        tests=(STARTED,),
    ),
    Mutation(
        name="the Spark server gets another port at each start",
        file=SERVERS,
        old="last=state.ports.get(_SPARK)",
        new="last=None",
        tests=(STARTED,),
    ),
    Mutation(
        name="executors have no keys of the store",
        file=SERVERS,
        old="process = start_worker(folder / name, _master(folder), port=port, variables=variables)",
        new="process = start_worker(folder / name, _master(folder), port=port, variables={})",
        tests=(STARTED,),
    ),
    Mutation(
        name="the connector of S3 is not asked for",
        file=COMMAND,
        old='"s3": s3 or s3_tables',
        new='"s3": s3',
        tests=(CALLED,),
    ),
    Mutation(
        name="what is put back is forgotten instead",
        file=COMMAND,
        old="(replacing.undo_replacement if undo else replacing.forget_replaced)",
        new="(replacing.forget_replaced if undo else replacing.undo_replacement)",
        tests=(CALLED,),
    ),
    Mutation(
        name="a row that is taken back is left out",
        file=COMMAND,
        old='undo=undo, by="cli"',
        new='undo=False, by="cli"',
        tests=(CALLED,),
    ),
    Mutation(
        name="only the first of several records is left out",
        file=COMMAND,
        old="offsets=tuple(offset or ())",
        new="offsets=tuple(offset or ())[:1]",
        tests=(CALLED,),
    ),
    Mutation(
        name="a row that is named by its key is not left out",
        file=COMMAND,
        old="key=tuple(key or ())",
        new="key=()",
        tests=(CALLED,),
    ),
    Mutation(
        name="a refresh reads more rows than it may",
        file=COMMAND,
        old='        "max_rows": max_rows,\n',
        new="",
        tests=(CALLED,),
    ),
    Mutation(
        name="a refresh reads as many rows at once as it likes",
        file=COMMAND,
        old='        "chunk_rows": chunk_rows,\n',
        new="",
        tests=(CALLED,),
    ),
    Mutation(
        name="a replacement that is done ends like one that is not",
        file=COMMAND,
        old="if not done.switched:",
        new="if done.switched:",
        tests=(CALLED,),
    ),
    Mutation(
        name="maintaining does nothing",
        file=COMMAND,
        old="swept = maintain_table(LocalProject(module).workspace(), name, vacuum_hours=vacuum_hours)",
        new="swept = list[str]()",
        tests=(CALLED,),
    ),
    Mutation(
        name="the status does not name the rows that are left out",
        file="backfill_assets/cli/printing.py",
        old="parts.append(left_out_text([row for each in found for row in each.left_out]))",
        new="pass",
        tests=(CALLED,),
    ),
    Mutation(
        name="what a life has captured outlives it",
        file="backfill_assets/app/lifecycle.py",
        old="    sweep(table.output.location, table.output.look)\n    return record\n\n\ndef drop",
        new="    return record\n\n\ndef drop",
        tests=("tests/e2e/kills/test_takeover.py::test_captured_rows_that_a_dead_run_has_drained_go",),
    ),
    Mutation(
        name="rows that are read again by their keys are not counted",
        file=ROWS,
        old="_keys_done(upstream.name, table), columns, place)",
        new="_keys_done(upstream.name, table), columns, Scratch(table=place.table, path=place.path, uses=place.uses))",
        tests=(f"{READ}::test_groups_are_computed_again_of_all_keys_that_were_read",),
    ),
    Mutation(
        name="a large view of which all rows go keeps them",
        file="backfill_assets/adapters/compute/table_compute.py",
        old='            stays = old.is_empty and not counts["insert"]',
        new='            stays = not counts["insert"]',
        tests=("tests/e2e/tables/test_layout.py::test_a_large_view_of_which_all_rows_go_is_empty",),
    ),
    Mutation(
        name="the hidden sum of a group of which only nulls are left is 0",
        file="backfill_assets/adapters/sql/apply_aggregate.py",
        old='f"CASE WHEN sum(__n_{call.argument} * {SIGN}) > 0 THEN sum(IF({_INSERTED}, {name}, {gone})) END"',
        new='f"sum(IF({_INSERTED}, {name}, {gone}))"',
        tests=(
            "tests/e2e/tables/test_aggregate_maintenance.py::test_a_group_with_nothing_but_nulls_has_null_results",
            "tests/e2e/tables/test_aggregate_views.py::test_groups_of_which_only_nulls_are_left_are_proved",
        ),
    ),
    Mutation(
        name="NaN among keys is in no range",
        file="backfill_assets/adapters/compute/key_ranges.py",
        old="    if key[0].type in FLOATING:",
        new="    if False:",
        tests=("tests/e2e/tables/test_arrangement.py::test_nan_is_beyond_every_end_though_no_statistics_tell_of_it",),
    ),
)
