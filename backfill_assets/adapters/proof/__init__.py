"""What the checks compute: rows derived again, statistics of files against their rows, rows read without Spark.

- `file_statistics`: proof that a table's log is right about its files
- `file_samples`: some rows of some data files, read by pyarrow
- `rows`: proof by deriving rows again
- `second_reader`: compares what Spark reads with what pyarrow reads
- `since`: proof of what was written to a view since a check passed
- `tables`: proof of views over Delta tables
- `topic_samples`: compares a source's table with records read by another Kafka client and parser
- `written`: the data files that were added and removed between two versions of a table, and their rows
"""
