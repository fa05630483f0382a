"""What Spark computes for an epoch: inputs, queries, keyed changes.

- `attempt`: one attempt at computing a plan over Delta tables
- `broadcast_memory`: the memory that a Spark session has for broadcasts, and the memory that keys would take
- `changes`: runs a view's query of any kind: all of it in batch, or the keyed changes of an epoch
- `chosen_steps`: by which rule an epoch follows what changed
- `consolidated`: the effect of a change log on a view, one change for each key
- `differences`: how the result of a recomputed view differs from its present rows
- `doubtful_bounds`: reads tables of other writers without relying on bounds in their files that may not be exact
- `key_checks`: keys that must be unique, checked before anything is committed
- `key_ranges`: ranges of a Delta table's key
- `merge`: merging keyed changes with Spark, for those that do not fit in this process's memory
- `parquet_files`: reads Parquet files by their addresses
- `poison`: runs a computation, and translates Spark's errors into errors of this package
- `poison_search`: finds the rows of an epoch's input that Spark cannot compute because of their values
- `recorded_rows`: the rows of a Delta table that a view stands for at one of its positions
- `relational_changes`: how a view over several tables changes, from what changed in them
- `restricted`: a query computed again for the values of a key that changes touch
- `rules`: what changes of tables do to a view whose query has a rule for them
- `scans`: counts the rows that Spark reads of an epoch's inputs
- `setup_errors`: errors of Spark that its set-up causes, not the data
- `staged_rows`: stages the rows of an epoch as files, and counts them
- `source_compute`: carries out a plan's reads with Spark and stages the rows
- `spark_errors`: what Spark's errors say
- `table_compute`: carries out a plan over Delta tables with Spark
- `table_rows`: the rows of a Delta table that belong to a read
- `tasks`: how many tasks compute and write rows
- `version_rows`: all rows of one version of a Delta table, as a Spark DataFrame
"""
