"""Faults at the edges: logs that say less than usual, brokers and processes that refuse, lives that begin meanwhile."""

from typing import Final

from tests.mutations.mutation import Mutation

__all__ = ["EDGES"]

COMMITS: Final = "backfill_assets/adapters/delta/commits.py"
LESSER: Final = "tests/adapters/delta/test_lesser_logs.py"
READABLE: Final = "tests/adapters/compute/test_readable_changes.py"
SEARCH: Final = "tests/adapters/compute/test_poison_search.py"
KAFKA_LOG: Final = "backfill_assets/adapters/kafka/log.py"
BROKER: Final = "tests/adapters/kafka/test_kafka_log.py"
SELECTABLE: Final = "backfill_assets/adapters/compute/selectable_rows.py"
RELATIONAL: Final = "backfill_assets/adapters/compute/relational_changes.py"
STAGING: Final = "backfill_assets/adapters/delta/staging.py"
LIVES: Final = "tests/app/test_lives.py"
SENSORS: Final = "backfill_assets/defs/sensors.py"
TICKS: Final = "tests/defs/test_ticks.py"
DEAD: Final = "backfill_assets/defs/dead_runs.py"
RUNS: Final = "tests/defs/test_dead_runs.py"
PRINTED: Final = "tests/cli/test_printing.py"
MERGED: Final = "tests/e2e/tables/test_merged_by_spark.py"
GONE: Final = "tests/adapters/storage/test_log_that_goes.py"

EDGES: tuple[Mutation, ...] = (
    Mutation(
        name="a commit that says no time was made long ago",
        file=COMMITS,
        old="return int(file.mtime.timestamp() * 1000) if file.mtime else 0",
        new="return 0",
        tests=(f"{LESSER}::test_a_commit_that_says_no_time_was_made_when_its_entry_was_written",),
    ),
    Mutation(
        name="what others write into a commit ends the reading of a log",
        file=COMMITS,
        old="    except (ValueError, AttributeError):\n        return None\n    return found",
        new="    except ValueError:\n        return None\n    return found",
        tests=(f"{LESSER}::test_what_others_write_into_a_commit_is_no_record",),
    ),
    Mutation(
        name="a layout is committed though a table asks more of its writers",
        file="backfill_assets/adapters/delta/layout.py",
        old="    if asks_more(table) or not are_exact(table):\n        return False\n    listed",
        new="    listed",
        tests=(f"{LESSER}::test_a_layout_gives_way_to_what_a_table_asks_of_its_writers",),
    ),
    Mutation(
        name="a layout without bounds is committed",
        file="backfill_assets/adapters/delta/layout.py",
        old="    if not suit(location, table, files):\n        return False\n    removed",
        new="    removed",
        tests=(f"{LESSER}::test_a_layout_without_the_bounds_that_are_listed_is_not_committed",),
    ),
    Mutation(
        name="a merge is committed into files without bounds",
        file="backfill_assets/adapters/delta/output.py",
        old="if not self._bounds_suit(table, [*merged.files]):",
        new="if False:",
        tests=(
            "tests/adapters/delta/test_merged_files.py::"
            "test_a_merge_into_files_without_bounds_is_not_committed_until_the_table_lists_none",
        ),
    ),
    Mutation(
        name="a checkpoint that cannot be written fails the commit",
        file="backfill_assets/adapters/delta/merged_files.py",
        old="    except Exception as error:  # of as many",
        new="    except ZeroDivisionError as error:  # of as many",
        tests=(f"{LESSER}::test_a_checkpoint_that_cannot_be_written_stops_no_commit",),
    ),
    Mutation(
        name="staged changes are swept by a look that is overtaken",
        file=STAGING,
        old="    if merged and _is_overtaken(location, looked):\n        return []\n",
        new="",
        tests=(f"{LESSER}::test_staged_changes_are_not_swept_by_a_look_that_is_overtaken",),
    ),
    Mutation(
        name="rows that a restored version hides are counted",
        file="backfill_assets/adapters/delta/footers.py",
        old="        if kept and each.restored:\n            return None\n",
        new="",
        tests=(f"{LESSER}::test_what_a_feed_holds_of_hidden_rows_is_known_unless_a_version_was_restored",),
    ),
    Mutation(
        name="files of a version are taken in parts from the wrong place",
        file="backfill_assets/adapters/delta/log_replay.py",
        old="return _Files(self.held, self.order[at], self.added)",
        new="return _Files(self.held, self.order, self.added)",
        tests=(f"{LESSER}::test_files_of_a_version_can_be_taken_in_parts_whether_a_checkpoint_or_commits_name_them",),
    ),
    Mutation(
        name="rows that went without a feed are followed",
        file=RELATIONAL,
        old="    if any(each.deletes and not each.feed for each in commits):\n        return False\n",
        new="",
        tests=(f"{READABLE}::test_rows_that_went_without_a_feed_cannot_be_followed",),
    ),
    Mutation(
        name="files that are gone are followed",
        file=RELATIONAL,
        old="    except VersionsLostError:\n        return False\n    return True",
        new="    except VersionsLostError:\n        return True\n    return True",
        tests=(
            f"{READABLE}::test_files_that_are_gone_cannot_be_followed_nor_those_of_the_version_before_if_it_is_needed",
        ),
    ),
    Mutation(
        name="values of a key that one table does not tell are left out",
        file=RELATIONAL,
        old="    if len(columns) < len(tables):\n        return None\n",
        new="",
        tests=(f"{READABLE}::test_the_values_of_a_key_are_sought_where_all_tables_tell_them",),
    ),
    Mutation(
        name="a column of a version that is gone has no nulls",
        file="backfill_assets/adapters/compute/chosen_steps.py",
        old="        except VersionsLostError:\n            return True",
        new="        except VersionsLostError:\n            return False",
        tests=(f"{READABLE}::test_a_column_may_be_null_in_a_version_that_is_gone",),
    ),
    Mutation(
        name="partitioned files of a table without a feed are read as they are",
        file=SELECTABLE,
        old="        if not upstream.version(read.last).is_plain:",
        new="        if False:",
        tests=(f"{READABLE}::test_rows_that_a_table_without_a_feed_was_given_are_found_here_unless_it_has_partitions",),
    ),
    Mutation(
        name="a source is read from an older copy of its table",
        file="backfill_assets/adapters/compute/source_compute.py",
        old="    if table is None or table.version() < read.version:\n        raise UpstreamChangedError(",
        new="    if table is None:\n        raise UpstreamChangedError(",
        tests=(f"{READABLE}::test_a_source_whose_table_is_older_than_planned_is_refused",),
    ),
    Mutation(
        name="any number of rows is searched for those that fail",
        file="backfill_assets/adapters/compute/poison_search.py",
        old="    if rows > MAX_SEARCHED:",
        new="    if False:",
        tests=(f"{SEARCH}::test_too_many_records_or_rows_are_not_searched",),
    ),
    Mutation(
        name="an error of the world is one of values",
        file="backfill_assets/adapters/compute/poison_search.py",
        old="            return reason_of(error)\n        raise\n",
        new="            return reason_of(error)\n        return str(error)\n",
        tests=(f"{SEARCH}::test_an_error_that_is_not_about_values_ends_the_search",),
    ),
    Mutation(
        name="addresses of touched files are taken for patterns",
        file="backfill_assets/adapters/compute/merge.py",
        old="return parquet_files(self.spark, map(self.location.child, touched), schema)",
        new="return self.spark.read.schema(schema).parquet(*map(self.location.child, touched))",
        tests=(f"{MERGED}::test_only_files_with_a_touched_key_are_written_anew_and_the_feed_says_what_became_of_rows",),
    ),
    Mutation(
        name="files of a merge that hold other rows than Spark counted are committed",
        file="backfill_assets/adapters/compute/merge.py",
        old="        if found != counted:",
        new="        if False:",
        tests=(f"{MERGED}::test_files_that_do_not_hold_what_spark_counted_are_refused",),
    ),
    Mutation(
        name="the last record of a range is one beyond it",
        file=KAFKA_LOG,
        old="                return True\n            found[partition] = _record(message, offset)",
        new="                pass\n            found[partition] = _record(message, offset or 0)",
        tests=(f"{BROKER}::test_records_beyond_a_range_are_not_its_own",),
    ),
    Mutation(
        name="records beyond a range are read",
        file=KAFKA_LOG,
        old="                return True\n            found.append(_whole_record(message, offset))",
        new="                pass\n            found.append(_whole_record(message, offset or 0))",
        tests=(f"{BROKER}::test_records_beyond_a_range_are_not_its_own",),
    ),
    Mutation(
        name="a partition that is not ready is an error",
        file=KAFKA_LOG,
        old="if error.args[0].code() != KafkaError._STATE or time.monotonic() > deadline:",
        new="if True:",
        tests=(f"{BROKER}::test_a_partition_that_is_not_ready_is_asked_again",),
    ),
    Mutation(
        name="a right that is lacking is waited for",
        file=KAFKA_LOG,
        old="if error is not None and error.code() in _REFUSED:",
        new="if False:",
        tests=(f"{BROKER}::test_a_broker_that_refuses_is_an_error",),
    ),
    Mutation(
        name="an entry of a log that is gone is taken for an empty one",
        file="backfill_assets/adapters/storage/copied_log.py",
        old="            if (content := found[path]) is None:\n                return False\n",
        new="            if (content := found[path]) is None:\n                continue\n",
        tests=(
            f"{GONE}::test_a_log_of_which_an_entry_goes_while_it_is_copied_is_left_to_delta",
            f"{GONE}::test_a_new_entry_that_goes_while_it_is_copied_has_the_log_copied_anew",
        ),
    ),
    Mutation(
        name="a run fails as the end of a log is not kept",
        file="backfill_assets/adapters/storage/warehouse.py",
        old="            self._copy.keep()\n        except Exception as error:",
        new="            self._copy.keep()\n        except ZeroDivisionError as error:",
        tests=(f"{GONE}::test_the_end_of_a_log_is_put_once_for_a_version_and_no_run_fails_if_it_cannot_be",),
    ),
    Mutation(
        name="another life is called live",
        file="backfill_assets/app/refresh.py",
        old="    if look.life != (done.record.incarnation, True):\n        return False\n",
        new="",
        tests=(f"{LIVES}::test_only_the_life_that_a_run_has_made_live_is_called_live",),
    ),
    Mutation(
        name="a drop forgets what a life has stored that began meanwhile",
        file="backfill_assets/app/lifecycle.py",
        old="            return  # a new life has begun",
        new="            pass  # a new life has begun",
        tests=(f"{LIVES}::test_a_drop_forgets_nothing_of_a_life_that_begins_meanwhile",),
    ),
    Mutation(
        name="a run for ever reports each epoch as the first live one",
        file="backfill_assets/app/heartbeat.py",
        old="            self.endless = False\n",
        new="",
        tests=(f"{LIVES}::test_a_run_for_ever_reports_once_that_its_table_is_live",),
    ),
    Mutation(
        name="files that are gone since a pass are proved as if they were there",
        file="backfill_assets/app/proof_rows.py",
        old="                reads.tables[each.source].check_readable(each)\n",
        new="                pass\n",
        tests=(f"{LIVES}::test_where_changes_since_a_pass_cannot_be_read_everything_is_proved",),
    ),
    Mutation(
        name="a reader that cannot be read holds up others",
        file="backfill_assets/app/dependents.py",
        old="    except BackfillError:  # a problem of a reader",
        new="    except ZeroDivisionError:  # a problem of a reader",
        tests=(f"{LIVES}::test_a_reader_that_cannot_be_read_holds_nobody_up",),
    ),
    Mutation(
        name="a view that cannot be looked at prevents the refresh of its source",
        file=SENSORS,
        old="        except BackfillError:  # reported when",
        new="        except ZeroDivisionError:  # reported when",
        tests=(f"{TICKS}::test_a_view_that_cannot_be_looked_at_does_not_prevent_the_refresh_of_its_source",),
    ),
    Mutation(
        name="a store that fails ends the tick of a sensor",
        file=SENSORS,
        old="        except Exception as error:  # an error of one",
        new="        except ZeroDivisionError as error:  # an error of one",
        tests=(f"{TICKS}::test_an_error_of_one_table_is_a_reason_without_secrets",),
    ),
    Mutation(
        name="a run whose process is gone stays",
        file=DEAD,
        old="return not is_alive(Process(pid=int(pid), created=float(created)))",
        new="return False",
        tests=(f"{RUNS}::test_a_run_whose_process_is_gone_is_reported_once",),
    ),
    Mutation(
        name="a run between two steps is reported as dead",
        file=DEAD,
        old="if marked is None or now.timestamp() - float(run.tags[MARKED_TAG]) < PATIENCE_SECONDS:",
        new="if marked is None:",
        tests=(f"{RUNS}::test_others_are_left_alone",),
    ),
    Mutation(
        name="runs of other machines are reported as dead",
        file=DEAD,
        old="tags={HOST_TAG: socket.gethostname()})",
        new="tags={})",
        tests=(f"{RUNS}::test_others_are_left_alone",),
    ),
    Mutation(
        name="a job that replaced nothing is a success",
        file="backfill_assets/defs/jobs.py",
        old="        if not done.switched:",
        new="        if False:",
        tests=("tests/defs/test_jobs.py::test_a_replacement_that_has_not_caught_up_is_a_failure",),
    ),
    Mutation(
        name="values of a violation that JSON does not have hide it",
        file="backfill_assets/defs/checks.py",
        old='            return bytes(value).decode("utf-8", "backslashreplace")',
        new="            return bytes(value).decode()",
        tests=("tests/defs/test_metadata.py::test_rows_that_a_check_found_are_shown_whatever_their_values_are",),
    ),
    Mutation(
        name="what waits for others is told as at risk",
        file="backfill_assets/cli/printing.py",
        old="                if at.awaits\n",
        new="                if False\n",
        tests=(f"{PRINTED}::test_of_each_table_it_is_told_how_far_it_is_read_and_what_is_wrong",),
    ),
    Mutation(
        name="a process that does not listen lives on",
        file="backfill_assets/adapters/runtime/processes.py",
        old="                _signal(found.kill)\n",
        new="                pass\n",
        tests=("tests/adapters/runtime/test_processes.py::test_a_process_is_ended_even_if_it_does_not_listen",),
    ),
    Mutation(
        name="an interrupted download goes on",
        file="backfill_assets/adapters/runtime/jars.py",
        old="        process.kill()\n        raise\n",
        new="        raise\n",
        tests=("tests/adapters/runtime/test_java_and_jars.py::test_an_interrupted_download_leaves_no_process",),
    ),
    Mutation(
        name="a value of which a text does not tell all stays the same",
        file="backfill_assets/adapters/compute/parameter_values.py",
        old="        if before is None or before != value(one, []):",
        new="        if before != value(one, []):",
        tests=(
            "tests/e2e/tables/test_parameters.py::"
            "test_a_value_of_which_a_text_does_not_tell_all_is_taken_for_another_one",
        ),
    ),
    Mutation(
        name="what is not hashed of a history in parts is not read",
        file="backfill_assets/adapters/compute/plan_changes.py",
        old="            return reads.rows(attempt, name, LookupRead)\n        rows",
        new="            return reads.rows(attempt, name, LookupRead).limit(0)\n        rows",
        tests=(
            "tests/e2e/tables/test_hashed_history.py::"
            "test_each_part_adds_what_it_gives_and_changes_wait_until_history_is_read[beside]",
        ),
    ),
    Mutation(
        name="files of a table in a store are looked for by another root",
        file="backfill_assets/adapters/compute/merge.py",
        old="root = unquote(urlsplit(location.uri).path) if not location.is_local else location.uri",
        new="root = location.uri",
        tests=("tests/adapters/compute/test_touched_paths.py::test_paths_are_those_of_the_log_whatever_spark_writes",),
    ),
    Mutation(
        name="braces in the text of groups are names of tables",
        file="backfill_assets/adapters/sql/apply_aggregate.py",
        old="""*more).replace("{", "{{").replace("}", "}}")""",
        new="*more)",
        tests=("tests/e2e/tables/test_aggregate_views.py::test_braces_in_the_text_of_groups_are_their_authors",),
    ),
    Mutation(
        name="a text of the clock that is moved by an interval stays a text",
        file="backfill_assets/query/clock_texts.py",
        old="        if isinstance(parent, _MOVES):\n            return True\n",
        new="",
        tests=("tests/query/test_clock_texts.py::test_texts_that_may_become_times_are_refused",),
    ),
    Mutation(
        name="sums that are null once they overflow are those of any order",
        file="backfill_assets/query/determinism.py",
        old="        if overflows or _has_chance(",
        new="        if _has_chance(",
        tests=("tests/query/test_relational.py",),
    ),
    Mutation(
        name="what is made of a cast has its type",
        file="backfill_assets/query/determinism.py",
        old="and _after_brackets(argument, 1) == len(argument):",
        new="and True:",
        tests=("tests/query/test_relational.py",),
    ),
    Mutation(
        name="sums of wide decimals do not overflow",
        file="backfill_assets/query/determinism.py",
        old="(\\d|1\\d|2[0-8])(,",
        new="(\\d|1\\d|2[0-9])(,",
        tests=("tests/query/test_relational.py",),
    ),
)
