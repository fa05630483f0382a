"""What Spark computes for an epoch: inputs, queries, keyed changes.

- `broadcast_memory`: how much memory a Spark session has for what it broadcasts, and how much keys would take
- `changes`: what Spark does with a view's query of whichever kind
- `differences`: how a view that is recomputed differs from the rows that it holds
- `doubtful_bounds`: reading tables of others without trusting what their files state of columns whose bounds may not be exact
- `key_checks`: keys that have to be unique, looked at before anything is committed
- `key_ranges`: ranges of a Delta table's key
- `merge`: merging keyed changes with Spark, for those that do not fit in this process's memory
- `poison`: runs what computes a plan, and turns what Spark says against it into errors of ours
- `poison_search`: finds the rows of an epoch's input that Spark refuses for their values
- `recorded_rows`: the rows of a Delta table that a view stands for at one of its positions
- `relational_changes`: how a view over several tables changes, from what changed in them
- `restricted`: a query computed again for the values of a key that changes touch
- `rules`: what changes of tables do to a view whose query has a rule for them
- `source_compute`: carries out a plan's reads with Spark and stages the rows
- `table_compute`: carries out a plan over Delta tables with Spark
- `table_rows`: the rows of a Delta table that a read names
- `version_rows`: all rows of one version of a Delta table, as a DataFrame of Spark
"""
