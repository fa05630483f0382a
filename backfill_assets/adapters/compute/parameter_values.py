"""Whether subqueries that give one value still give the one that they gave before their tables changed."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.relational_changes import TableChanges, at_once
from backfill_assets.query.parameters import Parameter
from backfill_assets.query.relational import RelationalQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["values_stay"]

_VALUE = "value"


def values_stay(query: RelationalQuery, numbers: Sequence[int], work: TableChanges) -> bool:
    """Whether the parameters of a query with these numbers have the same values over old rows and over new ones."""

    def value(parameter: Parameter, old: Sequence[int]) -> str | None:
        rows = at_once(query, work, old)
        return _text({at: rows[at].every() for at in parameter.places}, query, parameter, work.computed)

    for number in numbers:
        one = query.parameters[number]
        changed = [at for at in sorted(one.places) if query.occurrences[at] in work.changed]
        before = value(one, changed)
        if before is None or before != value(one, []):
            return False
    return True


def _text(
    rows: "dict[int, DataFrame]", query: RelationalQuery, parameter: Parameter, done: "Callable[[DataFrame], None]"
) -> str | None:
    """One text for each value of a parameter over rows of its places; None for values of which a text does not tell all."""
    from backfill_assets.adapters.sql.apply_relational import value_of

    found = value_of(query, parameter, rows)
    kind = found.schema.fields[0].dataType.typeName()
    if kind in {"array", "map", "struct", "variant"}:
        return None
    text = f"hex({_VALUE})" if kind == "binary" else f"CAST({_VALUE} AS STRING)"
    told = found.selectExpr(f"concat('=', {text}) AS {_VALUE}")
    ((value,),) = told.collect()
    done(told)
    return value or ""
