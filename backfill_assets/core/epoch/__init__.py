"""The epoch protocol: records, interfaces to the world, plans and commits, runs, limits, costs.

- `bounds`: which columns of a data file have bounds in the output's log
- `commit`: one commit, whose outcome is judged by looking again
- `conservation`: whether Spark has read what is there, by counts
- `costs`: what the choice of a strategy is made from
- `culprits`: finds the rows that cannot be computed among many, by bisection, with limited effort
- `limits`: how fast and how long a run works
- `lives`: how a table's life begins, ends, or is taken over from another table
- `merge_groups`: how a merge lays out what it writes
- `parts`: what the epochs of one table need
- `ports`: the small interfaces that deciding code uses and that adapters (or simulations) implement
- `protocol`: the one protocol of epochs
- `records`: the values of the epoch protocol
- `report`: numbers about the progress of a table
- `run`: a run, epoch after epoch
- `skips`: rows that a view leaves out because an operator decided so
- `staged_columns`: whether staged files have exactly the columns of their table
- `staged_folders`: names of staged folders, and the rule that says which of them may be deleted
- `touched_spans`: between which values of a key a merge has to look for rows
"""
