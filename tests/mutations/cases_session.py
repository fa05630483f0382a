"""Faults in a Spark session and in who may use one: its settings, its token, its secrets."""

from tests.mutations.mutation import Mutation

__all__ = ["SESSION"]

SETTINGS = "backfill_assets/adapters/runtime/session_settings.py"
SESSIONS = "backfill_assets/adapters/spark/session.py"
SERVER = "backfill_assets/adapters/local/spark_server.py"
PURE = "tests/adapters/runtime/test_session_settings.py"
HOSTILE = "tests/e2e/tables/test_hostile_session.py"
CLOSED = "tests/e2e/cli/test_closed_to_others.py"
MAINTENANCE = "tests/e2e/tables/test_aggregate_maintenance.py"

SESSION: tuple[Mutation, ...] = (
    # Settings of the session
    Mutation(
        name="Spark does not know that an input has no rows",
        file="backfill_assets/adapters/compute/no_rows.py",
        old="spark.createDataFrame([], schema).limit(0)",
        new="spark.createDataFrame([], schema)",
        tests=("tests/e2e/tables/test_no_rows.py",),
    ),
    Mutation(
        name="the session has another time zone",
        file=SETTINGS,
        old=""""spark.sql.session.timeZone": "UTC",""",
        new=""""spark.sql.session.timeZone": "America/New_York",""",
        tests=("tests/e2e/tables/test_apply.py::test_spark_computes_what_the_user_wrote",),
    ),
    Mutation(
        name="what cannot be computed becomes null",
        file=SETTINGS,
        old=""""spark.sql.ansi.enabled": "true",""",
        new=""""spark.sql.ansi.enabled": "false",""",
        tests=(
            "tests/e2e/tables/test_snapshot_refusals.py::"
            "test_what_spark_cannot_compute_is_named_and_nothing_of_it_is_committed",
            f"{MAINTENANCE}::test_a_sum_past_bigint_is_an_error_that_a_retraction_heals",
        ),
    ),
    Mutation(
        name="Delta refuses versions whose files are all there",
        file=SETTINGS,
        old="""DeletedFileRetentionDuration": "false",""",
        new="""DeletedFileRetentionDuration": "true",""",
        tests=(
            "tests/e2e/tables/test_version_rows.py::"
            "test_a_version_older_than_removed_files_are_kept_is_read_as_long_as_they_are_there",
            "tests/e2e/tables/test_snapshot.py::"
            "test_a_view_that_rested_for_weeks_reads_on_as_long_as_the_files_are_there",
        ),
    ),
    Mutation(
        name="what others have set in a session stays",
        file=SETTINGS,
        old="if name not in wanted and not is_open(name)",
        new="if name not in wanted and not is_open(name) and name in REQUIRED",
        tests=(PURE, HOSTILE),
    ),
    Mutation(
        name="corrupt and missing files may be passed over",
        file=SETTINGS,
        old=""""spark.sql.files.openCostInBytes",""",
        new=""""spark.sql.files.",""",
        tests=(PURE,),
    ),
    Mutation(
        name="any rule of adaptive execution may be left out",
        file=SETTINGS,
        old=""""spark.sql.adaptive.skewJoin.",""",
        new=""""spark.sql.adaptive.",""",
        tests=(PURE,),
    ),
    Mutation(
        name="defaults of others for tables stay",
        file=SETTINGS,
        old="""("spark.sql.", "spark.databricks.delta.", "spark.databricks.io.")""",
        new="""("spark.sql.", "spark.databricks.io.")""",
        tests=(PURE,),
    ),
    Mutation(
        name="a setting that a session holds on to is passed over",
        file=SESSIONS,
        old="    if left:\n        raise _held",
        new="    if len(left) > 9:\n        raise _held",
        tests=(
            "tests/adapters/spark/test_settled_session.py::test_what_cannot_be_changed_is_refused_with_all_names",
            f"{HOSTILE}::test_a_spark_that_others_have_started_without_delta_is_refused_by_the_names_of_what_it_lacks",
        ),
    ),
    Mutation(
        name="a session is shared with others in the process",
        file=SESSIONS,
        old="session = shared.newSession()",
        new="session = shared",
        tests=(f"{HOSTILE}::test_a_session_is_nobody_elses",),
    ),
    Mutation(
        name="users may set what results depend on",
        file="backfill_assets/adapters/spark/resource.py",
        old="        _check_config(self.config)\n",
        new="",
        tests=(PURE,),
    ),
    # Who may use a server
    Mutation(
        name="the Spark server asks for no token",
        file=SERVER,
        old=""""SPARK_CONNECT_AUTHENTICATE_TOKEN": token,""",
        new="",
        tests=(f"{CLOSED}::test_the_spark_server_serves_nobody_without_its_token",),
    ),
    Mutation(
        name="the token is among the arguments of the Spark server",
        file=SERVER,
        old=""""spark.connect.grpc.binding.address": HOST,""",
        new=""""spark.connect.grpc.binding.address": HOST, "spark.connect.authenticate.token": token,""",
        tests=(f"{CLOSED}::test_the_token_is_in_its_file_alone",),
    ),
    Mutation(
        name="the servers' settings are in a folder that Spark has among its classes",
        file="backfill_assets/adapters/local/spark_programs.py",
        old="""        "SPARK_LOCAL_IP": HOST,\n""",
        new="""        "SPARK_LOCAL_IP": HOST,\n        "SPARK_CONF_DIR": str(folder / _CONF),\n""",
        tests=("tests/e2e/cli/test_class_archive.py::test_the_servers_take_theirs_from_it_too",),
    ),
    Mutation(
        name="a server does not read its own settings",
        file=SERVER,
        old="""spark_home() / "bin" / "spark-submit"), *read]""",
        new="""spark_home() / "bin" / "spark-submit")]""",
        tests=("tests/adapters/local/test_spark_cluster.py",),
    ),
    Mutation(
        name="the secret of a cluster is among the arguments of the Spark server",
        file=SERVER,
        old="""**{name: value for name, value in settings.items() if name != SECRET},""",
        new="""**settings,""",
        tests=(
            "tests/adapters/local/test_spark_cluster.py::test_the_secret_is_in_a_file_of_its_owner_and_not_among_arguments",
        ),
    ),
    Mutation(
        name="the token is shown with the addresses",
        file="backfill_assets/adapters/local/servers.py",
        old="""spark_remote=f"sc://{at[_SPARK]}" if _SPARK in at else None,""",
        new="""spark_remote=f"sc://{at[_SPARK]}/;token={spark_token(Path.cwd())}" if _SPARK in at else None,""",
        tests=(f"{CLOSED}::test_the_token_is_in_its_file_alone",),
    ),
    Mutation(
        name="Spark's own ports take messages of strangers",
        file="backfill_assets/adapters/runtime/spark_conf.py",
        old=""""spark.authenticate": "true",""",
        new=""""spark.authenticate": "false",""",
        tests=(f"{CLOSED}::test_no_other_port_of_the_spark_server_takes_messages_from_strangers",),
    ),
    Mutation(
        name="others may enter the servers' folder",
        file="backfill_assets/adapters/runtime/private_files.py",
        old="folder.chmod(0o700)",
        new="folder.chmod(0o755)",
        tests=(CLOSED,),
    ),
    Mutation(
        name="a private file is written where others can read it",
        file="backfill_assets/adapters/runtime/private_files.py",
        old="    Path(draft).replace(path)",
        new="    Path(draft).unlink()\n    path.write_text(text)",
        tests=(f"{CLOSED}::test_a_private_file_is_never_readable_by_others_not_even_while_it_is_written",),
    ),
    Mutation(
        name="an address is shown with its token",
        file=SESSIONS,
        old="""return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}\"""",
        new="return self.url",
        tests=(PURE,),
    ),
    Mutation(
        name="secrets of Kafka show in Spark's UI and events",
        file=SETTINGS,
        old="""KAFKA_OPTIONS = r'key: "kafka""",
        new="""KAFKA_OPTIONS = r'keys: "kafka""",
        tests=(
            "tests/e2e/kafka/test_secrets.py::test_no_secret_is_shown_or_kept_by_spark[connect]",
            f"{PURE}::test_options_of_kafkas_reader_are_redacted_as_spark_connect_writes_them",
        ),
    ),
    Mutation(
        name="settings are cut at other places than where they end",
        file=SESSIONS,
        old='each.partition(" -> ") for each in text.split("\\0")',
        new='each.partition(" -> ") for each in text.split()',
        tests=(f"{HOSTILE}::test_settings_of_a_session_are_read_as_they_are",),
    ),
    Mutation(
        name="a value of config that Spark refuses is told as a setting of whoever started it",
        file="backfill_assets/adapters/spark/session.py",
        old="_refusing(name, value) if name in config else suppress(PySparkException)",
        new="suppress(PySparkException)",
        tests=(
            "tests/adapters/spark/test_settled_session.py::test_a_value_that_spark_refuses_is_told_as_one_of_config",
        ),
    ),
    Mutation(
        name="files of tasks that failed may be staged",
        file="backfill_assets/adapters/runtime/session_settings.py",
        old='    "mapreduce.fileoutputcommitter.algorithm.version": "1",\n',
        new="",
        tests=(
            "tests/adapters/runtime/test_session_settings.py::test_what_has_to_differ_from_sparks_defaults_is_pinned",
        ),
    ),
    Mutation(
        name="the list of a stream hides files",
        file="backfill_assets/adapters/runtime/session_settings.py",
        old='    "spark.sql.streaming.fileStreamSink.ignoreMetadata": "true",\n',
        new="",
        tests=(
            "tests/adapters/runtime/test_session_settings.py::test_what_has_to_differ_from_sparks_defaults_is_pinned",
        ),
    ),
    Mutation(
        name="a view that rested for a week stops",
        file="backfill_assets/adapters/runtime/session_settings.py",
        old='    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",\n',
        new="",
        tests=(
            "tests/adapters/runtime/test_session_settings.py::test_what_has_to_differ_from_sparks_defaults_is_pinned",
        ),
    ),
)
