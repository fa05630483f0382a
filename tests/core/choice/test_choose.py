"""Reasons against a strategy, and risks: an example for every code, and the text about it."""

import re
from pathlib import Path

import pytest

from backfill_assets.core.choice.choose import SAFETY, Choice
from backfill_assets.core.choice.expiry import NEVER
from backfill_assets.core.choice.reasons import FORECAST, HARD, Code
from backfill_assets.core.epoch.costs import Strategy, TableFacts
from tests.support.choose_world import DAY, GIB, HOUR, MILLION, MINUTE, appended, chosen, estimate_of, table, topic

LARGE = 1000 * MILLION
TABLES = {"snapshot", "snapshot_once", "rearranged", "arrangement"}

OUT: dict[Code, tuple[Choice, set[str], str]] = {
    Code.WRONG_UPSTREAM: (chosen(table()), {"source"}, "it reads only Kafka topics, and not orders"),
    Code.NO_CHANGE_FEED: (
        chosen(table(), table("items", has_feed=False)),
        TABLES,
        "changes of items cannot be read: no change data feed, and not append-only",
    ),
    Code.NO_KEY: (
        chosen(table(), table("items", keyed=False, key_sortable=False)),
        {"arrangement"},
        "items has no key, and history is read in the order of the key",
    ),
    Code.KEY_NOT_SORTABLE: (
        chosen(table(), table("items", key_sortable=False)),
        {"arrangement"},
        "a column of the key of items is binary or nested, which has no order",
    ),
    Code.WHOLE_TABLES: (
        chosen(table(), whole=True),
        TABLES - {"snapshot_once"},
        "the query needs the rows of all its tables together",
    ),
    Code.RETENTION_TOO_SHORT: (
        chosen(table(rows=LARGE, log_retention_seconds=20 * MINUTE)),
        {"snapshot"},
        "the change log of orders may be deleted after 20.0 minutes and must last 10.8 minutes",
    ),
    Code.NOT_CONVERGING: (
        chosen(table(changes_per_second=10.0**6)),
        TABLES,
        "changes arrive 8.5 times as fast as they can be applied",
    ),
    Code.SPOOL_TOO_SMALL: (
        chosen(table(rows=LARGE, change_bytes_per_second=10.0**6)),
        {"rearranged"},
        "the spool may hold 1.0 GiB, and 920.4 MiB are expected",
    ),
    Code.TOO_LARGE_AT_ONCE: (
        chosen(table(), memory_bytes=GIB // 2),
        {"snapshot_once"},
        "one epoch of 10,000,000 rows takes about 953.7 MiB, and there are 512.0 MiB",
    ),
}

RISKS: dict[Code, tuple[Choice, Strategy]] = {
    Code.RETENTION_TIGHT: (chosen(table(rows=LARGE, log_retention_seconds=30 * MINUTE)), "snapshot"),
    Code.BARELY_CONVERGING: (chosen(table(rows=10_000, changes_per_second=90_000.0)), "snapshot"),
    Code.MEMORY_TIGHT: (chosen(table(bytes=100 * GIB)), "snapshot"),
    Code.MANY_PASSES: (chosen(table(clustering=0.5)), "arrangement"),
    Code.CLUSTERING_UNKNOWN: (chosen(table(clustering=None)), "arrangement"),
    Code.UPDATES_WITHOUT_KEY: (chosen(table(keyed=False)), "snapshot"),
    Code.NOT_RESUMABLE: (chosen(table()), "snapshot_once"),
}


@pytest.mark.parametrize("code", OUT)
def test_reasons_against_a_strategy_come_with_numbers_and_a_remedy(code: Code) -> None:
    choice, strategies, reason = OUT[code]
    against = [each for each in choice.ruled_out if each.code == code]
    assert {each.strategy for each in against} == strategies
    assert any(reason in each.reason for each in against), against
    told = code is not Code.WRONG_UPSTREAM  # which is only a reason against a strategy that was requested
    assert all(each.remedy and (f"Remedy: {each.remedy}." in choice.words) is told for each in against)


@pytest.mark.parametrize("code", RISKS)
def test_risks_are_named_for_the_strategy_that_has_them(code: Code) -> None:
    choice, strategy = RISKS[code]
    estimate = estimate_of(choice, strategy)
    assert code in {risk.code for risk in estimate.risks}
    assert code not in {each.code for each in choice.ruled_out if each.strategy == strategy}


def test_every_code_has_an_example_and_is_in_the_docs() -> None:
    assert {*OUT, *RISKS} == set(Code)
    assert {*HARD, *FORECAST} == set(OUT)
    text = (Path(__file__).parents[3] / "docs" / "refusals.md").read_text(encoding="utf-8")
    listed = text[text.index("## Choosing a strategy") : text.index("## Errors")]
    assert set(re.findall(r"^\| `(\w+)`", listed, re.MULTILINE)) == set(Code)


def test_a_choice_says_what_was_chosen_and_why() -> None:
    choice = chosen(table(rows=LARGE, log_retention_seconds=20 * MINUTE))
    assert choice.words == (
        "`rearranged` reads orders: it is the cheapest strategy that can. "
        "It takes about 15.8 minutes in 1,001 epochs and reads 1,000,000,000 rows, 1.0 passes over the data, "
        "with a spool of 4.5 MiB. Retention leaves 12.9 minutes to spare. "
        "Warning: RETENTION_TIGHT: the change log of orders may be deleted after 20.0 minutes and must last 7.1 minutes; "
        "raise delta.logRetentionDuration of orders. "
        "`arrangement` would take about 1.2 days. "
        "Not `snapshot` (RETENTION_TOO_SHORT): the change log of orders may be deleted after 20.0 minutes and must last "
        "10.8 minutes (2 times that is asked for, as estimates may be wrong). "
        "Remedy: raise delta.logRetentionDuration of orders, or give Spark more cores. "
        "Not `snapshot_once` (TOO_LARGE_AT_ONCE): one epoch of 1,000,000,000 rows takes about 93.1 GiB, "
        "and there are 4.0 GiB. Remedy: use `snapshot`, which reads in chunks, or give Spark more memory."
    )


@pytest.mark.parametrize(
    ("strategy", "facts"),
    [
        ("arrangement", appended()),
        ("snapshot", table(has_feed=False)),
        ("source", table()),
        ("snapshot", topic()),
    ],
)
def test_what_cannot_work_is_refused_though_asked_for_and_what_auto_would_take_is_named(
    strategy: Strategy, facts: TableFacts
) -> None:
    refused, auto = chosen(facts, requested=strategy), chosen(facts)
    assert (refused.chosen, refused.least_bad) == (None, auto.chosen)
    assert refused.words.startswith(f"`{strategy}`, which was requested, cannot read {facts.name}")
    assert {each.code for each in refused.ruled_out if each.strategy == strategy} <= set(HARD)


@pytest.mark.parametrize(
    ("strategy", "facts", "code"),
    [
        ("snapshot", table(rows=LARGE, log_retention_seconds=20 * MINUTE), Code.RETENTION_TOO_SHORT),
        ("rearranged", table(rows=LARGE, change_bytes_per_second=10.0**6), Code.SPOOL_TOO_SMALL),
        ("snapshot_once", table(rows=LARGE), Code.TOO_LARGE_AT_ONCE),
        ("arrangement", table(changes_per_second=10.0**6), Code.NOT_CONVERGING),
    ],
)
def test_what_is_forecast_to_fail_runs_if_asked_for_with_a_warning(
    strategy: Strategy, facts: TableFacts, code: Code
) -> None:
    choice = chosen(facts, requested=strategy)
    assert choice.chosen == strategy != chosen(facts).chosen
    assert code in {risk.code for risk in estimate_of(choice, strategy).risks}
    assert strategy not in {each.strategy for each in choice.ruled_out}
    assert f"Warning: {code}: " in choice.words


def test_a_strategy_that_is_requested_is_used_although_it_costs_more() -> None:
    assert chosen(table(), requested="rearranged").chosen == "rearranged"
    assert chosen(table(), requested="rearranged").words.startswith("`rearranged` reads orders, as requested.")


def test_twice_the_need_is_the_border_of_what_retention_allows() -> None:
    needed = estimate_of(chosen(table(rows=LARGE)), "snapshot").retention_needed_seconds["log"]
    assert chosen(table(rows=LARGE, log_retention_seconds=SAFETY * needed + 1)).chosen == "snapshot"
    assert chosen(table(rows=LARGE, log_retention_seconds=SAFETY * needed - 1)).chosen == "rearranged"


def test_the_age_of_the_newest_commit_counts_against_a_snapshot_that_is_read_for_long() -> None:
    old = table(rows=LARGE, newest_commit_age_seconds=30 * DAY - 10 * MINUTE)
    assert chosen(old).chosen == "rearranged"
    reason = next(each.reason for each in chosen(old).ruled_out if each.strategy == "snapshot")
    assert reason.startswith("the commit of the pinned version of orders may be deleted after 10.0 minutes")


def test_a_table_that_does_not_change_can_lose_nothing() -> None:
    still = table(
        changes_per_second=0.0, versions_per_second=0.0, file_retention_seconds=0.0, log_retention_seconds=0.0
    )
    choice = chosen(still)
    assert (choice.chosen, estimate_of(choice, "snapshot_once").headroom_seconds) == ("snapshot_once", None)
    assert "Nothing it needs can expire." in choice.words


def test_maintenance_alone_can_take_files() -> None:
    compacted = table(rows=LARGE, changes_per_second=0.0, versions_per_second=0.001, file_retention_seconds=HOUR / 12)
    assert Code.RETENTION_TOO_SHORT in {
        each.code for each in chosen(compacted).ruled_out if each.strategy == "snapshot"
    }


def test_if_nothing_is_safe_what_loses_nothing_or_least_comes_nearest() -> None:
    hopeless = chosen(table(rows=LARGE, file_retention_seconds=MINUTE))
    assert (hopeless.chosen, hopeless.least_bad) == (None, "arrangement")
    assert hopeless.words.startswith("No strategy reads orders safely; `arrangement` comes nearest.")
    keyless = chosen(appended(rows=LARGE, file_retention_seconds=MINUTE))
    assert (keyless.chosen, keyless.least_bad) == (None, "snapshot")
    full = chosen(
        table(rows=LARGE, log_retention_seconds=20 * MINUTE, change_bytes_per_second=10.0**6, keyed=False),
    )
    assert (full.chosen, full.least_bad) == (None, "rearranged"), "a full spool stops and loses nothing"
    assert chosen(table(has_feed=False)).least_bad is None


def test_changes_that_arrive_too_fast_are_never_caught_up_with() -> None:
    choice = chosen(table(changes_per_second=10.0**6))
    assert {each.eta_seconds for each in choice.estimates} == {NEVER}
    assert "It never catches up." in choice.words


def test_without_upstreams_or_rows_in_a_chunk_there_is_nothing_to_choose() -> None:
    with pytest.raises(ValueError, match="at least one upstream"):
        chosen()
    with pytest.raises(ValueError, match="chunk_rows=0"):
        chosen(table(), chunk_rows=0)


@pytest.mark.parametrize(
    ("choice", "code"),
    [
        (chosen(table(rows=LARGE, file_retention_seconds=MINUTE)), Code.RETENTION_TOO_SHORT),
        (chosen(table(changes_per_second=10.0**6)), Code.NOT_CONVERGING),
        (chosen(table(has_feed=False)), Code.NO_CHANGE_FEED),
        (chosen(table(keyed=False), requested="arrangement"), Code.NO_KEY),
        (chosen(table(), requested="source"), Code.WRONG_UPSTREAM),
    ],
)
def test_a_refusal_gives_the_reasons_against_the_nearest_strategy_only(choice: Choice, code: Code) -> None:
    assert choice.refusal is not None
    assert choice.refusal.code is code
    assert chosen(table()).refusal is None
