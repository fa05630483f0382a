"""Delta tables through their logs, without Spark: outputs, upstreams, staged files, the spool.

- `arrow_files`: writes rows that this process holds as a Parquet file of a table
- `arrow_reader`: opens data files with Arrow
- `arrow_types`: Arrow types of Parquet footers, spelled like the types of a Delta table in `query.ddl`
- `checkpoint_files`: the files that a checkpoint of a log names, as Arrow has them
- `column_metadata`: what the log says about a Delta table's columns besides their names and types
- `commits`: reads the commits in a Delta table's log
- `copied_files`: copies of a table's data files in the folder of another one
- `created_table`: creates the empty table of an output
- `file_bounds`: keeps only exact bounds in the log of an output
- `files_to_search`: which files of a version are searched for values in this process
- `footers`: how many rows Parquet files have, as their own footers say
- `found_rows`: finds the rows of a table that have one of few values in a column
- `key_statistics`: keys of Delta tables, according to the statistics in the log
- `layout`: how the files of a view are laid out
- `log_replay`: the protocol, metadata and files of a version of a Delta table, replayed from its log
- `logged_changes`: what one commit of a Delta table changed, as its entry in the log says
- `maintenance`: commits that change no rows of an output
- `merged_files`: the commit of a merge
- `merged_rows`: merges keyed changes in this process
- `output`: one Delta table that only epochs change
- `plain_tables`: whether the files of a loaded version hold just the rows that a reader sees
- `same_key`: when two rows have the same key, in the SQL of delta-rs (DataFusion)
- `spool`: the spool of a view
- `staging`: files that Spark wrote into a table's folder and no reader sees yet
- `table_facts`: facts about a Delta table from its log and properties, for the choice of a strategy
- `touched_files`: which files of an output a merge may touch, and where it has to look
- `upstream`: Delta tables as upstreams
"""
