"""What the checks compute: rows derived again, statistics of files against their rows, rows read without Spark.

- `file_statistics`: proof that a table's log tells the truth of its files
- `file_samples`: some rows of some data files, read by pyarrow
- `rows`: proof by re-deriving
- `second_reader`: what Spark delivers against what pyarrow reads
- `since`: proof of what was written to a view since a check passed
- `tables`: proof of views over Delta tables
- `topic_samples`: a source's table against records read by another Kafka client and parser
- `written`: the data files that came to a table and went from it between two of its versions, and their rows
"""
