"""What the checks compute: rows derived again, statistics of files against their rows, rows read without Spark.

- `file_statistics`: proof that a table's log is right about its files
- `rows`: proof by deriving rows again
- `since`: proof of what was written to a view since a check passed
- `tables`: proof of views over Delta tables
- `written`: the data files that were added and removed between two versions of a table, and their rows
"""
