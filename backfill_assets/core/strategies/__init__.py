"""How history is read and the change log is followed: one module for each strategy.

- `arrangement`: strategy `arrangement`, a keyed scan: ranges of the key, each from the newest version
- `change_log`: a table's change log in parts that one read can take
- `full_refresh`: reading tables in full instead of a change log that is far larger
- `ingest`: which offsets of a topic a source ingests next
- `hashed_history`: the history of a query over several tables by the hashes of a key that partitions it
- `joined_history`: strategy `snapshot` for a query over several tables: files of one, joined with the others
- `key_cuts`: cuts a table's key into ranges with about the same number of rows
- `rearranged`: strategy `rearranged`, a CDC spool: files of a pinned version, while changes are captured
- `rule_choice`: which rule a view over whole tables takes, and why it is computed in full
- `same_table`: whether a Delta table is still the one that a view has read
- `snapshot`: strategy `snapshot`: files of a pinned version, in chunks
- `snapshot_once`: strategy `snapshot_once`: the same in one commit
- `source`: strategy `source`: history from Kafka, live rows from bronze
- `table_lag`: how far a view is behind its Delta tables, and the bound of this lag
- `table_plans`: what follows from a plan over Delta tables for the rows that it computes
- `table_skips`: keys of Delta tables that a view leaves out
- `table_views`: views over Delta tables and other views
- `truncation`: whether the records below a position are still those that were read
- `whole_history`: the history of a query that is computed over whole tables
"""
