"""Dagster alone: assets, checks, jobs, sensors, the YAML component, definitions.

- `assets`: sources and views as software-defined assets
- `carried_checks`: check results that still stand
- `checks`: asset checks
- `component`: the YAML component
- `dead_runs`: runs whose process died without a word
- `definitions`: `build_definitions`
- `jobs`: jobs
- `metadata`: what Dagster shows of epochs and refreshes
- `sensors`: sensors
"""
