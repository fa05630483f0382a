"""The epoch protocol: records, interfaces to the world, plans and commits, runs, limits, costs.

- `bounds`: of which columns the data files of an output state bounds in its log
- `costs`: what the choice of a strategy is made from
- `culprits`: finds the rows that cannot be computed among many, by halves, with bounded effort
- `limits`: how fast and how long a run works
- `parts`: what the epochs of one table are made with
- `ports`: the small interfaces that the deciding code names and that adapters in `resources` (or simulations) implement
- `protocol`: the one protocol
- `records`: the values of the epoch protocol
- `report`: numbers that say how far a table is
- `run`: a run
- `skips`: rows that an operator has a view leave out
- `staged_columns`: whether staged files have just the columns of the table that is to take them
- `staged_folders`: names of staged folders, and the one rule of which of them may be swept
"""
