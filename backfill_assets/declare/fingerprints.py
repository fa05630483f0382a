"""What a table's content depends on: the digests of its declaration, part by part, so that a change can be named."""

from collections.abc import Mapping

from backfill_assets.core.epoch.records import SELECT, Fingerprint, fingerprint
from backfill_assets.declare.arguments import Start
from backfill_assets.declare.model import LAYOUT, PARSER, Declared, DeltaTable, KafkaSource, MaterializedView
from backfill_assets.query.ddl import ddl
from backfill_assets.query.select_list import SelectList, select_list

__all__ = ["fingerprint_of", "stated"]


def fingerprint_of(declared: Declared) -> Fingerprint:
    """The digests of all that a table's content depends on."""
    match declared:
        case KafkaSource():
            return fingerprint(
                topic=declared.topic,
                schema=ddl(declared.columns),
                parser=f"{declared.format}/{PARSER}",
                start=_start_text(declared.start),
                bronze=declared.bronze,
                isolation=declared.isolation,
            )
        case MaterializedView():
            upstreams = [(source.name, fingerprint_of(source)) for source in declared.sources]
            if declared.query is None:
                keys = [(each.name, each.primary_key) for each in declared.tables if isinstance(each, DeltaTable)]
                own = {"checked": declared.own_key} if declared.own_key else ()
                read = [(each.name, fingerprint_of(each)) for each in declared.tables if isinstance(each, KafkaSource)]
                listed = select_list(declared.text)
                return ({} if listed is None else {SELECT: stated(listed)}) | fingerprint(
                    query=declared.text,
                    key=[own, keys],
                    **({"layout": LAYOUT} if declared.whole else {}),
                    **({"schema": [(name, parts["schema"]) for name, parts in read]} if read else {}),
                    **({"parser": [(name, parts["parser"]) for name, parts in read]} if read else {}),
                )
            return fingerprint(
                query=declared.text,
                key=declared.query.key_columns,
                schema=[(name, parts["schema"]) for name, parts in upstreams],
                parser=[(name, parts["parser"]) for name, parts in upstreams],
            )


def stated(listed: SelectList) -> str:
    """What a fingerprint says of a SELECT list: how many expressions it has, and a digest of these and of all around them."""
    (digest,) = fingerprint(select=[listed.around, listed.items]).values()
    return f"{len(listed.items)}:{digest}"


def _start_text(start: Start) -> str:
    """Equal starts give equal texts, in whatever order offsets were named."""
    return str(dict(sorted(start.items())) if isinstance(start, Mapping) else start)
