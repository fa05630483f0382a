"""What users declare: sources, tables and views, as frozen values that are checked when they are made.

- `arguments`: checks of arguments that all declarations share
- `declarations`: the functions that declare
- `fingerprints`: what a table's content depends on
- `model`: what they give: sources, tables and views as frozen values
"""
