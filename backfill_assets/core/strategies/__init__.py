"""How history is read and the change log is followed: one module for each strategy.

- `arrangement`: strategy `arrangement`
- `change_log`: a table's change log in parts that one read can take
- `full_refresh`: reading tables in full instead of a change log that outweighs them
- `ingest`: a shared source
- `key_cuts`: cuts a table's key into ranges of about the same number of rows
- `rearranged`: strategy `rearranged`
- `same_table`: whether a Delta table is still the one that a view has read
- `snapshot`: strategy `snapshot`
- `snapshot_once`: strategy `snapshot_once`
- `source`: strategy `source`
- `table_lag`: how far a view is behind its Delta tables, and the bound of that
- `table_skips`: keys of Delta tables that a view leaves out, in every version of the table
- `table_views`: views over Delta tables and other views
- `truncation`: whether the records below a position are still those that were read
- `whole_history`: the history of a query that is computed over whole tables
"""
