"""Functions on Spark SQL and DataFrames, used by other folders; they read no table and keep no session.

- `apply_aggregate`: keeps the groups of an aggregate query on Spark
- `apply_relational`: runs a query of any shape on Spark DataFrames
- `apply_rowwise`: runs a row-wise query on Spark DataFrames
- `broadcasts`: whether the keys of a join are broadcast or sorted with the rows
- `floats`: the one form of floats that are equal
- `kafka_records`: turns Kafka records into bronze rows
- `keys`: keys as text
- `map_columns`: groups rows by columns that may hold maps
- `named_rows`: few rows that are to be named to somebody
- `offset_ranges`: ranges of offsets as one condition in Spark SQL, for any number of partitions
- `semi_join`: the rows of one DataFrame whose key is in another one, by either kind of join
- `sql_over`: SQL text over DataFrames
"""
