"""Connects opened tables: declarations, upstreams, deciders and the choice of strategies.

- `choosing`: the strategy with which a view's life begins
- `deciding`: creates the decider of a table's epochs
- `registry`: the declared tables of a project, by name
- `sources`: the topics of Kafka sources, and their bronze tables
- `table_upstreams`: the Delta tables and views that one view reads
- `table`: a declared table with its parts
- `view_inputs`: the inputs of one view over Delta tables, with their adapters
- `view_query`: the query of a view over Delta tables, with their columns
"""
