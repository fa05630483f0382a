"""What users declare: sources, tables and views, as frozen values that are checked when they are made.

- `arguments`: checks of arguments that all declarations share
- `declarations`: what users declare
"""
