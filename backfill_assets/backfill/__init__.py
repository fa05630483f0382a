"""What decides. Pure Python: no Spark, Delta, Kafka or Dagster here, no clock, no randomness; all of it is passed in."""
