"""Faults in what is told of an account on Azure, and of Google: to delta-rs, to Spark, and to whoever looks at Spark's
settings."""

from tests.mutations.mutation import Mutation

__all__ = ["AZURE"]

TOLD = "backfill_assets/adapters/storage/azure.py"
LOCATED = "backfill_assets/adapters/storage/upstream_location.py"
PROVED = "tests/adapters/storage/test_azure.py"
PLACED = "tests/adapters/storage/test_upstream_location.py"
GOOGLE = "tests/adapters/storage/test_google.py"
LOGIN = f"{PROVED}::test_each_login_is_told_to_both_sides"
EMULATOR = f"{PROVED}::test_an_emulator_on_this_machine_is_told_to_both_sides"
ALIKE = f"{PROVED}::test_what_both_sides_would_not_understand_alike_is_refused"
HIDDEN = f"{PROVED}::test_a_key_of_an_account_is_secret_also_where_spark_shows_settings"

AZURE: tuple[Mutation, ...] = (
    Mutation(
        name="Spark is told a login for all accounts",
        file=TOLD,
        old='settings = {f"{name}.{access.host}": value',
        new="settings = {name: value",
        tests=(LOGIN,),
    ),
    Mutation(
        name="Spark may speak to an account without TLS",
        file=TOLD,
        old='return {**settings, "fs.azure.always.use.https": "true"}',
        new="return settings",
        tests=(LOGIN,),
    ),
    Mutation(
        name="Spark shows the key of an account",
        file="backfill_assets/adapters/runtime/session_settings.py",
        old=r"(?i)url|^fs\.azure\..*(key|secret|token)",
        new="(?i)url",
        tests=(HIDDEN,),
    ),
    Mutation(
        name="the key of an account is shown in errors",
        file="backfill_assets/adapters/storage/store_errors.py",
        old="return name.lower().endswith(_SECRETS) or _OF_ACCOUNTS.search(name.lower()) is not None",
        new="return name.lower().endswith(_SECRETS)",
        tests=(HIDDEN,),
    ),
    Mutation(
        name="of two ways to log in delta-rs takes one and Spark another",
        file=TOLD,
        old="    if len(deciding) > 1:",
        new="    if len(deciding) > 2:",
        tests=(ALIKE,),
    ),
    Mutation(
        name="a part of a way to log in is taken for all of it",
        file=TOLD,
        old="if missing := [name for name in names if not options.get(name)]:",
        new="if missing := [name for name in names[:1] if not options.get(name)]:",
        tests=(ALIKE,),
    ),
    Mutation(
        name="the key of one account is used for another",
        file=TOLD,
        old="        if options.get(name, expected) != expected:",
        new='        if name == "container_name" and options.get(name, expected) != expected:',
        tests=(ALIKE, f"{PLACED}::test_a_table_of_another_account_needs_storage_of_its_own"),
    ),
    Mutation(
        name="a table of another account is reached as the warehouse is",
        file=LOCATED,
        old="            return options_of_delta(uri, warehouse.storage_options, {})",
        new="            return warehouse.storage_options",
        tests=(f"{PLACED}::test_a_table_of_another_account_needs_storage_of_its_own",),
    ),
    Mutation(
        name="two containers of an account are taken for two stores",
        file="backfill_assets/declare/stores.py",
        old="""urlsplit(uri).netloc.rpartition('@')[2]""",
        new="""urlsplit(uri).netloc""",
        tests=("tests/declare/test_stores.py::test_one_account_on_azure_is_reached_in_one_way",),
    ),
    Mutation(
        name="keys are sent to an emulator on another machine",
        file=TOLD,
        old='if urlsplit(endpoint).scheme != "http" or not is_loopback(endpoint):',
        new='if urlsplit(endpoint).scheme != "http":',
        tests=(f"{PROVED}::test_another_endpoint_is_refused_as_spark_cannot_be_told_of_it",),
    ),
    Mutation(
        name="Spark is to speak to an emulator with TLS, and never does",
        file=TOLD,
        old='    if not uri.startswith("abfs://"):',
        new='    if not uri.startswith("abfs"):',
        tests=(EMULATOR,),
    ),
    Mutation(
        name="Spark asks Azure for what delta-rs wrote into an emulator",
        file=TOLD,
        old='        "fs.azure.abfs.endpoint": urlsplit(access.endpoint).netloc,\n',
        new="",
        tests=(EMULATOR,),
    ),
    Mutation(
        name="addresses are taken that Spark does not know",
        file="backfill_assets/declare/stores.py",
        old='(parts.scheme in {"abfs", "abfss"} and all(parts.netloc.partition("@")))',
        new='all(parts.netloc.partition("@"))',
        tests=(f"{PROVED}::test_an_address_that_spark_takes_for_another_or_none_is_refused",),
    ),
    Mutation(
        name="entries of a log on Azure are read again and again, as their tags have quotes",
        file="backfill_assets/adapters/storage/object_store.py",
        old="""return None if told is None else told.strip('"')""",
        new="return told",
        tests=("tests/adapters/storage/test_put_files.py::test_a_tag_is_the_same_with_and_without_quotes",),
    ),
    Mutation(
        name="Spark is not told of a file with keys of Google",
        file="backfill_assets/adapters/storage/google.py",
        old="    return {**_CONNECTOR, **keys}",
        new="    return dict(_CONNECTOR)",
        tests=(f"{GOOGLE}::test_spark_is_told_of_a_file_with_keys_and_finds_others_for_itself",),
    ),
    Mutation(
        name="Google's connector gets Hadoop's sizes with units",
        file="backfill_assets/adapters/storage/google.py",
        old="str(64 * 2**20)",
        new='"64m"',
        tests=(f"{GOOGLE}::test_spark_is_told_of_a_file_with_keys_and_finds_others_for_itself",),
    ),
    Mutation(
        name="of two keys of Google delta-rs takes one and Spark another",
        file="backfill_assets/adapters/storage/google.py",
        old="    if len(named) > 1:",
        new="    if len(named) > 2:",
        tests=(f"{GOOGLE}::test_what_both_sides_would_not_understand_alike_is_refused",),
    ),
    Mutation(
        name="rows for Google go to an emulator on another machine",
        file="backfill_assets/adapters/storage/google.py",
        old="or not is_loopback(emulator)):",
        new="and not is_loopback(emulator)):",
        tests=(f"{GOOGLE}::test_an_emulator_elsewhere_is_refused",),
    ),
    Mutation(
        name="Spark has no connector for Azure",
        file="backfill_assets/adapters/runtime/jars.py",
        old='    "azure": _Download(',
        new='    "adl": _Download(',
        tests=(
            "tests/adapters/runtime/test_spark_conf.py::test_connectors_are_there_for_the_stores_that_are_read_alone",
        ),
    ),
    Mutation(
        name="marks of folders on Azure stay",
        file="backfill_assets/adapters/storage/markers.py",
        old='{"s3": _delete_root, "azure": _delete_object}',
        new='{"s3": _delete_root}',
        tests=("tests/adapters/storage/test_markers.py::test_on_azure_a_mark_is_an_object_of_the_folders_name",),
    ),
    Mutation(
        name="a list begins at its beginning where the store does not know where to begin",
        file="backfill_assets/adapters/storage/object_store.py",
        old=" if after is None or path > after}",
        new="}",
        tests=(
            "tests/adapters/storage/test_put_files.py::test_a_list_begins_where_it_is_to_begin_whatever_the_store_does",
        ),
    ),
    Mutation(
        name="a master key in the environment counts more",
        file="backfill_assets/adapters/storage/azure.py",
        old='    *("azure_storage_master_key", "master_key"),\n',
        new="",
        tests=(
            "tests/adapters/storage/test_azure.py::test_variables_with_which_delta_rs_would_log_in_otherwise_are_refused",
        ),
    ),
)
