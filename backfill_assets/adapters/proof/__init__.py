"""What the checks compute: rows derived again, statistics of files against their rows.

- `file_statistics`: proof that a table's log tells the truth of its files
- `rows`: proof by re-deriving
- `since`: proof of what was written to a view since a check passed
- `tables`: proof of views over Delta tables
- `written`: the data files that came to a table and went from it between two of its versions, and their rows
"""
