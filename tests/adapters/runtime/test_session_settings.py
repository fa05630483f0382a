"""Settings of a Spark session: whatever others have set, results do not depend on it, or the run refuses."""

import re

import pytest
from google.protobuf import text_format  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.connect.proto.relations_pb2 import Read

from backfill_assets.adapters.runtime.session_settings import (
    KAFKA_OPTIONS,
    OPEN,
    PINNED,
    REDACTED,
    REQUIRED,
    UNSHOWN,
    Unsettled,
    changes,
    is_open,
    not_open,
    pinned,
    unsettled,
)
from backfill_assets.adapters.runtime.spark_conf import spark_conf
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.spark.session import Remote
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.errors import DeclarationError
from tests.support.settings import SPARK

CHANGE_RESULTS = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.caseSensitive",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.storeAssignmentPolicy",
    "spark.sql.timestampType",
    "spark.sql.parser.escapedStringLiterals",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.optimizer.excludedRules",
    "spark.sql.optimizer.windowGroupLimitThreshold",
    "spark.sql.adaptive.enabled",
    "spark.sql.adaptive.optimizer.excludedRules",
    "spark.sql.adaptive.customCostEvaluatorClass",
    "spark.sql.parquet.datetimeRebaseModeInRead",
    "spark.sql.parquet.int96RebaseModeInRead",
    "spark.sql.parquet.binaryAsString",
    "spark.sql.parquet.mergeSchema",
    "spark.sql.json.enablePartialResults",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.legacy.sizeOfNull",
    "spark.sql.sources.partitionOverwriteMode",
    "spark.sql.defaultCatalog",
    "spark.databricks.delta.stats.skipping",
    "spark.databricks.delta.schema.autoMerge.enabled",
    "spark.databricks.delta.stalenessLimit",
    "spark.databricks.delta.properties.defaults.columnMapping.mode",
    "spark.databricks.delta.autoCompact.enabled",
    "spark.sql.a.setting.that.nobody.knows.yet",
)
HAVE_TO_BE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "spark.sql.streaming.fileStreamSink.ignoreMetadata": "true",
    "spark.sql.variable.substitute": "false",
}
NAMES = st.sampled_from([
    *CHANGE_RESULTS,
    *PINNED,
    *REQUIRED,
    *(f"{name}x" if name.endswith(".") else name for names in OPEN.values() for name in names),
    "spark.executor.memory",
    "spark.hadoop.fs.s3a.secret.key",
    "parquet.block.size",
])
VALUES = st.sampled_from(["true", "false", "LEGACY", "7", *PINNED.values(), *REQUIRED.values()])
SETTINGS = st.dictionaries(NAMES, VALUES, max_size=12)


def settle(found: dict[str, str], wanted: dict[str, str], *, stubborn: str = "") -> dict[str, str]:
    """The settings of a session after the changes, if it accepts all changes except those to one setting."""
    todo = changes(found, wanted)
    after = {**{name: value for name, value in found.items() if name not in todo.unset}, **todo.set}
    return after if stubborn not in {*todo.unset, *todo.set} else {**after, stubborn: found.get(stubborn, "")}


@pytest.mark.parametrize("name", CHANGE_RESULTS)
def test_what_changes_results_is_as_spark_has_it_by_default(name: str) -> None:
    assert changes({name: "anything"}, PINNED).unset == (name,)
    assert not_open({name: "anything"}) == {name: None}


@given(SETTINGS)
def test_after_the_changes_only_open_settings_are_as_they_were_found(found: dict[str, str]) -> None:
    wanted = pinned(found)
    after = settle({**found, **REQUIRED}, wanted)
    assert unsettled(after, wanted) == []
    assert wanted.items() <= after.items()
    for name in after.keys() - wanted.keys():
        assert is_open(name), name
    kept = {name: value for name, value in found.items() if is_open(name) and name not in {*PINNED, *REQUIRED}}
    assert kept.items() <= after.items()


@given(SETTINGS)
def test_changes_are_applied_once(found: dict[str, str]) -> None:
    wanted = pinned(found)
    todo = changes(settle(found, wanted), wanted)
    assert (todo.set, todo.unset) == ({}, ())


@pytest.mark.parametrize("name", [*CHANGE_RESULTS[:3], *PINNED])
def test_a_setting_that_a_session_keeps_is_named_with_expected_and_found_value(name: str) -> None:
    found = {**REQUIRED, name: "theirs"}
    left = unsettled(settle(found, dict(PINNED), stubborn=name), PINNED)
    assert left == [Unsettled(name=name, expected=PINNED.get(name), found="theirs")]


@pytest.mark.parametrize("lacking", list(REQUIRED))
def test_a_spark_without_delta_is_named(lacking: str) -> None:
    found = {**REQUIRED, **PINNED, lacking: "org.example.Another"}
    assert unsettled(found, PINNED) == [
        Unsettled(name=lacking, expected=REQUIRED[lacking], found="org.example.Another")
    ]
    assert unsettled({**found, lacking: f"org.example.Another, {REQUIRED[lacking]}"}, PINNED) == []


def test_redactions_of_others_are_kept() -> None:
    assert pinned({})[REDACTED] == KAFKA_OPTIONS
    assert pinned({REDACTED: KAFKA_OPTIONS})[REDACTED] == KAFKA_OPTIONS
    for name in (REDACTED, "spark.redaction.string.regex"):
        assert pinned({name: "(?i)card=[0-9]+"})[REDACTED] == f"{KAFKA_OPTIONS}|(?i)card=[0-9]+"
    assert pinned({})[UNSHOWN] == pinned({UNSHOWN: PINNED[UNSHOWN]})[UNSHOWN] == PINNED[UNSHOWN]
    assert pinned({UNSHOWN: "(?i)theirs"})[UNSHOWN] == f"{PINNED[UNSHOWN]}|(?i)theirs"


def test_options_of_kafkas_reader_are_redacted_as_spark_connect_writes_them() -> None:
    read = Read()
    read.data_source.format = "kafka"
    read.data_source.options["kafka.sasl.jaas.config"] = 'PlainLoginModule required password="p\'w\\d";'
    read.data_source.options["kafka.ssl.key"] = "two\nlines"
    read.data_source.options["subscribe"] = "flights"
    shown = re.sub(pinned({})[REDACTED], "*", text_format.MessageToString(read))
    assert shown.count("*") == 2
    assert "flights" in shown
    assert not any(secret in shown for secret in ("Plain", "p'w", "p\\'w", "two", "lines", "kafka."))


def test_settings_of_the_product_itself_are_open_or_pinned() -> None:
    assert not_open({**spark_conf(), **SPARK}) == {}


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("spark.sql.ansi.enabled", "false", "true"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY", "as Spark has it by default"),
    ],
)
def test_settings_that_can_change_results_are_refused_by_name(name: str, value: str, instead: str) -> None:
    resource = SparkResource(config={name: value, "spark.sql.shuffle.partitions": "4", "spark.executor.memory": "2g"})
    with pytest.raises(DeclarationError, match=f"{name} \\(is {instead}\\)") as caught:
        resource.runner(Warehouse(uri="/w"))
    assert "shuffle" not in str(caught.value)
    assert SparkResource(config={"spark.sql.ansi.enabled": "true"}).runner(Warehouse(uri="/w"))


@pytest.mark.parametrize(
    "remote",
    [
        Remote(url="sc://127.0.0.1:15002", token="s3cret"),
        Remote(url="sc://127.0.0.1:15002/;token=s3cret;use_ssl=true"),
        Remote(url="sc://me:s3cret@127.0.0.1:15002"),
    ],
)
def test_a_token_is_in_the_address_that_is_used_and_never_in_one_that_is_shown(remote: Remote) -> None:
    assert remote.shown == "sc://127.0.0.1:15002"
    assert remote.host == "127.0.0.1"
    assert "s3cret" in remote.full
    assert "s3cret" not in repr(remote)


def test_what_has_to_differ_from_sparks_defaults_is_pinned() -> None:
    assert {**HAVE_TO_BE, REDACTED: KAFKA_OPTIONS, UNSHOWN: PINNED[UNSHOWN]} == PINNED
