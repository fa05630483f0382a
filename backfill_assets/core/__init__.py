"""Decides. Pure Python: no Spark, Delta, Kafka or Dagster, no clock, no randomness.

- `audit`: how a table's commits and the ledger's plans must agree
- `proof_scope`: what a check that has passed before has to prove
- `sampling`: which samples of a table a proof reads again with another reader
"""
