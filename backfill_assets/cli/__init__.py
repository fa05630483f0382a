"""The command line.

- `commands`: the command line
- `local_project`: what the command line works on
- `printing`: what the command line prints for people
- `summary`: what a finished run did, in plain values, from the events that Dagster recorded
"""
