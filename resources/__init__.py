"""What touches the world: Spark, Delta, Kafka and the processes around them, behind the ports of `backfill`."""
