"""Delta tables through their logs, without Spark: outputs, upstreams, staged files, the spool.

- `arrow_types`: types of Arrow, as Parquet's footers are read, spelled as `query.ddl` spells those of a Delta table
- `column_metadata`: what the log says of a Delta table's columns beside their names and types
- `commits`: the commits of a Delta table's log as they are written
- `file_bounds`: keeps the log of an output to bounds that are exact
- `key_statistics`: keys of Delta tables, as far as the log says
- `log_replay`: what a version of a Delta table is made of, action by action, as its log states it
- `maintenance`: commits that change no rows of an output
- `output`: one Delta table that only epochs change
- `same_key`: when two rows have the same key, in the SQL of delta-rs (DataFusion)
- `spool`: the spool of a view
- `staging`: files that Spark wrote into a table's folder and no reader sees yet
- `table_facts`: what the log and properties of a Delta table say of it, for the choice of a strategy
- `upstream`: Delta tables as upstreams
"""
