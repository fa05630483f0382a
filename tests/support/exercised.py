"""What a run of random queries has tried: its operators, rules and kinds of change are counted, shown, and asked for.

A test gives its counts to pytest by `record_property(EXERCISED, …)`, which shows them at the end of the run.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from sqlglot import exp

from backfill_assets.query.conditions import with_not
from backfill_assets.query.parsing import parse, tokenize
from tests.support.settings import FULL

__all__ = ["CHANGES", "EXERCISED", "Exercised", "changes_of", "first_seed", "operators_of"]

EXERCISED = "exercised"
CHANGES = ("insert", "delete", "update", "key move", "null key", "duplicate", "empty table")
"""The kinds of change that a run has to try."""
_SETS = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}


def first_seed() -> int:
    """The seed of the first example; those after it count on. The full proof has other ones than the gate, and
    `BACKFILL_TEST_SEED` names others."""
    return int(os.environ.get("BACKFILL_TEST_SEED", "101" if FULL else "1"))


class Exercised:
    """Counts by topic, such as `rules`, and what the seeds were."""

    def __init__(self, seeds: Sequence[int]) -> None:
        self.seeds = seeds
        self.counts: dict[str, Counter[str]] = {}

    def note(self, topic: str, *names: str) -> None:
        """Count each of these once."""
        self.counts.setdefault(topic, Counter()).update(names)

    def assert_all(self, wanted: Mapping[str, Collection[str]]) -> None:
        """See that each name was counted."""
        missed = {
            topic: left
            for topic, names in wanted.items()
            if (left := sorted({*names} - self.counts.get(topic, Counter()).keys()))
        }
        assert not missed, f"never tried: {missed}\n{self}"

    def show(self, record_property: "Callable[[str, object], None]") -> None:
        """Have pytest show the counts at the end of its run."""
        record_property(EXERCISED, str(self))

    def __str__(self) -> str:
        """A line for each topic."""
        seeds = f"{self.seeds[0]} to {self.seeds[-1]}" if len(self.seeds) > 3 else ", ".join(map(str, self.seeds))
        lines = (
            f"{topic}: {', '.join(f'{name} {count}' for name, count in counts.most_common())}"
            for topic, counts in self.counts.items()
        )
        return "\n  ".join((f"seeds {seeds}", *lines))


def changes_of(before: Sequence[tuple[object, ...]], after: Sequence[tuple[object, ...]]) -> set[str]:
    """The kinds of change between two states of a table, whose first columns are the row's number and its key."""
    old, new = Counter(before), Counter(after)
    come, go = new - old, old - new
    numbers = {row[0] for row in come} & {row[0] for row in go}
    moved = {number for number in numbers if _keys(come, number) != _keys(go, number)}
    found = {
        "insert": bool(come),
        "delete": bool(go),
        "update": bool(numbers - moved),
        "key move": bool(moved),
        "null key": any(row[1] is None for row in (*come, *go)),
        "duplicate": any(old[row] > 1 or new[row] > 1 for row in (*come, *go)),
        "empty table": bool(come or go) and not (before and after),
    }
    return {name for name in CHANGES if found[name]}


def _keys(rows: Collection[tuple[object, ...]], number: object) -> set[object]:
    return {row[1] for row in rows if row[0] == number}


def operators_of(text: str) -> set[str]:
    """The operators in a query, by the syntax tree of its text, and how deep its SELECTs are within each other."""
    root = parse(text, tokenize(text))
    depth = max(sum(isinstance(each, exp.Select) for each in _around(select)) for select in root.find_all(exp.Select))
    return {f"depth {depth}", *(name for node in root.walk() for name in _operators(node))}


def _around(node: exp.Expr) -> Iterator[exp.Expr]:
    each: exp.Expr | None = node
    while each is not None:
        yield each
        each = each.parent


def _operators(node: exp.Expr) -> Iterator[str]:
    match node:
        case exp.Join():
            yield from _of_join(node)
        case exp.Exists() | exp.In() if node.find(exp.Query):
            word = "EXISTS" if isinstance(node, exp.Exists) else "IN"
            yield f"NOT {word}" if isinstance(with_not(node), exp.Not) else word
        case exp.Union() | exp.Except() | exp.Intersect():
            yield f"{_SETS[type(node)]}{'' if node.args.get('distinct') else ' ALL'}"
        case exp.Count() if isinstance(node.this, exp.Distinct):
            yield "count(DISTINCT)"
        case exp.Filter() | exp.CTE():
            yield "FILTER" if isinstance(node, exp.Filter) else _of_name(node)
        case exp.Window():
            yield "window" if node.args.get("partition_by") else "window of all"
        case exp.Subquery() if isinstance(node.parent, exp.From | exp.Join):
            grouped = node.this.args.get("group") is not None
            yield "group in FROM" if grouped else "subquery in FROM"
        case exp.Subquery() if not isinstance(node.parent, exp.SetOperation | exp.Subquery | exp.Exists | exp.In):
            yield "value of a subquery"
        case exp.Select():
            yield from _of_select(node)


def _of_join(join: exp.Join) -> Iterator[str]:
    side, kind = join.side or "", join.kind or ""
    yield f"{side} {kind}".strip() + " JOIN" if side or kind not in {"", "INNER"} else "JOIN"
    if join.args.get("using"):
        yield "USING"
    if join.args.get("method") == "NATURAL":
        yield "NATURAL"


def _of_name(cte: exp.CTE) -> str:
    names = [each for each in cte.root().find_all(exp.Table) if each.name == cte.alias]
    return "WITH" if len(names) < 2 else "WITH, read twice"


def _of_select(select: exp.Select) -> Iterator[str]:
    if select.args.get("distinct"):
        yield "DISTINCT"
    if select.args.get("having"):
        yield "HAVING"
    group = select.args.get("group")
    if group is not None:
        sets = group.find(exp.GroupingSets, exp.Rollup, exp.Cube) or group.args.get("grouping_sets")
        yield "grouping sets" if sets else "GROUP BY"
        if any(isinstance(each.this, exp.Select) and each.this.args.get("group") for each in _from(select)):
            yield "group of groups"


def _from(select: exp.Select) -> Iterator[exp.Subquery]:
    for each in (select.args.get("from_"), *(select.args.get("joins") or ())):
        if each is not None and isinstance(each.this, exp.Subquery):
            yield each.this
