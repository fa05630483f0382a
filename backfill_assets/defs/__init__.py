"""Dagster definitions: assets, checks, jobs, sensors, the YAML component.

- `assets`: sources and views as software-defined assets
- `carried_checks`: check results that are still valid after an idle refresh
- `checks`: asset checks
- `component`: the YAML component
- `dead_runs`: runs whose process died without Dagster noticing
- `definitions`: `build_definitions`
- `jobs`: jobs to refresh, verify and control tables
- `metadata`: what Dagster shows of epochs and refreshes
- `sensors`: sensors for new data and dead runs
- `table_metadata`: what Dagster knows of tables in general
"""
