"""Faults in stored documents: other formats, packed positions."""

from tests.mutations.mutation import Mutation

__all__ = ["STORED"]

DOCUMENTS = "backfill_assets/adapters/storage/documents.py"
OUTPUT = "backfill_assets/adapters/delta/output.py"
COMMITS = "backfill_assets/adapters/delta/commits.py"
PACKING = "backfill_assets/adapters/storage/packing.py"
PACKED = "tests/adapters/storage/test_packing.py"
REPLAY = "backfill_assets/adapters/delta/log_replay.py"
CARRIED = "tests/adapters/delta/test_carried_replay.py"
SAME = f"{CARRIED}::test_a_version_is_the_same_whatever_was_read_before_and_happened_to_the_log"
SINCE = f"{CARRIED}::test_only_what_came_since_is_read_and_of_a_version_far_ahead_what_came_since_its_checkpoint"
NAMED = "tests/adapters/storage/test_documents.py"
OLD = "tests/adapters/delta/test_stored_format.py"
BEGUN = f"{OLD}::test_a_new_life_begins_on_such_a_table_and_uses_up_the_numbers_of_the_old_one"
RELEASES = "tests/app/test_other_releases.py"
TOLD = f"{RELEASES}::test_every_command_reports_it_and_none_changes_it"
TICKS = f"{RELEASES}::test_ticks_and_checks_of_dagster_say_so_and_go_on_with_the_others"
SETTING = f"{RELEASES}::test_a_setting_of_another_release_is_named_and_delays_no_other_table"

STORED: tuple[Mutation, ...] = (
    Mutation(
        name="what a newer release stored is read as if it were ours",
        file=DOCUMENTS,
        old="found == self.format:",
        new="found >= self.format:",
        tests=(NAMED,),
    ),
    Mutation(
        name="a document without a format is read as if it were ours",
        file=DOCUMENTS,
        old="""document.get("format") if""",
        new="""document.get("format", self.format) if""",
        tests=(NAMED,),
    ),
    Mutation(
        name="of a damaged document pydantic tells what is wrong",
        file=DOCUMENTS,
        old="except (ValueError, KeyError, TypeError, RecursionError) as error:",
        new="except AttributeError as error:",
        tests=(NAMED,),
    ),
    Mutation(
        name="a table of another release cannot be reset",
        file=OUTPUT,
        old="        except StoredFormatError:\n            assert",
        new="        except AssertionError:\n            assert",
        tests=(BEGUN,),
    ),
    Mutation(
        name="a late merge of another release can join the life after it",
        file="backfill_assets/adapters/delta/epochs_in_log.py",
        old="self.life = self.life if ours is None else ours.incarnation",
        new="pass",
        tests=(BEGUN,),
    ),
    Mutation(
        name="reports fail on what another release committed before",
        file=COMMITS,
        old="        except StoredFormatError:\n            return",
        new="        except AssertionError:\n            return",
        tests=(BEGUN,),
    ),
    Mutation(
        name="what another release committed is swept",
        file=COMMITS,
        old="""            return StagedFolder(incarnation=incarnation, epoch=epoch, attempt=attempt)""",
        new="""            return None if found.get("format") == 1 else StagedFolder(
                incarnation=incarnation, epoch=epoch, attempt=attempt
            )""",
        tests=(f"{OLD}::test_the_change_feed_of_such_a_commit_is_never_swept",),
    ),
    Mutation(
        name="a table of another release cannot be dropped",
        file="backfill_assets/app/lifecycle.py",
        old="    except StoredFormatError:\n        return",
        new="    except AssertionError:\n        return",
        tests=(f"{RELEASES}::test_it_can_be_dropped_completely",),
    ),
    Mutation(
        name="status fails on a table of another release",
        file="backfill_assets/app/status.py",
        old="""    except BackfillError as error:
        known = Status(""",
        new="""    except EnvironmentError as error:
        known = Status(""",
        tests=(TOLD,),
    ),
    Mutation(
        name="a lease of another release fails the sensor that looks for dead runs",
        file="backfill_assets/defs/dead_runs.py",
        old="with suppress(StoredFormatError):",
        new="with suppress(AssertionError):",
        tests=(TICKS,),
    ),
    Mutation(
        name="settings of another release outlive a reset",
        file="backfill_assets/adapters/state/table_documents.py",
        old="        self.folder.delete(found)\n",
        new="",
        tests=(SETTING,),
    ),
    Mutation(
        name="checking whether a lease exists reads it",
        file="backfill_assets/adapters/state/table_documents.py",
        old="        return target in self.contents\n",
        new="        return super().__contains__(target)\n",
        tests=(TICKS,),
    ),
    # Packed positions
    Mutation(
        name="a map that people could read is packed",
        file=PACKING,
        old="if len(value) > READABLE_ENTRIES and",
        new="if len(value) >= READABLE_ENTRIES and",
        tests=(f"{PACKED}::test_a_short_map_is_not_packed",),
    ),
    Mutation(
        name="repeated values of a plan are stored twice",
        file=PACKING,
        old="return min([None, *alike], key",
        new="return min([None], key",
        tests=(f"{PACKED}::test_a_plan_of_ten_thousand_partitions_stores_repeated_values_once",),
    ),
    Mutation(
        name="objects lose the order of their fields when they are packed",
        file=PACKING,
        old="isinstance(row, dict) and list(row) == first for row",
        new="isinstance(row, dict) and set(row) == set(first) for row",
        tests=(f"{PACKED}::test_objects_keep_the_order_of_their_fields",),
    ),
    Mutation(
        name="keys that are not spelt as numbers are packed as if they were",
        file=PACKING,
        old="return len(key) < _MAX_DIGITS and key.isascii() and key.isdigit() and str(int(key)) == key",
        new="return key.isdigit()",
        tests=(f"{PACKED}::test_keys_that_are_no_plain_numbers_come_back_as_they_were",),
    ),
    Mutation(
        name="truth values come back as numbers",
        file=PACKING,
        old="if not all(type(each) is int for each in values):",
        new="if not all(isinstance(each, int) for each in values):",
        tests=(f"{PACKED}::test_truth_values_are_no_numbers",),
    ),
    Mutation(
        name="of damaged compression zlib tells what is wrong",
        file=PACKING,
        old="AttributeError, zlib.error) as error",
        new="AttributeError) as error",
        tests=(f"{PACKED}::test_what_is_packed_wrongly_is_refused_like_any_damaged_document",),
    ),
    Mutation(
        name="a packed map with fewer values than keys is cut short",
        file=PACKING,
        old="maps.append(dict(zip(names, rows, strict=True)))",
        new="maps.append(dict(zip(names, rows, strict=False)))",
        tests=(f"{PACKED}::test_what_is_packed_wrongly_is_refused_like_any_damaged_document",),
    ),
    # What is derived from earlier versions, and what a run without end keeps
    Mutation(
        name="a version of a recreated log is derived from the old one",
        file=REPLAY,
        old="return found if log.commit_mark(self._at) == self._mark else None",
        new="return found",
        tests=(SAME,),
    ),
    Mutation(
        name="an older version is what a newer one was",
        file=REPLAY,
        old="not 0 <= number - self._at <= MAX_COMMITS_AHEAD",
        new="number - self._at > MAX_COMMITS_AHEAD",
        tests=(SAME,),
    ),
    Mutation(
        name="what was read of two logs at once is carried forward",
        file=REPLAY,
        old="self._mark = mark if log.commit_mark(number) == mark else None",
        new="self._mark = self.location.commit_mark(number)",
        tests=(f"{CARRIED}::test_a_version_read_while_the_log_was_recreated_is_not_kept",),
    ),
    Mutation(
        name="every version is replayed from the beginning",
        file=REPLAY,
        old="        commits = self._since(log, number)\n",
        new="        commits = None\n",
        tests=(SINCE,),
    ),
    Mutation(
        name="a version far ahead is read commit by commit",
        file=REPLAY,
        old="not 0 <= number - self._at <= MAX_COMMITS_AHEAD",
        new="not 0 <= number - self._at",
        tests=(SINCE,),
    ),
    Mutation(
        name="a sweep reads the whole log though the table names all files",
        file="backfill_assets/adapters/delta/staging.py",
        old="if names.issuperset(each.name for each in folders):",
        new="if not names:",
        tests=(f"{OLD}::test_no_more_of_a_log_is_read_than_is_needed_to_identify_folders",),
    ),
    Mutation(
        name="what a run keeps of its upstreams has no bound",
        file="backfill_assets/adapters/storage/lru.py",
        old="while len(self._kept) > self.most:",
        new="while False:",
        tests=(f"{CARRIED}::test_what_a_run_keeps_of_a_table_is_bounded_and_the_pinned_version_in_use_stays",),
    ),
    Mutation(
        name="the pinned version goes before those that nobody uses",
        file="backfill_assets/adapters/storage/lru.py",
        old="value = self._kept.pop(key) if key in self._kept else make()",
        new="value = self._kept[key] if key in self._kept else make()",
        tests=(f"{CARRIED}::test_what_a_run_keeps_of_a_table_is_bounded_and_the_pinned_version_in_use_stays",),
    ),
    Mutation(
        name="a run remembers all epochs that it ever planned",
        file="backfill_assets/adapters/state/ledger.py",
        old="if key[:2] != (target, incarnation)}",
        new="if key[2] != since}",
        tests=(
            "tests/adapters/state/test_ledger.py::"
            "test_a_run_without_end_remembers_no_more_of_its_plans_than_of_the_epochs_at_work",
        ),
    ),
    Mutation(
        name="rows that were taken back are remembered for ever",
        file="backfill_assets/adapters/state/table_documents.py",
        old="{name: self._known.pop(name) for",
        new="{name: self._known[name] for",
        tests=("tests/adapters/state/test_state_store.py::test_each_row_that_is_left_out_is_a_document_of_its_own",),
    ),
    Mutation(
        name="a run keeps all its epochs",
        file="backfill_assets/core/epoch/run.py",
        old="[*self.epochs, record][-KEPT_EPOCHS:]",
        new="[*self.epochs, record]",
        tests=(
            "tests/core/epoch/test_run_report.py::test_a_run_without_end_keeps_its_newest_epochs_and_what_all_come_to",
        ),
    ),
)
