"""Decides. Pure Python: no Spark, Delta, Kafka or Dagster, no clock, no randomness.

- `audit`: what a table's commits and the ledger's plans must say together
- `proof_scope`: what a check has to look at once more after it has passed
- `sampling`: which places another reader of a proof looks at
"""
