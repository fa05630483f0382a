"""What Dagster knows of tables in general: their name, their size, their columns, and where these come from."""

from typing import Any

import dagster as dg

from backfill_assets.app.refresh import Refresh
from backfill_assets.app.workspace import Workspace
from backfill_assets.declare.model import Declared, MaterializedView
from backfill_assets.query.ddl import Column, columns_of_delta
from backfill_assets.query.lineage import column_lineage
from backfill_assets.query.query import input_columns

__all__ = ["table_metadata", "table_name"]


def table_name(declared: Declared) -> str:
    """The name by which Dagster finds, shows and matches the asset's table: `views.<name>` or `sources.<name>`.

    Dagster expects what identifies a table where it is stored, from the outermost part on, with dots. Its own I/O managers
    say `<schema>.<table>`, after `<database>.` where there is one. In a warehouse a table's folder has the part of a schema,
    and names are unique in a code location. The warehouse itself is no database: it is a path, which differs between
    machines, or a bucket. Who registers the tables in a catalog gives their names there as `metadata`, which has precedence.
    """
    return declared.target.replace("/", ".")


def table_metadata(workspace: Workspace, declared: Declared, done: Refresh) -> dict[str, Any]:
    """Metadata of a materialization under Dagster's own names: row count, column schema, column lineage, and place."""
    location = workspace.table(declared).output.location
    table = location.last()
    columns = () if table is None else _visible(columns_of_delta(table.schema().to_json()))
    schema = dg.TableSchema(columns=[dg.TableColumn(each.name, each.type.lower()) for each in columns])
    lineage = _lineage(workspace, declared, columns) if isinstance(declared, MaterializedView) else None
    return {
        "dagster/row_count": done.report.record.rows_total,
        "dagster/uri": location.uri,
        **({"dagster/column_schema": schema} if columns else {}),
        **({"dagster/column_lineage": lineage} if lineage else {}),
    }


def _visible(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(each for each in columns if not each.name.startswith("__"))


def _lineage(workspace: Workspace, view: MaterializedView, columns: tuple[Column, ...]) -> dg.TableColumnLineage | None:
    """From which columns of its upstreams each column of a view comes; None where that cannot be told."""
    tables = {name: _visible(found) for name, found in input_columns(workspace.bound(view)).items()}
    found = column_lineage(view.text, tables)
    keys = {each.name: each.key for each in view.upstreams}
    deps = {
        each.name: [dg.TableColumnDep(asset_key=keys[upstream], column_name=name) for upstream, name in taken]
        for each in columns
        if (taken := found.get(each.name.lower()))
    }
    return dg.TableColumnLineage(deps_by_column=deps) if deps else None
