"""Faults in what Spark computes: exact rows of versions and ranges, consolidated changes, groups."""

from tests.mutations.mutation import Mutation

__all__ = ["SPARK"]

COMPUTE = "backfill_assets/adapters/compute/source_compute.py"
TABLE_COMPUTE = "backfill_assets/adapters/compute/table_compute.py"
CONSOLIDATED = "backfill_assets/adapters/compute/consolidated.py"
KEY_CHECKS = "backfill_assets/adapters/compute/key_checks.py"
TABLE_ROWS = "backfill_assets/adapters/compute/table_rows.py"
KEY_RANGES = "backfill_assets/adapters/compute/key_ranges.py"
UPSTREAM = "backfill_assets/adapters/delta/upstream.py"
BROADCASTS = "tests/e2e/tables/test_broadcasts.py"
VERSION_ROWS = "tests/e2e/tables/test_version_rows.py"
GROUPS = "backfill_assets/adapters/sql/apply_aggregate.py"
COPIES = (
    "tests/e2e/tables/test_snapshot_keys.py::"
    "test_copies_of_a_key_that_come_and_go_between_refreshes_leave_what_the_table_holds"
)
UNIQUE = (
    "tests/e2e/tables/test_snapshot_refusals.py::"
    "test_a_key_that_is_not_unique_is_refused_at_the_snapshot_and_when_it_comes_later"
)
ONLY_WHAT_DIFFERS = "tests/e2e/tables/test_full_refresh.py::test_readers_see_only_differences_if_few_rows_differ"
PRIMARY_KEY = "tests/e2e/tables/test_primary_key.py"
IN_BOTH = f"{PRIMARY_KEY}::test_a_key_that_is_in_both_tables_is_refused_until_one_has_deleted_it"
COLUMNS = "tests/e2e/tables/test_columns_that_come.py"
EVERY_CHANGE = "tests/e2e/tables/test_snapshot.py::test_history_is_read_in_chunks_and_changes_of_every_kind_follow"
CUT_WITHIN = (
    "tests/e2e/tables/test_arrangement.py::"
    "test_a_composite_key_of_few_leading_values_with_null_and_nan_is_cut_within_them"
)
BY_KEY = (
    "tests/e2e/tables/test_arrangement.py::"
    "test_the_view_is_its_query_after_every_epoch_whatever_moves_and_is_vacuumed_between"
)
MAINTENANCE = "tests/e2e/tables/test_aggregate_maintenance.py"
BATCH_ANSWER = f"{MAINTENANCE}::test_after_every_batch_of_a_random_history_the_view_is_the_batch_answer"
VANISHED = f"{MAINTENANCE}::test_vanished_groups_are_deleted_by_key_and_may_come_back_in_the_same_batch"
READ_AGAIN = f"{MAINTENANCE}::test_the_upstream_is_read_where_an_extreme_or_a_float_goes"

SPARK: tuple[Mutation, ...] = (
    # Columns that are added to an upstream
    Mutation(
        name="a view's query means the columns that its upstreams have now",
        file="backfill_assets/app/wiring/view_query.py",
        old="return self._over(_as_columns(self._begun) or self.columns_now, instant)",
        new="return self._over(self.columns_now, instant)",
        tests=(f"{COLUMNS}::test_an_alias_keeps_its_meaning_in_the_middle_of_history_and_after_it[snapshot]",),
    ),
    Mutation(
        name="each epoch records the columns of its upstreams again",
        file="backfill_assets/core/epoch/protocol.py",
        old="columns=(None if plan.redefines else last.columns) or parts.decider.columns(),",
        new="columns=parts.decider.columns(),",
        tests=(
            "tests/core/strategies/test_arrangement_run.py::"
            "test_all_commits_of_a_life_record_the_columns_of_its_beginning",
        ),
    ),
    Mutation(
        name="a name that the query also gives by AS is not a column of the query",
        file="backfill_assets/query/query.py",
        old="    words = words_of(tokens)",
        new="    words = words_of(token for before, token in zip(tokens, tokens[1:]) if before.text.lower() != 'as')",
        tests=("tests/query/test_query_columns.py",),
    ),
    # Reading exact rows
    Mutation(
        name="the first row of each range of bronze is left out",
        file="backfill_assets/adapters/sql/offset_ranges.py",
        old='f"{offset} >= get(',
        new='f"{offset} > get(',
        tests=("tests/e2e/kafka/test_first_path.py::test_history_and_new_events_reach_the_view_each_once",),
    ),
    Mutation(
        name="a row beyond each range of bronze is read",
        file="backfill_assets/adapters/sql/offset_ranges.py",
        old='f"{offset} < get(',
        new='f"{offset} <= get(',
        tests=(
            "tests/e2e/kafka/test_many_partitions.py::"
            "test_ranges_of_ten_thousand_partitions_are_read_and_left_out_exactly_in_process",
        ),
    ),
    Mutation(
        name="a version is read as it is by now",
        file="backfill_assets/adapters/compute/version_rows.py",
        old="return location.at(version)",
        new="return location.load()",
        tests=(
            "tests/e2e/tables/test_version_rows.py::test_every_version_of_a_plain_table_is_read_by_its_files",
            "tests/e2e/tables/test_snapshot_once.py::"
            "test_nothing_is_visible_before_all_of_it_and_each_epoch_of_the_log_is_equal",
        ),
    ),
    Mutation(
        name="Delta reads a version as it is by now",
        file="backfill_assets/adapters/compute/version_rows.py",
        old="""spark.read.format("delta").option("versionAsOf", version).load(table.uri)""",
        new="""spark.read.format("delta").load(table.uri)""",
        tests=("tests/e2e/tables/test_version_rows.py::test_every_version_of_a_plain_table_is_read_by_its_files",),
    ),
    Mutation(
        name="files of a table with deletion vectors are read as they are",
        file="backfill_assets/adapters/delta/plain_tables.py",
        old="return not has_vectors(table) and is_plain(",
        new="return is_plain(",
        tests=(f"{VERSION_ROWS}::test_what_files_alone_do_not_tell_is_left_to_delta[deletion vectors]",),
    ),
    Mutation(
        name="files that were removed are still a part of a version",
        file="backfill_assets/adapters/delta/log_replay.py",
        old="elif remove and",
        new="""elif remove and remove.get("deletionVector") and""",
        tests=("tests/adapters/delta/test_log_replay.py",),
    ),
    Mutation(
        name="deletes are not seen in a table's log",
        file=UPSTREAM,
        old="""deletes=any(is_data_change(action, "remove") for action in actions),""",
        new="""deletes=any(is_data_change(action, "delete") for action in actions),""",
        tests=(
            "tests/e2e/tables/test_snapshot_refusals.py::test_an_append_only_table_needs_no_feed_until_it_has_neither",
        ),
    ),
    Mutation(
        name="files that were removed whole are no change",
        file="backfill_assets/adapters/delta/logged_changes.py",
        old="whole = self.incomplete or not self.removed",
        new="whole = True",
        tests=("tests/e2e/tables/test_snapshot.py::test_changes_by_every_command_that_delta_has_are_followed",),
    ),
    Mutation(
        name="a key range leaves out its last key",
        file=KEY_RANGES,
        old="(_columns(key, each.upto) <= _place(key, each.upto))",
        new="(_columns(key, each.upto) < _place(key, each.upto))",
        tests=(CUT_WITHIN, BY_KEY),
    ),
    Mutation(
        name="a key range holds the last key of the one before it",
        file=KEY_RANGES,
        old="(_columns(key, each.after) > _place(key, each.after))",
        new="(_columns(key, each.after) >= _place(key, each.after))",
        tests=(CUT_WITHIN,),
    ),
    Mutation(
        name="an update that crosses a cursor leaves the old half of its pair",
        file=TABLE_ROWS,
        old="return in_ranges(every, upstream, read.within)",
        new="""return in_ranges(every.where("_change_type <> 'update_preimage'"), upstream, read.within)""",
        tests=(CUT_WITHIN, BY_KEY),
    ),
    # Consolidating changes by key
    Mutation(
        name="rows are grouped by maps as Spark does it",
        file="backfill_assets/adapters/sql/map_columns.py",
        old="    if held:\n        rows = rows.withColumns",
        new="    held = []\n    if held:\n        rows = rows.withColumns",
        tests=("tests/e2e/tables/test_map_columns.py::test_rows_are_grouped_by_maps_with_null_values",),
    ),
    Mutation(
        name="rows that came and went again leave a delete",
        file=CONSOLIDATED,
        old="""grouped(together, columns, sums).where(f"{NET_ROWS} <> 0")""",
        new="grouped(together, columns, sums)",
        tests=(COPIES,),
    ),
    Mutation(
        name="the old row of an update is kept instead of the new one",
        file=CONSOLIDATED,
        old="F.max_by(F.struct(",
        new="F.min_by(F.struct(",
        tests=(COPIES, EVERY_CHANGE),
    ),
    Mutation(
        name="a duplicate key among changes is accepted",
        file=CONSOLIDATED,
        old='F.expr("__came > 1 OR __went < -1")',
        new='F.expr("__came > 2 OR __went < -2")',
        tests=(UNIQUE,),
    ),
    Mutation(
        name="a new row of a key that the view holds replaces the old one",
        file=KEY_CHECKS,
        old="""    if counts["insert"] and not _are""",
        new="""    if counts["insert"] < 0 and not _are""",
        tests=(UNIQUE,),
    ),
    Mutation(
        name="a view that is recomputed accepts a duplicate key",
        file=TABLE_COMPUTE,
        old="not isinstance(query, AggregateQuery) and is_constrained(query):",
        new="is_constrained(query) and not counts:",
        tests=("tests/e2e/tables/test_full_refresh.py::test_a_duplicate_key_is_refused_until_it_is_corrected",),
    ),
    # A view that is recomputed
    Mutation(
        name="a view that is recomputed is replaced however few rows differ",
        file=TABLE_COMPUTE,
        old="                if parts is not None:\n",
        new="                if parts is not None and not key:\n",
        tests=(ONLY_WHAT_DIFFERS,),
    ),
    Mutation(
        name="a view that is recomputed is never replaced",
        file="backfill_assets/adapters/compute/differences.py",
        old="2 * counted",
        new="0 * counted",
        tests=("tests/e2e/tables/test_full_refresh.py::test_a_view_is_replaced_and_what_comes_after_is_followed",),
    ),
    Mutation(
        name="a share of few rows is compared, of which Spark takes the scans out of its plan",
        file="backfill_assets/adapters/compute/differences.py",
        old="least = new.count() if rows > COUNTED_ROWS else 0",
        new="least = rows",
        tests=(
            "tests/e2e/tables/test_full_refresh.py::"
            "test_tables_of_which_a_small_view_was_computed_are_not_read_again_to_count_them",
        ),
    ),
    Mutation(
        name="rows that go are left out where a view is recomputed",
        file="backfill_assets/adapters/compute/differences.py",
        old="unionByName(held.withColumn(CARRIED_CHANGE, go))",
        new="unionByName(held.withColumn(CARRIED_CHANGE, go).limit(0))",
        tests=(ONLY_WHAT_DIFFERS,),
    ),
    Mutation(
        name="what is staged as changes is committed as all that the view holds",
        file=TABLE_COMPUTE,
        old="replaces=bool(done.counts.get(REPLACED)),",
        new="replaces=plan.replaces,",
        tests=(ONLY_WHAT_DIFFERS,),
    ),
    # A view's own primary key
    Mutation(
        name="rows are merged by the view's own key",
        file="backfill_assets/query/rowwise.py",
        old="key_columns=hidden or key or primary_key,",
        new="key_columns=primary_key or hidden or key,",
        tests=(
            "tests/query/test_rowwise.py::test_an_own_key_is_a_constraint_beside_where_a_row_came_from",
            f"{PRIMARY_KEY}::test_a_key_that_moves_within_an_epoch_is_merged_by_where_it_came_from_by_either_engine",
        ),
    ),
    Mutation(
        name="the view's own key is not checked before the commit",
        file=KEY_CHECKS,
        old="first, *declared = unique_keys(query)",
        new="first, *declared = query.key_columns, *unique_keys(query)[2:]",
        tests=(IN_BOTH,),
    ),
    Mutation(
        name="a row of the same primary key that goes in the same epoch is in the way",
        file=KEY_CHECKS,
        old="return come.select(*columns).unionByName(stay.select(*columns))",
        new="return come.select(*columns).unionByName(same.select(*columns))",
        tests=(
            f"{PRIMARY_KEY}::test_a_key_that_moves_within_an_epoch_is_merged_by_where_it_came_from_by_either_engine",
        ),
    ),
    Mutation(
        name="a row that stays is not in the way of a new one with its primary key",
        file=KEY_CHECKS,
        old="return come.select(*columns).unionByName(stay.select(*columns))",
        new="return come.select(*columns)",
        tests=(IN_BOTH,),
    ),
    Mutation(
        name="a row that takes another primary key is not checked",
        file=KEY_CHECKS,
        old="""for key in declared if counts["insert"] or counts[MOVED] else ():""",
        new="""for key in declared if counts["insert"] else ():""",
        tests=(f"{PRIMARY_KEY}::test_a_key_that_moves_to_another_row_of_its_table",),
    ),
    Mutation(
        name="readers of a view go by where its rows came from",
        file="backfill_assets/query/query.py",
        old="return (isinstance(query, RowwiseQuery) and query.primary_key) or query.key_columns",
        new="return query.key_columns",
        tests=(f"{PRIMARY_KEY}::test_a_key_that_moves_to_another_row_of_its_table",),
    ),
    Mutation(
        name="a life begins over two rows of the view's own key",
        file="backfill_assets/app/wiring/table_upstreams.py",
        old="if declared or key == query.primary_key]",
        new="if declared and key == query.key_columns]",
        tests=(
            f"{PRIMARY_KEY}::"
            "test_a_life_does_not_begin_over_a_key_in_two_tables_and_the_check_finds_one_that_slipped_in",
        ),
    ),
    Mutation(
        name="the check of keys does not look at the view's own",
        file="backfill_assets/app/table_checks.py",
        old="for key in keys for each in _duplicate_keys(case, key)]",
        new="for key in keys[:1] for each in _duplicate_keys(case, key)]",
        tests=(
            f"{PRIMARY_KEY}::"
            "test_a_life_does_not_begin_over_a_key_in_two_tables_and_the_check_finds_one_that_slipped_in",
        ),
    ),
    # Groups
    Mutation(
        name="rows that go count as rows that come",
        file=GROUPS,
        old="""count = f"sum(__count * {SIGN})\"""",
        new="""count = "sum(__count)\"""",
        tests=(VANISHED, BATCH_ANSWER),
    ),
    Mutation(
        name="deletes are added to groups",
        file=TABLE_COMPUTE,
        old="""f"IF({CHANGE.name} {IS_INSERT}, 1, -1)")""",
        new="""f"IF({CHANGE.name} {IS_INSERT}, 1, 1)")""",
        tests=(
            "tests/e2e/tables/test_added_columns.py::test_views_over_it_go_on",
            "tests/e2e/tables/test_full_refresh.py::test_views_over_a_view_that_was_replaced_once_follow_it",
            "tests/e2e/tables/test_aggregate_views.py::test_groups_follow_a_table_and_a_view_follows_the_groups",
        ),
    ),
    Mutation(
        name="an extreme that goes is not computed again",
        file=GROUPS,
        old="""return _State(name, of_row, stays, f"coalesce({passed}, {gone} IS NOT NULL)")""",
        new="""return _State(name, of_row, stays)""",
        tests=(READ_AGAIN, BATCH_ANSWER),
    ),
    Mutation(
        name="a greatest value stays though its last row goes",
        file=GROUPS,
        old="""passed = f"{gone} >= {stays}" if""",
        new="""passed = f"{gone} > {stays}" if""",
        tests=(READ_AGAIN,),
    ),
    Mutation(
        name="sums of floats are updated by differences",
        file=GROUPS,
        old="""return _State(name, f"CAST({value} AS DOUBLE)", f"sum(IF({_INSERTED}, {name}, NULL))", gone)""",
        new="""return _State(name, f"CAST({value} AS DOUBLE)", f"sum(IF({_INSERTED}, {name}, -{name}))")""",
        tests=(READ_AGAIN,),
    ),
    Mutation(
        name="a group without rows is kept",
        file=GROUPS,
        old="WHEN {_AGAIN} THEN {lost} WHEN __count > 0 THEN",
        new="WHEN {_AGAIN} THEN {lost} WHEN __count >= 0 THEN",
        tests=(VANISHED,),
    ),
    Mutation(
        name="null is no group",
        file="backfill_assets/adapters/sql/semi_join.py",
        old="""f"{backquoted(name)} <=> {other[key]}\"""",
        new="""f"{backquoted(name)} = {other[key]}\"""",
        tests=(VANISHED, BATCH_ANSWER),
    ),
    # What is broadcast
    Mutation(
        name="keys of a join are counted and not measured",
        file="backfill_assets/adapters/sql/broadcasts.py",
        old=" + _TEXT * self.bytes",
        new="",
        tests=("tests/adapters/sql/test_broadcasts.py",),
    ),
    Mutation(
        name="keys that do not fit in memory are sent to every task",
        file="backfill_assets/adapters/sql/semi_join.py",
        old="""F.broadcast(named) if few else named.hint("merge")""",
        new="F.broadcast(named)",
        tests=(f"{BROADCASTS}::test_the_rows_of_keys_are_the_same_by_broadcast_and_by_sorting",),
    ),
    Mutation(
        name="wide groups are taken for narrow ones",
        file="backfill_assets/adapters/compute/broadcast_memory.py",
        old="bytes=most * LONGEST if has_texts(types) else 0",
        new="bytes=0",
        tests=(f"{BROADCASTS}::test_groups_that_may_be_too_many_are_counted_and_measured",),
    ),
)
