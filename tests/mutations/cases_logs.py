"""Faults in reading logs, stores and brokers: commits, changed files, statistics, plans, leases, offsets."""

from tests.mutations.mutation import Mutation

__all__ = ["LOGS"]

DELTA = "backfill_assets/adapters/delta/output.py"
COMMITS = "backfill_assets/adapters/delta/commits.py"
STAGING = "backfill_assets/adapters/delta/staging.py"
STAGED_FILES = "backfill_assets/adapters/delta/staged_files.py"
LEDGER = "backfill_assets/adapters/state/ledger.py"
STATE = "backfill_assets/adapters/state/state_store.py"
KAFKA = "backfill_assets/adapters/kafka/connector.py"
UPSTREAM = "backfill_assets/adapters/delta/upstream.py"
LOGGED = "backfill_assets/adapters/delta/logged_changes.py"
REAL = "tests/adapters/delta/test_real_commits.py"
REAL_LOGS = "tests/adapters/delta/test_real_logs.py"
BOUNDS = "tests/adapters/delta/test_file_bounds.py"
PLANS = "tests/adapters/state/test_ledger.py"
DOCUMENTS = "backfill_assets/adapters/state/table_documents.py"
STORED = "tests/adapters/state/test_state_store.py"
LEASES = f"{STORED}::test_a_lease_is_alive_while_it_is_renewed_and_its_process_exists"
OFFERS = "tests/adapters/kafka/test_kafka_offers.py"
CHANGED = "tests/adapters/delta/test_table_changes.py"
FIRST_FOREIGN = f"{REAL}::test_the_first_of_several_external_writes_is_named_and_a_delete_is_one"
LIFE = f"{REAL}::test_the_life_of_a_table_is_its_newest_one_and_of_each_epoch_what_was_said_last"
STATED = f"{REAL_LOGS}::test_bounds_are_stated_only_where_every_row_group_has_them_and_of_the_column_that_is_meant"
RETENTION = f"{REAL_LOGS}::test_a_retention_that_is_no_length_of_time_keeps_the_log_for_ever"
ADDED = f"{CHANGED}::test_what_versions_of_an_append_only_table_added_are_all_their_new_rows_and_nothing_that_was_only_moved"
CHANGE_FILES = f"{CHANGED}::test_of_a_version_with_change_files_these_are_read_and_of_others_what_they_added"
MISSED = f"{CHANGED}::test_every_file_that_holds_changes_is_missed_when_it_is_gone"
COLUMNS = f"{CHANGED}::test_a_version_that_changes_a_column_is_refused_and_one_that_adds_one_is_not"
FED = f"{CHANGED}::test_whether_a_version_has_a_feed_depends_on_the_properties_of_that_version"
AT_A_TIME = f"{OFFERS}::test_a_time_is_requested_in_milliseconds_and_gives_only_readable_offsets"

LOGS: tuple[Mutation, ...] = (
    # An output's own log
    Mutation(
        name="of several external writes the last is named",
        file="backfill_assets/adapters/delta/epochs_in_log.py",
        old="            if changes_data(actions):\n                external = at",
        new="            if changes_data(actions):\n                external = external or at",
        tests=(FIRST_FOREIGN,),
    ),
    Mutation(
        name="files that somebody removed whole are no external write",
        file=COMMITS,
        old="""for kind in ("add", "remove") if kind in action\n    )""",
        new="""for kind in ("add",) if kind in action\n    )""",
        tests=(FIRST_FOREIGN,),
    ),
    Mutation(
        name="commits of a table that was copied are its copy's",
        file=COMMITS,
        old="""    if not found or found.get("target") != target:\n""",
        new="    if not found:\n",
        tests=(f"{REAL}::test_commits_for_another_table_are_not_ours",),
    ),
    Mutation(
        name="the clock of a client counts for more than Delta's own times",
        file=COMMITS,
        old="""info.get("inCommitTimestamp") or info.get("timestamp")""",
        new="""info.get("timestamp") or info.get("inCommitTimestamp")""",
        tests=(f"{REAL}::test_a_time_of_commit_that_delta_vouches_for_is_taken_before_that_of_a_clients_clock",),
    ),
    Mutation(
        name="epochs of an earlier life count as this one's",
        file=DELTA,
        old="if record.incarnation != incarnation or record.epoch < since:",
        new="if record.epoch < since:",
        tests=(LIFE,),
    ),
    Mutation(
        name="the epoch that was proved last is not checked",
        file=DELTA,
        old="if record.incarnation != incarnation or record.epoch < since:",
        new="if record.incarnation != incarnation or record.epoch <= since:",
        tests=(LIFE,),
    ),
    Mutation(
        name="the restated record of an epoch is ignored",
        file=DELTA,
        old="found.setdefault(record.epoch, record)",
        new="found[record.epoch] = record",
        tests=(LIFE,),
    ),
    Mutation(
        name="a byte of data takes a byte of memory to merge",
        file=DELTA,
        old="needed = MEMORY_OF_BYTE * (sum(each.size for each in touched)",
        new="needed = 1 * (sum(each.size for each in touched)",
        tests=(f"{REAL}::test_a_merge_is_made_in_memory_as_far_as_table_and_changes_fit",),
    ),
    Mutation(
        name="a log is kept as long as removed files are",
        file=DELTA,
        old="return retention_of(self._table.metadata().configuration)[1]",
        new="return retention_of(self._table.metadata().configuration)[0]",
        tests=(RETENTION,),
    ),
    Mutation(
        name="a delete of a missing row is inserted",
        file=DELTA,
        old="""when_not_matched_insert(values, f"s.{OPERATION} <> 'delete'")""",
        new="when_not_matched_insert(values)",
        tests=(f"{BOUNDS}::test_a_delete_of_a_missing_key_adds_no_row",),
    ),
    Mutation(
        name="tables whose bounds need not be exact are compacted",
        file=DELTA,
        old="if looked is None or len(looked.file_uris()) < files or not are_exact(looked):",
        new="if looked is None or len(looked.file_uris()) < files:",
        tests=(f"{BOUNDS}::test_files_are_not_compacted_while_the_table_asks_for_other_bounds_than_exact_ones",),
    ),
    Mutation(
        name="a table that claims exact bounds is trusted when it is maintained",
        file=DELTA,
        old="return (thoroughly or not are_exact(self._table)) and remove_inexact(self.location)",
        new="return not are_exact(self._table) and remove_inexact(self.location)",
        tests=(f"{BOUNDS}::test_a_table_that_claims_exact_bounds_is_trusted_until_it_is_maintained",),
    ),
    Mutation(
        name="a plan that was not committed is nobody's",
        file=LEDGER,
        old="self.left_behind |= bool(listed) and listed[-1][0] > since",
        new="self.left_behind |= bool(listed) and listed[-1][0] > since + 1",
        tests=(f"{PLANS}::test_a_plan_that_was_not_committed_is_noticed_as_what_a_run_left_behind",),
    ),
    # Statistics of staged files, and sweeping
    Mutation(
        name="a row group without bounds lies between those of the others",
        file=STAGED_FILES,
        old="if bounds and len(bounded) == sum(each.num_values > 0 for each in stats):",
        new="if bounds:",
        tests=(STATED,),
    ),
    Mutation(
        name="only nulls of a file's first row group count",
        file=STAGED_FILES,
        old="nulls[name] = sum(each.null_count for each in stats)",
        new="nulls[name] = stats[0].null_count",
        tests=(STATED,),
    ),
    Mutation(
        name="a part of a struct is taken for the column of its name",
        file=STAGED_FILES,
        old="for at, path in enumerate(paths) if paths.count(path) == 1}",
        new="for at, path in enumerate(paths)}",
        tests=(STATED,),
    ),
    # What a version of an upstream changed
    Mutation(
        name="rows that maintenance moved have come",
        file=LOGGED,
        old="""return kind in action and bool(action[kind].get("dataChange", True))""",
        new="return kind in action",
        tests=(ADDED,),
    ),
    Mutation(
        name="the first of the versions that added rows is left out",
        file=UPSTREAM,
        old="for number in range(read.first, read.last + 1) for each in self._changes(number).added]",
        new="for number in range(read.first + 1, read.last + 1) for each in self._changes(number).added]",
        tests=(ADDED,),
    ),
    Mutation(
        name="a version with change files is read by what it added as well",
        file=UPSTREAM,
        old="for each in versions if not each.feed for file in each.added)",
        new="for each in versions for file in each.added)",
        tests=(CHANGE_FILES,),
    ),
    Mutation(
        name="missing change files are not noticed",
        file=LOGGED,
        old="return tuple(self.feed) or tuple(path",
        new="return tuple(path",
        tests=(MISSED,),
    ),
    Mutation(
        name="files of the table of a shallow clone are looked up in the clone",
        file="backfill_assets/adapters/delta/log_replay.py",
        old='return "://" in path or path.startswith(("file:", "/"))',
        new='return "://" in path or path.startswith("/")',
        tests=(f"{CHANGED}::test_files_of_another_table_are_not_looked_for_in_this_one",),
    ),
    Mutation(
        name="missing removed files are not noticed",
        file=LOGGED,
        old="for each in (*self.added, *self.removed) for path in each.needed)",
        new="for each in self.added for path in each.needed)",
        tests=(f"{CHANGED}::test_files_that_were_removed_whole_are_missed_when_they_are_gone",),
    ),
    Mutation(
        name="a column of an upstream may change its type",
        file=UPSTREAM,
        old="if now.get(name) != kind]",
        new="if name not in now]",
        tests=(COLUMNS,),
    ),
    Mutation(
        name="a column of an upstream may go",
        file=UPSTREAM,
        old="if now.get(name) != kind]",
        new="if now.get(name, kind) != kind]",
        tests=(COLUMNS,),
    ),
    Mutation(
        name="a feed may end where rows are not only added",
        file=UPSTREAM,
        old="""        self._check_followable(metadata.get("configuration") or {}, number)\n""",
        new="",
        tests=(f"{CHANGED}::test_a_version_that_ends_the_feed_is_refused_unless_rows_are_only_ever_added",),
    ),
    Mutation(
        name="a version has a feed if the table has one by now",
        file=UPSTREAM,
        old="""            return (described.get("configuration") or {}).get(FEED) == "true"\n""",
        new="""            return bool(self.loaded().metadata().configuration.get(FEED))\n""",
        tests=(FED,),
    ),
    Mutation(
        name="a version has a feed if the first that was looked at has one",
        file=UPSTREAM,
        old="(before := self._known.commits.get(number - 1)) is not None",
        new="(before := next(iter(self._known.commits._kept.values()), None)) is not None",
        tests=(FED,),
    ),
    Mutation(
        name="a version that only hides rows of its files has changed nothing",
        file=LOGGED,
        old="rows += max(1, abs(DataFile(added[path]).deleted - DataFile(removed[path]).deleted))",
        new="rows += 0 * abs(DataFile(added[path]).deleted - DataFile(removed[path]).deleted)",
        tests=(f"{CHANGED}::test_a_version_that_only_hides_rows_of_a_file_has_changed_some",),
    ),
    Mutation(
        name="rows that are hidden count where the log does not state how many there are",
        file=UPSTREAM,
        old="return footer_rows(self.location, {file.path: file.size}) - file.deleted",
        new="return footer_rows(self.location, {file.path: file.size})",
        tests=(f"{CHANGED}::test_rows_of_a_file_are_those_that_a_reader_sees_though_the_log_does_not_state_them",),
    ),
    Mutation(
        name="what was kept of a version that the log forgot is not looked for",
        file=UPSTREAM,
        old="            kept = self.kept(number)\n",
        new="            kept = None\n",
        tests=(f"{CHANGED}::test_a_version_that_the_log_forgot_is_known_by_what_was_kept_of_it",),
    ),
    Mutation(
        name="a log that was recreated is followed from where the old one was",
        file="backfill_assets/adapters/storage/warehouse.py",
        old="self._commit(known[0]) != known:",
        new="self._commit(known[0]) is None:",
        tests=(f"{CHANGED}::test_a_log_that_was_recreated_is_not_followed_from_where_the_old_one_was",),
    ),
    # Ledger and leases
    Mutation(
        name="the plan of an epoch is that of the next one",
        file=LEDGER,
        old="            if epoch <= until\n",
        new="            if epoch <= until + 1\n",
        tests=(f"{PLANS}::test_the_requested_epochs_are_read_in_their_order",),
    ),
    Mutation(
        name="plans of the life that came after go with those of the one before",
        file=LEDGER,
        old="""self.folder.delete(self.folder.names(f"{target}/{incarnation}"))""",
        new="self.folder.delete(self.folder.names(target))",
        tests=(f"{PLANS}::test_all_plans_of_a_life_go_when_it_is_removed",),
    ),
    Mutation(
        name="a lease that nobody renews is alive",
        file=STATE,
        old="if not -MOST_AHEAD <= (now - self.renewed_at).total_seconds() <= LEASE_SECONDS:",
        new="if not self.run_id:",
        tests=(LEASES,),
    ),
    Mutation(
        name="a lease that was given back is alive",
        file=STATE,
        old='self._leases.folder.put(self._leases.name(target), b"")',
        new="pass",
        tests=(f"{STORED}::test_a_lease_is_released_by_the_run_that_has_it_and_no_other",),
    ),
    Mutation(
        name="a process that is only slow is dead",
        file=STATE,
        old="        if self.host == socket.gethostname():\n            return not self._process_runs()\n",
        new="",
        tests=(LEASES,),
    ),
    Mutation(
        name="an empty setting is taken for none",
        file=DOCUMENTS,
        old='(content != b"" or not self.empty_is_none)',
        new='content != b""',
        tests=(f"{STORED}::test_an_empty_setting_is_damaged_and_not_taken_for_none",),
    ),
    Mutation(
        name="what a list told before is believed although the store has another document",
        file=DOCUMENTS,
        old="if before.get(name, (None,))[0] == found[name])",
        new="if name in before)",
        tests=(f"{STORED}::test_what_one_list_has_told_is_asked_again_only_if_that_is_wanted",),
    ),
    Mutation(
        name="settings of an earlier layout are forgotten",
        file=STATE,
        old='("_state/controls", "_state/skips")',
        new='("_state/controls",)',
        tests=(f"{STORED}::test_settings_of_an_earlier_layout_are_refused_with_their_place",),
    ),
    # What a broker answers
    Mutation(
        name="a topic that is compacted and deleted from is not compacted",
        file=KAFKA,
        old="""compacted="compact" in policy""",
        new="""compacted=policy == "compact\"""",
        tests=(f"{OFFERS}::test_a_topic_that_is_compacted_among_other_things_is_compacted",),
    ),
    Mutation(
        name="a partition may end before it begins",
        file=KAFKA,
        old="end=max(low, end))",
        new="end=end)",
        tests=(f"{OFFERS}::test_an_end_below_the_start_is_an_empty_partition",),
    ),
    Mutation(
        name="what may be read ends where transactions that are under way do",
        file=KAFKA,
        old="                OffsetSpec.latest(),\n                isolation,",
        new="""                OffsetSpec.latest(),\n                "read_uncommitted",""",
        tests=(f"{OFFERS}::test_the_end_of_a_topic_is_that_of_its_isolation_level",),
    ),
    Mutation(
        name="a source may begin beyond what may be read",
        file=KAFKA,
        old="min(held.end, found[offer.topic, partition]) if found",
        new="found[offer.topic, partition] if found",
        tests=(AT_A_TIME,),
    ),
    Mutation(
        name="a time to begin at is requested in seconds",
        file=KAFKA,
        old="int(moment.timestamp() * 1000)",
        new="int(moment.timestamp())",
        tests=(AT_A_TIME,),
    ),
)
