"""Faults in object stores: how they are declared, what is shown of it, and commits that are put if they are absent."""

from tests.mutations.mutation import Mutation

__all__ = ["STORES"]

S3 = "backfill_assets/adapters/storage/s3.py"
WAREHOUSE = "backfill_assets/adapters/storage/warehouse.py"
MERGED = "backfill_assets/adapters/delta/merged_files.py"
OUTPUT = "backfill_assets/adapters/delta/output.py"
MERGE = "backfill_assets/adapters/compute/merge.py"
REACH = "backfill_assets/adapters/spark/reach.py"
REACHED = "tests/adapters/spark/test_reach.py"
DECLARED = "tests/adapters/storage/test_s3.py"
COMMITTED = "tests/adapters/delta/test_merged_files.py"
BY_SPARK = "tests/e2e/tables/test_snapshot_keys.py"
REWRITTEN = (
    f"{BY_SPARK}::test_sparks_merge_rewrites_files_with_changed_rows_alone_and_its_feed_says_what_became_of_each"
)
ON_S3 = "tests/e2e/stores/test_s3_faults.py"

STORES: tuple[Mutation, ...] = (
    # One declaration
    Mutation(
        name="another machine is spoken to without TLS by itself",
        file=S3,
        old="    if asked or urlsplit(endpoint).hostname in _LOOPBACK:",
        new="    if endpoint:",
        tests=(f"{DECLARED}::test_another_machine_is_spoken_to_without_tls_only_if_asked_for",),
    ),
    Mutation(
        name="keys of the environment are sent to Spark",
        file="backfill_assets/adapters/storage/options.py",
        old="return delta_options(options, s3_access(options, os.environ))",
        new="return delta_options({**os.environ, **options}, s3_access(options, os.environ))",
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
        old="raise _refused(_reasons(error)) from None",
        new="raise _refused(str(error)) from None",
        tests=(f"{DECLARED}::test_what_cannot_work_is_refused_by_name_and_shows_no_value",),
    ),
    Mutation(
        name="one address has two spellings",
        file=S3,
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
        file=REACH,
        old='_SECRET = ("access.key", "secret.key", "session.token")',
        new='_SECRET = ("session.token",)',
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
        old="        *(_removed(path, sizes[path], now) for path in sorted(merged.removed)),\n",
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
        old='self._joined(named, self._changes, "left_semi").select(_FILE)',
        new="named.select(_FILE)",
        tests=(REWRITTEN,),
    ),
    Mutation(
        name="rows that are replaced come to the feed as inserts",
        file=MERGE,
        old='(self._joined(written, rows, "left_anti"), "insert")',
        new='(written, "insert")',
        tests=(REWRITTEN,),
    ),
)
