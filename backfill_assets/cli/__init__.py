"""The command line.

- `commands`: the commands and their options
- `local_project`: the project of the current folder and its Dagster instance
- `printing`: what the command line prints for people
- `summary`: what a finished run did, from the events that Dagster recorded
"""
