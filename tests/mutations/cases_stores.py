"""Faults in object stores: how they are declared and shown, commits that are put if absent, upstreams in other stores, stores
that cannot be read, and what S3A leaves behind."""

from tests.mutations.mutation import Mutation

__all__ = ["STORES"]

S3 = "backfill_assets/adapters/storage/s3.py"
WAREHOUSE = "backfill_assets/adapters/storage/warehouse.py"
MERGED = "backfill_assets/adapters/delta/merged_files.py"
OUTPUT = "backfill_assets/adapters/delta/output.py"
MERGE = "backfill_assets/adapters/compute/merge.py"
DECLARATION = "backfill_assets/declare/stores.py"
REACH = "backfill_assets/adapters/spark/reach.py"
REACHED = "tests/adapters/spark/test_reach.py"
DECLARED = "tests/adapters/storage/test_s3.py"
COMMITTED = "tests/adapters/delta/test_merged_files.py"
BY_SPARK = "tests/e2e/tables/test_snapshot_keys.py"
REWRITTEN = (
    f"{BY_SPARK}::test_sparks_merge_rewrites_files_with_changed_rows_alone_and_its_feed_says_what_became_of_each"
)
ON_S3 = "tests/e2e/stores/test_s3_faults.py"
STAGING = "backfill_assets/adapters/delta/staging.py"
LOCATED = "backfill_assets/adapters/storage/upstream_location.py"
PLACED = "tests/adapters/storage/test_upstream_location.py"
STORED = "tests/declare/test_stores.py"
READ = "tests/app/test_stores.py"
ERRORS = "tests/adapters/storage/test_store_errors.py"
LEFT = "tests/e2e/stores/test_s3_leftovers.py"
TABLES = "tests/adapters/delta/test_table_changes.py"

STORES: tuple[Mutation, ...] = (
    # One declaration
    Mutation(
        name="another machine is spoken to without TLS by itself",
        file=S3,
        old="    if asked or is_loopback(endpoint):",
        new="    if endpoint:",
        tests=(f"{DECLARED}::test_another_machine_is_spoken_to_without_tls_only_if_asked_for",),
    ),
    Mutation(
        name="keys of the environment are sent to Spark",
        file="backfill_assets/adapters/storage/access.py",
        old="return delta_options(declared, s3_access(declared, environment))",
        new="return delta_options({**environment, **declared}, s3_access(declared, environment))",
        tests=(f"{DECLARED}::test_keys_that_are_not_declared_are_left_to_each_sides_own_provider_chain",),
    ),
    Mutation(
        name="Spark is not told the endpoint",
        file=S3,
        old='        "endpoint": access.endpoint,\n        "endpoint.region"',
        new='        "endpoint.region"',
        tests=(f"{DECLARED}::test_a_store_at_an_endpoint_of_its_own_is_told_to_both_sides_alike",),
    ),
    Mutation(
        name="a place shows its keys",
        file=WAREHOUSE,
        old="""    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)  # they may hold secrets

    @classmethod""",
        new="""    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @classmethod""",
        tests=(f"{DECLARED}::test_keys_are_read_from_the_environment_when_they_are_used_and_shown_nowhere",),
    ),
    Mutation(
        name="what is wrong with a declaration shows its values",
        file="backfill_assets/adapters/storage/options.py",
        old="raise unusable(_reasons(error)) from None",
        new="raise unusable(str(error)) from None",
        tests=(f"{DECLARED}::test_what_cannot_work_is_refused_by_name_and_shows_no_value",),
    ),
    Mutation(
        name="one address has two spellings",
        file=DECLARATION,
        old='if uri.startswith("s3a://") else uri',
        new='if uri.startswith("s3b://") else uri',
        tests=(f"{DECLARED}::test_both_spellings_of_an_address_are_one",),
    ),
    Mutation(
        name="another store under the warehouse's name is not told",
        file=REACH,
        old="    if expected is not None and found != expected.decode().splitlines():",
        new="    if expected is not None and found is None:",
        tests=(f"{REACHED}::test_a_store_of_the_same_name_that_is_another_is_refused",),
    ),
    Mutation(
        name="what a connector says shows keys",
        file="backfill_assets/adapters/storage/store_errors.py",
        old='_SECRETS = ("key_id", "key", "secret", "token", "password", "connection_string")',
        new='_SECRETS = ("token",)',
        tests=(f"{REACHED}::test_whatever_else_a_connector_says_is_told_without_keys",),
    ),
    # Put if absent
    Mutation(
        name="a store that overwrites is taken for one that does not",
        file="backfill_assets/adapters/storage/put_if_absent.py",
        old="    if overwrites:",
        new="    if not store:",
        tests=(f"{ON_S3}::test_a_store_without_conditional_puts_is_refused_before_anything_is_written",),
    ),
    Mutation(
        name="Spark's merge is committed on the newest version there is",
        file=MERGED,
        old="    version, now = table.version() + 1, int(time.time() * 1000)",
        new="    version, now = DeltaTable(location.uri).version() + 1, int(time.time() * 1000)",
        tests=(f"{COMMITTED}::test_a_merge_is_committed_on_the_version_that_it_was_computed_on_or_not_at_all",),
    ),
    Mutation(
        name="what a merge replaces stays",
        file=MERGED,
        old="        *(_removed(path, sizes[path], now, merged.changes_data) for path in sorted(merged.removed)),\n",
        new="",
        tests=(f"{COMMITTED}::test_a_merge_is_one_commit_with_files_feed_number_and_positions",),
    ),
    Mutation(
        name="a merge has no change feed of its own",
        file=MERGED,
        old="        *map(_changed, merged.feed),\n",
        new="",
        tests=(f"{COMMITTED}::test_a_merge_is_one_commit_with_files_feed_number_and_positions",),
    ),
    Mutation(
        name="a merge carries no transaction number",
        file=MERGED,
        old="for app, number in numbers.items()),",
        new="for app, number in ()),",
        tests=(f"{COMMITTED}::test_a_merge_is_one_commit_with_files_feed_number_and_positions",),
    ),
    Mutation(
        name="only merges of delta-rs make checkpoints",
        file=MERGED,
        old="    if written:\n",
        new="    if not written:\n",
        tests=(f"{COMMITTED}::test_a_checkpoint_that_is_due_is_written_after_a_merge_too",),
    ),
    Mutation(
        name="a merge goes over features that it does not write",
        file=OUTPUT,
        old='            if self.engine(staged) == "spark":',
        new='            if self.engine(staged) == "pyspark":',
        tests=(f"{COMMITTED}::test_a_table_that_asks_more_of_its_writers_is_refused_by_name",),
    ),
    Mutation(
        name="features that are listed and not used are refused",
        file=MERGED,
        old="    return begins is not None and all(",
        new="    return not found and all(",
        tests=(f"{COMMITTED}::test_features_that_are_listed_and_not_used_forbid_nothing",),
    ),
    Mutation(
        name="rows that a merge replaces are kept in the new files",
        file=MERGE,
        old='self._joined(rows, self._changes, "left_anti").select',
        new="rows.select",
        tests=(REWRITTEN,),
    ),
    Mutation(
        name="a merge rewrites all files",
        file=MERGE,
        old='self._joined(named, self._changes, "left_semi").select(FILE)',
        new="named.select(FILE)",
        tests=(REWRITTEN,),
    ),
    Mutation(
        name="rows that are replaced come to the feed as inserts",
        file=MERGE,
        old='(self._joined(written, rows, "left_anti"), "insert")',
        new='(written, "insert")',
        tests=(REWRITTEN,),
    ),
    Mutation(
        name="a declared time has no unit",
        file="backfill_assets/adapters/storage/options.py",
        old='f"{value}s" if name in _SECONDS',
        new='f"{value}" if name in _SECONDS',
        tests=(
            "tests/adapters/storage/test_storage_options.py"
            "::test_every_field_that_may_be_declared_of_s3_is_taken_by_the_client_of_small_objects",
        ),
    ),
    # Upstreams in other stores
    Mutation(
        name="an upstream's own storage is not used",
        file=LOCATED,
        old="table.storage or {",
        new="{",
        tests=(f"{PLACED}::test_a_table_with_storage_of_its_own_is_reached_with_it_by_both_sides",),
    ),
    Mutation(
        name="keys of the warehouse are used for other stores",
        file=S3,
        old="{name: value for name, value in _DEFAULTS.items() if name in others}",
        new="{}",
        tests=(f"{PLACED}::test_what_the_warehouse_is_told_counts_for_no_other_store",),
    ),
    Mutation(
        name="two upstreams reach one bucket in two ways",
        file=DECLARATION,
        old="        if other.storage != table.storage:",
        new="        if other.path != table.path:",
        tests=(
            f"{STORED}::test_one_bucket_is_reached_in_one_way",
            f"{STORED}::test_other_buckets_and_other_folders_have_ways_of_their_own",
        ),
    ),
    Mutation(
        name="an upstream reaches the warehouse's bucket in another way",
        file=LOCATED,
        old="        if not place.is_local and options != warehouse.storage_options:",
        new="        if place.is_local and options != warehouse.storage_options:",
        tests=(f"{PLACED}::test_the_bucket_of_the_warehouse_is_reached_in_one_way",),
    ),
    Mutation(
        name="a declared table shows its keys",
        file="backfill_assets/declare/model.py",
        old="storage: Mapping[str, str] | None = field(default=None, repr=False)",
        new="storage: Mapping[str, str] | None = field(default=None)",
        tests=(f"{STORED}::test_no_secret_is_shown_by_a_declaration_or_by_what_dagster_is_told",),
    ),
    Mutation(
        name="what is no text is shown where storage is refused",
        file=DECLARATION,
        old="is of type {type(value).__name__}, expected text",
        new="is {value!r}, expected text",
        tests=(f"{STORED}::test_what_cannot_reach_the_table_is_refused_by_name_and_shows_no_value",),
    ),
    Mutation(
        name="another store with a bucket of an upstream's name is not told",
        file=REACH,
        old="    if expected is not None and found != hashlib.sha256(expected).hexdigest():",
        new="    if expected is not None and found is None:",
        tests=(f"{REACHED}::test_another_store_with_a_bucket_of_that_name_is_refused",),
    ),
    Mutation(
        name="a bucket that was not reached counts as reached",
        file="backfill_assets/adapters/spark/reaching_runner.py",
        old="                    reach_table(session, table)\n                    self._runner.stores.add(table.store)",
        new="                    self._runner.stores.add(table.store)\n                    reach_table(session, table)",
        tests=(f"{REACHED}::test_a_store_that_is_not_reached_stops_the_views_that_read_from_it_and_no_others",),
    ),
    Mutation(
        name="Spark has no connector for upstreams on S3 beside a local warehouse",
        file="backfill_assets/app/workspace.py",
        old="stores=self.registry.stores",
        new="stores=()",
        tests=(f"{READ}::test_spark_gets_the_connector_of_stores_that_views_read_from",),
    ),
    # Stores that cannot be read
    Mutation(
        name="a store that cannot be read is asked again and again",
        file="backfill_assets/adapters/storage/asked_stores.py",
        old="            if folder.uri not in self._answers:",
        new="            if True:",
        tests=(f"{ERRORS}::test_a_store_is_asked_once_for_a_run_and_each_folder_of_it_for_itself",),
    ),
    Mutation(
        name="what delta-rs says of a store comes as it is",
        file=WAREHOUSE,
        old="""        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:""",
        new="""        except TableNotFoundError:
            return None
        except AssertionError as error:""",
        tests=(f"{ERRORS}::test_whatever_is_read_first_gives_the_error_of_this_package",),
    ),
    Mutation(
        name="what a store's client says of an object comes as it is",
        file="backfill_assets/adapters/storage/object_store.py",
        old="""        except (BaseError, OSError) as error:
            raise cannot_be_read""",
        new="""        except OSError as error:
            raise cannot_be_read""",
        tests=(f"{ERRORS}::test_whatever_is_read_first_gives_the_error_of_this_package",),
    ),
    Mutation(
        name="what a store says of an object that it refuses comes as it is",
        file="backfill_assets/adapters/storage/object_store.py",
        old="""        except (BaseError, OSError) as error:
            raise cannot_be_written""",
        new="""        except OSError as error:
            raise cannot_be_written""",
        tests=(f"{ERRORS}::test_whatever_is_written_first_gives_the_error_of_this_package",),
    ),
    Mutation(
        name="a plan that the store refuses is an error of its client",
        file="backfill_assets/adapters/state/ledger.py",
        old="        if stored is None and fault is not None:",
        new="        if fault is not None:\n            raise fault\n        if stored is None and fault is not None:",
        tests=(
            "tests/adapters/state/test_ledger.py::"
            "test_a_plan_that_was_not_written_is_an_error_and_one_that_a_rival_wrote_is_lost",
        ),
    ),
    Mutation(
        name="an upstream's store is not asked before delta-rs reads it",
        file=LOCATED,
        old='        self.asked.check(f"table {self.name!r}", self.objects())\n',
        new="",
        tests=(f"{ERRORS}::test_a_table_elsewhere_is_named_and_its_store_asked_before_delta_rs_reads_it",),
    ),
    Mutation(
        name="status does not ask the store",
        file="backfill_assets/app/status.py",
        old="    workspace.prepare_to_read()\n",
        new="",
        tests=(f"{READ}::test_a_warehouse_that_cannot_be_read_is_one_error_after_one_request",),
    ),
    Mutation(
        name="a view whose store does not answer needs nothing of the tables that it reads",
        file="backfill_assets/app/dependents.py",
        old="    except EnvironmentSetupError:\n        raise\n",
        new="",
        tests=(f"{READ}::test_a_view_whose_table_cannot_be_read_may_need_anything_of_a_table_that_can_be",),
    ),
    Mutation(
        name="a log that delta-rs cannot read is not refused by name",
        file="backfill_assets/adapters/delta/upstream.py",
        old="        except DeltaError as error:\n            raise UpstreamRefusedError(",
        new="        except AssertionError as error:\n            raise UpstreamRefusedError(",
        tests=(f"{TABLES}::test_a_log_that_delta_rs_cannot_read_is_refused_by_name",),
    ),
    Mutation(
        name="a missing file of hidden rows is not noticed",
        file="backfill_assets/adapters/delta/log_replay.py",
        old="return (self.path,) if hidden is None else (self.path, hidden)",
        new="return (self.path,) if hidden is None else (self.path,)",
        tests=(f"{TABLES}::test_a_file_of_hidden_rows_that_is_gone_is_missed_like_a_data_file",),
    ),
    # What S3A leaves behind
    Mutation(
        name="a swept folder comes back by its marks",
        file="backfill_assets/adapters/storage/markers.py",
        old="    delete_markers(folder, [*empty, of] if is_azure and of else empty)\n",
        new="",
        tests=(f"{LEFT}::test_an_uncommitted_folder_goes_with_its_marks_and_does_not_come_back",),
    ),
    Mutation(
        name="marks of folders stay",
        file=STAGING,
        old="*delete_markers(folder, found.markers)",
        new="*found.markers",
        tests=(f"{LEFT}::test_marks_of_folders_are_swept_but_for_those_of_an_epoch_in_progress",),
    ),
    Mutation(
        name="what an epoch in progress writes is swept",
        file="backfill_assets/core/epoch/staged_folders.py",
        old="        if staged is not None and not may_go(staged):",
        new="        if staged is None and path is None:",
        tests=(
            "tests/core/epoch/test_staged_folders.py"
            "::test_nothing_in_the_folder_of_an_epoch_that_may_be_in_progress_is_left_behind",
        ),
    ),
    Mutation(
        name="a marker is asked for beside its folder",
        file="backfill_assets/adapters/storage/markers.py",
        old="{quote(f'{prefix}/{path}'.strip('/'))}",
        new="{quote(path)}",
        tests=(
            "tests/adapters/storage/test_markers.py::test_a_marker_is_the_root_of_a_store_whose_address_is_the_folder",
        ),
    ),
    Mutation(
        name="rows are added directly, whatever a table asks of its writers",
        file="backfill_assets/adapters/delta/output.py",
        old="if (anew or not (named or staged.replaces)) and not asks_more(table):",
        new="if anew or not (named or staged.replaces):",
        tests=(
            "tests/adapters/delta/test_real_commits.py::"
            "test_rows_are_added_by_delta_rs_where_a_table_asks_more_of_its_writers",
        ),
    ),
    Mutation(
        name="each epoch that adds rows has delta-rs load the log again",
        file="backfill_assets/adapters/delta/output.py",
        old="if (anew or not (named or staged.replaces)) and not asks_more(table):",
        new="if False:",
        tests=("tests/e2e/stores/test_s3_faults.py::test_an_epoch_that_only_adds_rows_is_committed_by_one_request",),
    ),
)
