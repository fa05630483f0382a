"""How Spark's errors are classified: errors about values, which occur again whenever the plan is repeated, or others."""

import pytest

from backfill_assets.adapters.compute.poison import Work, computed
from backfill_assets.adapters.compute.poison_search import Suspects
from backfill_assets.adapters.compute.spark_errors import is_of_values, reason_of
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.core.epoch.culprits import Culprit
from backfill_assets.core.epoch.skips import OffsetSkip
from backfill_assets.errors import ComputeError, EnvironmentSetupError, PoisonRowError, SparkLostError

WORK = Work(target="views/large", words="epoch 3", epoch=3)
DIVIDED = "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"
CULPRIT = Culprit(skip=OffsetSkip(source="orders", partition=0, offset=17), reason=DIVIDED)


class WrappedError(Exception):
    """An error that PySpark does not know and passes on: only its text is left."""


def runner() -> SparkRunner:
    return SparkRunner(Session)  # type: ignore[arg-type]


class Session:
    """The parts of a session that a runner needs."""

    class sparkContext:  # noqa: N801
        """The parts of a context that a runner needs."""

        @staticmethod
        def setJobGroup(*_: object, **__: object) -> None:  # noqa: N802
            """Runs nothing."""


def failing(text: str, suspects: Suspects | Exception | None = None) -> ComputeError:
    def fail(_: object) -> int:
        raise WrappedError(text)

    def search(_: object) -> Suspects:
        if isinstance(suspects, Suspects):
            return suspects
        raise suspects or AssertionError("there is nothing to search for")

    with pytest.raises(ComputeError) as caught:
        computed(runner(), WORK, fail, search)
    return caught.value


def test_changes_that_spark_does_not_read_as_columns_went_are_told_with_what_helps() -> None:
    text = "[DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA] Retrieving table changes between version 1 and 2 failed"
    assert "`backfill replace large` builds the view anew" in str(failing(text).hint)
    assert "run it again" in str(failing("[OTHER] said").hint)


@pytest.mark.parametrize("state", ["22012", "22018", "22003", "22P02", "21000", "23505", "P0001"])
def test_errors_about_values_are_recognized_by_their_sqlstate(state: str) -> None:
    assert is_of_values(WrappedError(f"[SOME] text. SQLSTATE: {state}\n\tat org.apache.spark"))


IN_TASK = "[org.apache.spark.SparkException] Job aborted due to stage failure: Task 0 in stage 5.0 failed 1 times: "


@pytest.mark.parametrize(
    "text",
    [
        "[INVALID_FORMAT.ESC_AT_THE_END] The format is invalid. SQLSTATE: 42601",
        "[COLLECTION_SIZE_LIMIT_EXCEEDED.PARAMETER] Can't create array. SQLSTATE: 54000",
        f"{IN_TASK}java.util.UnknownFormatConversionException: Conversion = 'q'",
        f"{IN_TASK}java.util.regex.PatternSyntaxException: Unclosed group near index 1",
        f"{IN_TASK}java.lang.IllegalArgumentException: requirement failed: Illegal sequence boundaries: 1 to -5 by 1",
        f"{IN_TASK}java.time.zone.ZoneRulesException: Unknown time-zone ID",
        "org.apache.spark.SparkIllegalArgumentException: Illegal sequence boundaries: 1 to -5 by 1\n"
        "\tat org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIterator.processNext(Unknown Source)",
        "Cannot create array with 2147483647 elements of data due to exceeding the limit 2147483632 elements for ArrayData.",
        f"{IN_TASK}java.lang.RuntimeException: Invalid XML document",
    ],
)
def test_errors_about_values_without_a_sqlstate_of_their_own_are_recognized_by_their_cause(text: str) -> None:
    assert is_of_values(WrappedError(text))


@pytest.mark.parametrize(
    "text",
    [
        f"{IN_TASK}java.lang.RuntimeException: s3://b/f is not a Parquet file",
        f"{IN_TASK}java.io.IOException: No space left on device",
        f"{IN_TASK}ExecutorLostFailure (executor 1 exited)",
        f"{IN_TASK}java.lang.IllegalArgumentException: Invalid file. SQLSTATE: KD001",
        "java.lang.IllegalArgumentException: Illegal pool",
        "[UNSUPPORTED_FEATURE] COLLECTION_SIZE_LIMIT_EXCEEDED. SQLSTATE: 0A000",
    ],
)
def test_other_errors_of_tasks_and_of_java_are_not_about_values(text: str) -> None:
    assert not is_of_values(WrappedError(text))


@pytest.mark.parametrize("text", ["no state", "[FAILED_READ_FILE] gone. SQLSTATE: KD001", "[X] y. SQLSTATE: 42703"])
def test_what_fails_in_the_world_may_be_right_the_next_time(text: str) -> None:
    assert not is_of_values(WrappedError(text))
    error = failing(text)
    assert not isinstance(error, PoisonRowError)
    assert "run it again" in error.hint


UNREADABLE = """An error occurred while calling o17.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 2.0 failed
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:3)
Caused by: SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file s3://b/f. SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:8)
Caused by: java.lang.RuntimeException: s3://b/f is not a Parquet file
\tat org.apache.parquet.hadoop.ParquetFileReader.readFooter(ParquetFileReader.java:6)
"""


def test_a_file_that_cannot_be_read_is_named_and_how_it_is_mended() -> None:
    error = failing(UNREADABLE)
    assert error.message.endswith(
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file s3://b/f. SQLSTATE: KD001; "
        "cause: java.lang.RuntimeException: s3://b/f is not a Parquet file"
    )
    assert "restore the file and run it again. If it is the view's own, `backfill reset large`" in error.hint


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no message"),
        ("[SOME] text\n: more", "[SOME] text"),
        ("[MANY] failures: \n    1. the first\n    2. another", "[MANY] failures: 1. the first"),
        ("Thrown in awaitResult: \n\nJVM:\n\tat x\nCaused by: some\nCaused by: Heap", "Thrown in awaitResult: Heap"),
        ("An error occurred while calling o1.x.\n: java.lang.Error: why\n\tat y", "java.lang.Error: why"),
        ("An error occurred while calling o1.x. Trace:", "An error occurred while calling o1.x. Trace:"),
    ],
)
def test_an_error_is_told_in_the_line_that_says_most(text: str, reason: str) -> None:
    assert reason_of(WrappedError(text)) == reason


def test_rows_that_are_found_are_named_with_the_command() -> None:
    error = failing(DIVIDED, Suspects(culprits=(CULPRIT, CULPRIT), complete=False))
    assert isinstance(error, PoisonRowError)
    assert error.message == (
        f"views/large: epoch 3 cannot be computed: source orders, partition 0, offset 17 (and 1 more, see below): {DIVIDED}"
    )
    assert "backfill skip large --source orders --partition 0 --offset 17\n" in error.hint
    assert "There may be more" in error.hint
    assert error.facts["rows"][0] == {
        "kind": "offset", "source": "orders", "partition": 0, "offset": 17, "reason": DIVIDED,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("suspects", "said"),
    [
        (Suspects(), "the cause is not a single row"),
        (Suspects(unnamed=("rows of table 'a'",)), "the cause is rows of table 'a'"),
        (ValueError("lost"), "the search for the rows that cause this failed"),
    ],
)
def test_where_no_row_can_be_named_the_hint_says_why(suspects: Suspects | Exception, said: str) -> None:
    error = failing(DIVIDED, suspects)
    assert isinstance(error, PoisonRowError)
    assert error.facts["rows"] == []
    assert said in error.hint
    assert "running it again will fail in the same way" in error.hint


def test_a_server_that_is_lost_during_the_search_is_not_a_failed_search() -> None:
    assert isinstance(failing(DIVIDED, SparkLostError("gone", hint="again")), SparkLostError)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafka. SQLSTATE: 42K02", "jars"),
        ("java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found", "jars"),
        ('org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "abfss"', "jars"),
        (
            "[FAILED_READ_FILE] x\nsoftware.amazon.awssdk S3Exception: (Service: S3, Status Code: 403, Request ID: 4)",
            "keys",
        ),
        ("java.nio.file.AccessDeniedException: s3a://lake/x: ExpiredToken", "keys"),
        ("org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://lake/': NoSuchBucket", "bucket"),
        ("java.io.IOException: No space left on device", "disks"),
        (
            "Exception thrown in awaitResult: \n\nCaused by: java.lang.OutOfMemoryError: Java heap space",
            "driver_memory",
        ),
        (
            "[MANY] failures:\n1. Not enough memory to build and broadcast the table to all worker nodes.",
            "autoBroadcast",
        ),
    ],
)
def test_what_sparks_set_up_causes_is_not_an_error_of_computing(text: str, remedy: str) -> None:
    def fail(_: object) -> None:
        raise WrappedError(text)

    with pytest.raises(EnvironmentSetupError, match=remedy) as caught:
        computed(runner(), WORK, fail, fail)  # type: ignore[arg-type]
    assert "nothing was committed" in caught.value.hint
