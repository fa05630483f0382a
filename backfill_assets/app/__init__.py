"""Ties declarations to adapters: what can be done with a declared table.

- `choosing`: which strategy a view's life begins with
- `controls`: what an operator tells runs of a table
- `deciding`: makes what decides a table's epochs
- `dependents`: what the views that read a table ask of it
- `dry_run`: what a refresh would do, without doing it
- `heartbeat`: what a run does between its epochs
- `lifecycle`: the lives of a table
- `proof_case`: what a check is made of
- `proof_rows`: proof that a table's rows are those that its records, or its query, give
- `proofs`: the checks of a table, each alone
- `refresh`: a refresh
- `registry`: the declared tables of a project, by name
- `skipping`: what an operator says of rows that a view is to leave out
- `sources`: what shared sources offer
- `status`: how a declared table stands
- `table_progress`: where a view stands in each Delta table that it reads
- `table_upstreams`: what the Delta tables and views that one view reads offer it
- `table`: a declared table with its parts, and how those see it that read it
- `view_inputs`: what one view over Delta tables reads, wired
- `view_query`: the query of a view over Delta tables, tied to the columns that these have
- `workspace`: opens the declared tables of a project over its resources
"""
