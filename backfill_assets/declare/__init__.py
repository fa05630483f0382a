"""What users declare: sources, Delta tables and views, as frozen values that are checked when they are created.

- `added_columns`: changed declarations whose query only gives more columns
- `arguments`: checks of arguments that several declarations share
- `declarations`: the functions that users call
- `fingerprints`: what the contents of a table depend on
- `model`: what they return: sources, Delta tables and views as frozen values
- `stores`: how object stores are declared
"""
