"""Faults in what variables of the environment may do to stores, and in how errors of stores are told."""

from tests.mutations.mutation import Mutation

__all__ = ["VARIABLES"]

S3, S3_TEST = "backfill_assets/adapters/storage/s3.py", ("tests/adapters/storage/test_s3.py",)
AZURE, AZURE_TEST = "backfill_assets/adapters/storage/azure.py", ("tests/adapters/storage/test_azure.py",)
WAREHOUSE, ERRORS_TEST = (
    "backfill_assets/adapters/storage/warehouse.py",
    ("tests/adapters/storage/test_store_errors.py",),
)
GOOGLE, GOOGLE_TEST = "backfill_assets/adapters/storage/google.py", ("tests/adapters/storage/test_google.py",)
FILES = "backfill_assets/adapters/storage/store_files.py"
DEFINITIONS, UNSHOWN_TEST = "backfill_assets/defs/definitions.py", ("tests/defs/test_unshown_secrets.py",)

VARIABLES: tuple[Mutation, ...] = (
    Mutation(
        name="an endpoint of the environment counts more than the declared one",
        file=S3,
        old="        **dict.fromkeys(ENDPOINTS, access.endpoint),",
        new='        "endpoint": access.endpoint,',
        tests=S3_TEST,
    ),
    Mutation(
        name="a mark of a folder is deleted where the environment says",
        file="backfill_assets/adapters/storage/markers.py",
        old="        **dict.fromkeys(ENDPOINTS, ",
        new="        **dict.fromkeys(ENDPOINTS[:1], ",
        tests=("tests/adapters/storage/test_markers.py",),
    ),
    Mutation(
        name="the client of small objects loses the endpoint that counts",
        file="backfill_assets/adapters/storage/object_store.py",
        old="name if name in ENDPOINTS else name.lower()",
        new="name if not name else name.lower()",
        tests=S3_TEST,
    ),
    Mutation(
        name="of several endpoints in the environment the first counts",
        file=S3,
        old="in sorted(options.items()) if value",
        new="in sorted(options.items(), reverse=True) if value",
        tests=S3_TEST,
    ),
    Mutation(
        name="an endpoint keeps the slash at its end",
        file=S3,
        old='(found.get("endpoint") or "").rstrip("/") or None',
        new='found.get("endpoint") or None',
        tests=("tests/adapters/storage/test_markers.py",),
    ),
    Mutation(
        name="a variable may switch signatures off",
        file=S3,
        old='_PINNED = {"skip_signature": "false", ',
        new="_PINNED = {",
        tests=S3_TEST,
    ),
    Mutation(
        name="a variable may switch conditional puts off",
        file=S3,
        old=', "conditional_put": "etag"}',
        new="}",
        tests=S3_TEST,
    ),
    Mutation(
        name="a token is known by one name alone",
        file=S3,
        old='if _name_of(name) == "token"}',
        new='if name == "AWS_SESSION_TOKEN"}',
        tests=S3_TEST,
    ),
    Mutation(
        name="with keys of the environment any token is sent",
        file=S3,
        old='and (has_keys or "AWS_ACCESS_KEY_ID" in environment)',
        new="and has_keys",
        tests=S3_TEST,
    ),
    Mutation(
        name="what delta-rs alone takes for an endpoint is let through",
        file=S3,
        old="    if endpoint is None and found:",
        new="    if endpoint is not None and found:",
        tests=S3_TEST,
    ),
    Mutation(
        name="on Azure a token of the environment counts more than a declared key",
        file=AZURE,
        old='    "account_key": _TOKENS,',
        new='    "account_key": frozenset(),',
        tests=AZURE_TEST,
    ),
    Mutation(
        name="on Azure a token of a pod counts more than a declared signature",
        file=AZURE,
        old="_CLIENT_SECRETS | _TOKEN_FILES,",
        new="_CLIENT_SECRETS,",
        tests=AZURE_TEST,
    ),
    Mutation(
        name="on Azure a variable may switch signatures off",
        file=AZURE,
        old='{**options, "skip_signature": "false"}',
        new="{**options}",
        tests=AZURE_TEST,
    ),
    Mutation(
        name="what a store says of a list has no code",
        file=FILES,
        old="            raise cannot_be_read(",
        new="            raise type(error)(",
        tests=ERRORS_TEST,
    ),
    Mutation(
        name="what a store says of a deletion has no code",
        file=FILES,
        old="            raise cannot_be_written(",
        new="            raise type(error)(",
        tests=ERRORS_TEST,
    ),
    Mutation(
        name="a list that is cut is an error",
        file=FILES,
        old="            return retried(ask)",
        new="            return ask()",
        tests=ERRORS_TEST,
    ),
    Mutation(
        name="a checkpoint that a store does not give is damage",
        file="backfill_assets/adapters/delta/log_replay.py",
        old="            raise location.cannot_be_read(error) from None",
        new="            raise",
        tests=ERRORS_TEST,
    ),
    Mutation(
        name="what delta-rs says of a store is said of a log",
        file=WAREHOUSE,
        old="if isinstance(error, DeltaError) and not of_store(error):",
        new="if isinstance(error, DeltaError):",
        tests=ERRORS_TEST,
    ),
    Mutation(
        name="a full disk of this machine is told as a store",
        file=WAREHOUSE,
        old="error.errno is not None and not self.is_local",
        new="error.errno is None and not self.is_local",
        tests=ERRORS_TEST,
    ),
    Mutation(
        name="a warehouse may have an address that Spark takes for a pattern",
        file=WAREHOUSE,
        old='        if "://" in uri and (pattern',
        new='        if "://" not in uri and (pattern',
        tests=("tests/adapters/storage/test_upstream_location.py",),
    ),
    Mutation(
        name="a log that cannot be read ends the status of all tables",
        file="backfill_assets/app/status.py",
        old="""    except BackfillError as error:
        known = Status(""",
        new="""    except PositionsLostError as error:
        known = Status(""",
        tests=("tests/app/test_other_releases.py",),
    ),
    Mutation(
        name="Dagster shows secrets of Spark's settings",
        file=DEFINITIONS,
        old='f"config {name}": value for name, value in resource.config.items()',
        new='f"config {name}": value for name, value in {}.items()',
        tests=UNSHOWN_TEST,
    ),
    Mutation(
        name="Dagster shows passwords in addresses",
        file=DEFINITIONS,
        old="(is_secret(name) or masked(value) != value)",
        new="is_secret(name)",
        tests=UNSHOWN_TEST,
    ),
    Mutation(
        name="a value with which Spark does not start is told in its own words",
        file="backfill_assets/adapters/spark/session.py",
        old="    with _starting():\n",
        new="    if True:\n",
        tests=("tests/adapters/spark/test_settled_session.py",),
    ),
    Mutation(
        name="a secret that is a number is shown",
        file="backfill_assets/declare/stores.py",
        old="        if not isinstance(value, str | bool) and not",
        new="        if isinstance(value, str) and not",
        tests=ERRORS_TEST,
    ),
    Mutation(
        name="a variable with other keys counts beside those that are declared for Google",
        file=GOOGLE,
        old="    _check_environment(named, environment)\n",
        new="",
        tests=GOOGLE_TEST,
    ),
    Mutation(
        name="a variable with a file of keys counts beside keys that are declared for Google",
        file=GOOGLE,
        old='    "service_account_key": _FILES,',
        new='    "service_account_key": (),',
        tests=GOOGLE_TEST,
    ),
    Mutation(
        name="a variable tells one side alone of another store than Google's",
        file=GOOGLE,
        old="_base_of(environment.get(_CONTENT, ",
        new='_base_of(environment.get("", ',
        tests=GOOGLE_TEST,
    ),
    Mutation(
        name="a variable may switch signatures off for Google",
        file=GOOGLE,
        old='{**options, "skip_signature": "false"}',
        new="{**options}",
        tests=GOOGLE_TEST,
    ),
    Mutation(
        name="a store that accepts commits and keeps none is not told",
        file="backfill_assets/core/epoch/commit.py",
        old='        if errors\n        else "each time it was accepted',
        new='        if record\n        else "each time it was accepted',
        tests=("tests/core/epoch/test_protocol_cases.py",),
    ),
    Mutation(
        name="a text is encrypted by chance",
        file="backfill_assets/query/determinism.py",
        old='mode == [(TokenType.STRING, "ECB")]',
        new='mode != [(TokenType.STRING, "GCM")]',
        tests=("tests/query/test_rowwise.py",),
    ),
    Mutation(
        name="a column named ecb is taken for a mode",
        file="backfill_assets/query/determinism.py",
        old='return mode == [(TokenType.STRING, "ECB")]',
        new='return [text for _, text in mode] == ["ECB"]',
        tests=("tests/query/test_rowwise.py",),
    ),
    Mutation(
        name="a sum of hundreds of terms is nested as deep",
        file="backfill_assets/adapters/compute/staged_rows.py",
        old="_TERMS = 16",
        new="_TERMS = 10_000",
        tests=("tests/e2e/tables/test_wide_keys.py",),
    ),
    Mutation(
        name="a lack of memory is told as an error of computing",
        file="backfill_assets/adapters/compute/setup_errors.py",
        old='(r"OutOfMemoryError|Not',
        new='(r"Not',
        tests=("tests/adapters/compute/test_poison_errors.py",),
    ),
    Mutation(
        name="an error that only announces another hides it",
        file="backfill_assets/adapters/compute/spark_errors.py",
        old='announces = lines[0].rstrip().endswith(":")',
        new="announces = False",
        tests=("tests/adapters/compute/test_poison_errors.py",),
    ),
)
