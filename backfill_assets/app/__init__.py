"""Ties declarations to adapters: what can be done with a declared table.

- `controls`: an operator's pause and throttle
- `dependents`: what the views that read a table need from it
- `dry_run`: what a refresh would do, without doing it
- `heartbeat`: what a run does between its epochs
- `lifecycle`: reset, drop, rebuild and maintenance of a table
- `proof_case`: the inputs and the outcome of a check
- `proof_rows`: proof that a table's rows are those of its records, or of its query
- `proof_samples`: samples of a table and of its upstreams, read without Spark
- `refresh`: a refresh: creation, then epoch after epoch
- `replacing`: replaces the definition of a view while it is read
- `skipping`: rows that a view leaves out because an operator decided so
- `status`: the state of a declared table
- `table_checks`: the checks of a table: what each compares, and what it says
- `table_progress`: the progress of a view in each Delta table that it reads
- `warm_up`: a small pipeline that loads the classes that every refresh needs
- `workspace`: opens the declared tables of a project with its resources
"""
