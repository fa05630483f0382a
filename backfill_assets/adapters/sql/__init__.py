"""Pieces of Spark SQL and DataFrames that are put together elsewhere; they read no table and keep no session.

- `apply_aggregate`: keeps the groups of an aggregate query on Spark
- `apply_relational`: runs a query of any shape on Spark DataFrames
- `apply_rowwise`: runs a row-wise query on Spark DataFrames
- `broadcasts`: whether the keys of a join are sent to every task (broadcast) or sorted with the rows
- `floats`: the one form of floats that are equal
- `kafka_records`: turns Kafka records into bronze rows
- `keys`: keys that are named by texts
- `offset_ranges`: ranges of offsets as a condition in Spark SQL, one text for ten thousand partitions as for one
- `semi_join`: the rows of one DataFrame whose key another one has, by whichever way of joining was chosen
"""
