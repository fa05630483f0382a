"""Ties declarations to adapters: what can be done with a declared table.

- `controls`: what an operator tells runs of a table
- `dependents`: what the views that read a table ask of it
- `dry_run`: what a refresh would do, without doing it
- `heartbeat`: what a run does between its epochs
- `lifecycle`: the lives of a table
- `proof_case`: what a check is made of
- `proof_rows`: proof that a table's rows are those that its records, or its query, give
- `proof_samples`: what other readers than Spark find of a table and of what it was made of
- `proofs`: the checks of a table, each alone
- `refresh`: a refresh
- `skipping`: what an operator says of rows that a view is to leave out
- `status`: how a declared table stands
- `table_progress`: where a view stands in each Delta table that it reads
- `workspace`: opens the declared tables of a project over its resources
"""
