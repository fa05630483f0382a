"""SQL to a maintenance plan, by sqlglot; no Spark.

- `aggregate`: reads an aggregate query
- `clock`: functions of the clock, and the query with a recorded time in their places
- `current_words`: words that call functions of the clock or the session without parentheses
- `ddl`: column lists as Spark writes them
- `determinism`: refuses what gives other rows when it is computed again
- `exact`: which aggregates are the same in whatever order their addends come
- `expressions`: checks the expressions of one part of a query, and names the columns that it gives
- `functions`: the Spark functions that a row-wise query cannot use, by name and by the reason why
- `group_order`: what tells the groups of a SELECT apart, for the order of its windows
- `grouping`: finds groups and aggregates in the words of a query, and rewrites its SELECT list over them
- `grouped_rows`: cuts a query that groups joined tables in two, rows and groups
- `key_classes`: the keys by which a query may be computed in part
- `kinds`: families of types within which values that are equal have equal hashes
- `lineage`: from which columns of its upstreams each column of a view is computed
- `linear`: which places of a query may be bound to a table's changes alone
- `occurrences`: where a query names its upstreams
- `parsing`: splits a query's text into its row-wise parts
- `partition`: whether a query can be computed for some values of a key alone
- `place_reads`: which upstreams of a query Spark may read only in part
- `query`: a view's query of whichever kind
- `record_columns`: the names of the columns that a source's table adds to those of its schema
- `refusals`: why a query cannot be maintained
- `relational`: reads a query of any shape
- `resolved`: a query as a tree for analysis
- `rowwise`: reads a row-wise query
- `spelling`: one spelling for a query's text
- `ties`: makes orders total where the result depends on which of several equal rows comes first
"""
