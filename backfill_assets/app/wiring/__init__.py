"""What opened tables are wired from: what is declared, what upstreams offer, what decides and what chooses.

- `choosing`: which strategy a view's life begins with
- `deciding`: makes what decides a table's epochs
- `registry`: the declared tables of a project, by name
- `sources`: what shared sources offer
- `table_upstreams`: what the Delta tables and views that one view reads offer it
- `table`: a declared table with its parts, and how those see it that read it
- `view_inputs`: what one view over Delta tables reads, wired
- `view_query`: the query of a view over Delta tables, tied to the columns that these have
"""
