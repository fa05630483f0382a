"""Which strategy reads a view's history, at what cost, or why not: `strategy="auto"`, decided from metadata alone.

    facts ──► estimate of every strategy ──► rule out ──► cheapest of the rest ──► words

`backfill plan` prints this choice, and `Choice.chosen` is what runs. This module has no clock and reads no table.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from pydantic import ByteSize

from backfill_assets.core.choice.estimates import Estimate, Workload, estimate
from backfill_assets.core.choice.expiry import NEVER, Limit, limits
from backfill_assets.core.choice.reasons import FORECAST, HARD, Code, Risk, RuledOut
from backfill_assets.core.epoch.costs import STRATEGIES, Costs, Strategy, TableFacts
from backfill_assets.core.progress.retention import in_words
from backfill_assets.core.progress.value import Value

__all__ = ["SAFETY", "TIE", "Choice", "choose"]

SAFETY = 2.0
"""Estimates may be wrong by this factor: what is needed must fit this many times into what is available."""
TIE = 1.05
"""Costs within this factor of the cheapest count as equal; the simplest strategy is taken then."""
TIGHT = 2.0
"""What fits less than `SAFETY` times this factor is worth a warning."""
PASSES = 2.0
"""Reading the data more often than this is worth a warning."""
_ASKED = f"{SAFETY:g} times that is asked for, as estimates may be wrong"


class Choice(Value):
    """The strategy to run, with the estimates and reasons that led to it.

    `chosen` is None if no strategy can be used, or the `requested` one cannot. `least_bad` then names the nearest
    alternative, if there is one: what `auto` would choose, or the strategy with the least bad forecast. `estimates` has one
    for each strategy that reads this kind of upstream, the simplest first. A strategy may be ruled out for
    several reasons. `words` says all of it in a few sentences.
    """

    requested: Strategy | None
    chosen: Strategy | None
    least_bad: Strategy | None
    estimates: tuple[Estimate, ...]
    ruled_out: tuple[RuledOut, ...]
    words: str

    @property
    def refusal(self) -> RuledOut | None:
        """Why nothing is chosen: the reasons against the requested strategy, or else against the nearest alternative."""
        if self.chosen is not None:
            return None
        named = self.requested or self.least_bad
        against = [each for each in self.ruled_out if each.strategy == named]
        read = [each for each in self.ruled_out if each.code is not Code.WRONG_UPSTREAM]
        return next(iter((*against, *read, *self.ruled_out)), None)

    def estimate_of(self, strategy: Strategy) -> Estimate | None:
        """The estimate of one strategy; None if it does not read this kind of upstream."""
        return next((each for each in self.estimates if each.strategy == strategy), None)


def choose(  # noqa: PLR0913  (each a fact of its own, given by name)
    facts: Sequence[TableFacts],
    *,
    costs: Costs,
    chunk_rows: int,
    memory_bytes: int,
    spool_bytes: int,
    requested: Strategy | None = None,
    whole: bool = False,
    driving: Collection[str] = (),
    parts: int = 0,
) -> Choice:
    """Choose the cheapest strategy that is not ruled out, the simplest of those within 5 %.

    With `requested`, or if only one strategy reads such upstreams (topics), it is that one or none, and a forecast against
    it becomes a risk of its estimate. `whole`: the query is computed over whole tables, but chunks of those that are
    `driving`, if there are any, can be joined with the others: files, or `parts` of the hashes of a key.
    The order of `facts` does not matter. Errors: `ValueError`
    without facts, or with `chunk_rows` below 1.
    """
    if not facts or chunk_rows < 1:
        raise ValueError(
            f"a strategy is chosen for at least one upstream and chunks of at least 1 row; "
            f"got {len(facts)} upstreams and chunk_rows={chunk_rows}"
        )
    work = Workload(
        facts=tuple(sorted(facts, key=lambda each: (each.name, each.model_dump_json()))),
        costs=costs,
        chunk_rows=chunk_rows,
        memory_bytes=memory_bytes,
        spool_bytes=spool_bytes,
        whole=whole,
        driving=frozenset(driving),
        parts=parts,
    )
    unfit = {strategy: reason for strategy in STRATEGIES if (reason := _reads(strategy, work))}
    fitting = [strategy for strategy in STRATEGIES if strategy not in unfit]
    if driving:  # all at once is simpler than joining chunks
        fitting.reverse()
    named = requested or (fitting[0] if len(fitting) == 1 else None)
    estimates = [estimate(strategy, work) for strategy in fitting]
    estimates = [each.model_copy(update={"risks": tuple(_risks(each, work))}) for each in estimates]
    ruled_out = [*unfit.values()]
    ruled_out += [reason for each in estimates for reason in (*_impossible(each, work), *_forecast(each, work))]
    if named is not None:
        estimates, ruled_out = _as_asked(named, estimates, ruled_out)
    best = _cheapest(estimates, ruled_out)
    refused = named is not None and any(each.strategy == named for each in ruled_out)
    chosen = None if refused else named or best
    decided = Choice(
        requested=requested,
        chosen=chosen,
        least_bad=None if chosen else best or _least_bad(estimates, ruled_out),
        estimates=tuple(estimates),
        ruled_out=tuple(ruled_out),
        words="",
    )
    return decided.model_copy(update={"words": _words(decided, work)})


def _reads(strategy: Strategy, work: Workload) -> RuledOut | None:
    """Why a strategy does not read upstreams of these kinds at all, or not for a query over whole tables."""
    topics = [table.name for table in work.facts if table.kind == "topic"]
    tables = [table.name for table in work.facts if table.kind != "topic"]
    if (strategy == "source") == bool(topics):
        fit = {"source", "snapshot_once", *(["snapshot"] if work.in_chunks else [])}
        return _in_parts(strategy, work) if work.whole and strategy not in fit else None
    expected = "Kafka topics" if tables else "Delta tables and views"
    return RuledOut(
        strategy=strategy,
        code=Code.WRONG_UPSTREAM,
        reason=f"it reads only {expected}, and not {_list(tables or topics)}",
        remedy="use `source` for topics, and one of the other strategies for tables and views",
    )


def _in_parts(strategy: Strategy, work: Workload) -> RuledOut:
    return RuledOut(
        strategy=strategy,
        code=Code.WHOLE_TABLES,
        reason="the query needs the rows of all its tables together, but history would be read in parts",
        remedy="use `snapshot` or `snapshot_once`" if work.in_chunks else "use `snapshot_once`",
    )


def _impossible(each: Estimate, work: Workload) -> Iterable[RuledOut]:
    if each.strategy == "source":
        return
    out = partial(RuledOut, strategy=each.strategy)
    feedless = [table.name for table in work.facts if not (table.append_only or table.has_feed)]
    if feedless and not work.whole:
        yield out(
            code=Code.NO_CHANGE_FEED,
            reason=f"changes of {_list(feedless)} cannot be read: no change data feed, and not append-only",
            remedy=f"set delta.enableChangeDataFeed = true on {_list(feedless)}, or delta.appendOnly = true",
        )
    if each.strategy != "arrangement":
        return
    keyless = [table.name for table in work.facts if not table.keyed]
    if keyless:
        yield out(
            code=Code.NO_KEY,
            reason=f"{_list(keyless)} has no key, and history is read in the order of the key",
            remedy="declare a primary_key",
        )
    unsorted = [table.name for table in work.facts if table.keyed and not table.key_sortable]
    if unsorted:
        yield out(
            code=Code.KEY_NOT_SORTABLE,
            reason=f"a column of the key of {_list(unsorted)} is binary or nested, which has no order",
            remedy="declare a primary_key of numbers, strings, booleans, dates or times",
        )


def _forecast(each: Estimate, work: Workload) -> Iterable[RuledOut]:
    """What is expected to fail. If changes arrive too fast, no other forecast of time or space is meaningful."""

    out = partial(RuledOut, strategy=each.strategy)
    if not each.converges:
        yield out(
            code=Code.NOT_CONVERGING,
            reason=f"changes arrive {each.busy:,.1f} times as fast as they can be applied",
            remedy="raise chunk_rows, or give Spark more cores",
        )
    short = [limit for limit in limits(work.facts, each.retention_needed_seconds) if _fits(limit) < SAFETY]
    if short and each.converges:
        yield out(
            code=Code.RETENTION_TOO_SHORT,
            reason=f"{'; '.join(_short(limit) for limit in short)} ({_ASKED})",
            remedy=f"{_raise(short)}, or give Spark more cores",
        )
    if each.converges and SAFETY * each.spool_bytes > work.spool_bytes:
        held, expected = _size(work.spool_bytes), _size(each.spool_bytes)
        yield out(
            code=Code.SPOOL_TOO_SMALL,
            reason=f"the spool may hold {held}, and {expected} are expected ({_ASKED})",
            remedy=f"raise the spool's limit to {_size(SAFETY * each.spool_bytes)}",
        )
    if each.strategy == "snapshot_once" and each.memory_bytes > work.memory_bytes:
        needed, there = _size(each.memory_bytes), _size(work.memory_bytes)
        yield out(
            code=Code.TOO_LARGE_AT_ONCE,
            reason=f"one epoch of {work.rows:,} rows takes about {needed}, and there are {there}",
            remedy=f"{'use `snapshot`, which reads in chunks, or ' if work.in_chunks else ''}give Spark more memory",
        )


def _risks(each: Estimate, work: Workload) -> Iterable[Risk]:
    held = limits(work.facts, each.retention_needed_seconds)
    tight = [limit for limit in held if SAFETY <= _fits(limit) < SAFETY * TIGHT]
    if tight:
        yield Risk(code=Code.RETENTION_TIGHT, message=f"{'; '.join(map(_short, tight))}; {_raise(tight)}")
    if SAFETY * each.busy >= 1 > each.busy:
        message = f"following the changes keeps the view busy for {each.busy:.0%} of the time; raise chunk_rows"
        yield Risk(code=Code.BARELY_CONVERGING, message=message)
    if each.strategy != "snapshot_once" and each.memory_bytes > work.memory_bytes:
        sizes = f"a chunk takes about {_size(each.memory_bytes)}, and there are {_size(work.memory_bytes)}"
        yield Risk(code=Code.MEMORY_TIGHT, message=f"{sizes}; lower chunk_rows")
    if each.strategy == "arrangement":
        yield from _clustering_risks(each, work)
    keyless = [table.name for table in work.facts if not (table.keyed or table.append_only or table.kind == "topic")]
    if keyless and not work.whole:
        message = f"the first update or delete in {_list(keyless)} stops the view; declare a primary_key"
        yield Risk(code=Code.UPDATES_WITHOUT_KEY, message=message)
    if each.strategy == "snapshot_once":
        yield Risk(
            code=Code.NOT_RESUMABLE,
            message="a run that is killed before the history is read starts over"
            + ("; `snapshot` resumes" if work.in_chunks else ""),
        )


def _clustering_risks(each: Estimate, work: Workload) -> Iterable[Risk]:
    unknown = [table.name for table in work.facts if table.clustering is None]
    if unknown:
        message = (
            f"{_list(unknown)} has no statistics of its key, so every chunk may read all of it; let it collect them"
        )
        yield Risk(code=Code.CLUSTERING_UNKNOWN, message=message)
    if each.passes > PASSES:
        message = f"history is read {each.passes:,.1f} times; cluster the table by its key"
        yield Risk(code=Code.MANY_PASSES, message=message)


def _as_asked(
    named: Strategy, estimates: list[Estimate], ruled_out: list[RuledOut]
) -> tuple[list[Estimate], list[RuledOut]]:
    """Forecasts against the strategy that will be used, as risks of it, unless it cannot be used anyway."""
    against = [each for each in ruled_out if each.strategy == named]
    if any(each.code in HARD for each in against):
        return estimates, ruled_out
    warnings = tuple(Risk(code=each.code, message=f"{each.reason}; {each.remedy}") for each in against)
    return [
        each.model_copy(update={"risks": warnings + each.risks}) if each.strategy == named else each
        for each in estimates
    ], [each for each in ruled_out if each.strategy != named]


def _cheapest(estimates: Sequence[Estimate], ruled_out: Sequence[RuledOut]) -> Strategy | None:
    """The simplest of those that cost about as much as the cheapest; the estimates are ordered from the simplest on."""
    out = {each.strategy for each in ruled_out}
    left = [
        each for each in estimates if each.strategy not in out and not any(risk.code in FORECAST for risk in each.risks)
    ]
    least = min((each.cost_seconds for each in left), default=0.0)
    return next((each.strategy for each in left if each.cost_seconds <= TIE * least), None)


def _least_bad(estimates: Sequence[Estimate], ruled_out: Sequence[RuledOut]) -> Strategy | None:
    """The strategies that only a forecast rules out: those that lose nothing first, then those that may lose least."""

    def badness(each: Estimate) -> tuple[float, ...]:
        codes = [reason.code for reason in ruled_out if reason.strategy == each.strategy]
        worst = min(FORECAST.index(code) for code in codes)
        lost = -(each.headroom_seconds or 0.0) if FORECAST[worst] is Code.RETENTION_TOO_SHORT else 0.0
        return -worst, len(codes), lost, each.cost_seconds

    hard = {each.strategy for each in ruled_out if each.code in HARD}
    possible = [each for each in estimates if each.strategy not in hard]
    return min(possible, key=badness).strategy if possible else None


def _fits(limit: Limit) -> float:
    """How many times the time needed fits into the time left."""
    if limit.left is None or limit.needed <= 0:
        return NEVER
    return limit.left / limit.needed


def _short(limit: Limit) -> str:
    left = in_words(max(0.0, limit.left or 0.0))
    return f"{limit.what} of {limit.table} may be deleted after {left} and must last {in_words(limit.needed)}"


def _raise(short: Iterable[Limit]) -> str:
    settings: defaultdict[str, list[str]] = defaultdict(list)
    for limit in short:
        if limit.table not in settings[limit.setting]:
            settings[limit.setting].append(limit.table)
    return "raise " + " and ".join(f"{setting} of {_list(tables)}" for setting, tables in settings.items())


def _words(choice: Choice, work: Workload) -> str:
    names = _list([table.name for table in work.facts])
    sentences = [_verdict(choice, names)]
    named = choice.estimate_of(choice.chosen or choice.least_bad or "source")
    if named:
        sentences.append(_cost(named))
        sentences += [f"Warning: {risk.code}: {risk.message}." for risk in named.risks]
    out = {each.strategy for each in choice.ruled_out}
    sentences += [
        f"`{each.strategy}` would take about {in_words(each.eta_seconds)}."
        for each in choice.estimates
        if each is not named and each.strategy not in out
    ]
    grouped: defaultdict[tuple[Code, str, str], list[Strategy]] = defaultdict(list)
    for each in choice.ruled_out:
        if each.code is Code.WRONG_UPSTREAM and each.strategy != choice.requested:
            continue  # everybody knows that tables are not read like topics, nor topics like tables
        grouped[each.code, each.reason, each.remedy].append(each.strategy)
    sentences += [
        f"Not {_list([f'`{each}`' for each in strategies])} ({code}): {reason}. Remedy: {remedy}."
        for (code, reason, remedy), strategies in grouped.items()
    ]
    return " ".join(sentences)


def _verdict(choice: Choice, names: str) -> str:
    nearest = f"; `{choice.least_bad}` comes nearest" if choice.least_bad else ""
    if choice.chosen is None:
        if choice.requested:
            return f"`{choice.requested}`, which was requested, cannot read {names}{nearest}."
        return f"No strategy reads {names} safely{nearest}."
    out = {each.strategy for each in choice.ruled_out}
    costs = {each.strategy: each.cost_seconds for each in choice.estimates if each.strategy not in out}
    if len(costs) == 1:
        return f"`{choice.chosen}` reads {names}: nothing else can."
    if choice.requested:
        return f"`{choice.chosen}` reads {names}, as requested."
    if costs[choice.chosen] > min(costs.values()):
        return f"`{choice.chosen}` reads {names}: it costs about as much as the cheapest, and is simpler."
    return f"`{choice.chosen}` reads {names}: it is the cheapest strategy that can."


def _cost(named: Estimate) -> str:
    if not named.converges:
        return "It never catches up."
    room = named.headroom_seconds
    spool = f", with a spool of {_size(named.spool_bytes)}" if named.spool_bytes else ""
    retention = (
        "Nothing it needs can expire."
        if room is None
        else f"Retention leaves {in_words(room)} to spare."
        if room >= 0
        else f"Retention is {in_words(-room)} too short."
    )
    return (
        f"It takes about {in_words(named.eta_seconds)} in {named.epochs:,} epochs and reads {named.rows_read:,} rows, "
        f"{named.passes:,.1f} passes over the data{spool}. {retention}"
    )


def _size(size: float) -> str:
    return ByteSize(size).human_readable(separator=" ")


def _list(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
