"""Touches the world: Spark, Delta, Kafka and the processes around them, behind the interfaces of `core.epoch.ports`."""
