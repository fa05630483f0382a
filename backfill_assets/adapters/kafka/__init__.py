"""What topics hold, and the settings of both Kafka clients.

- `connector`: what topics hold; the Dagster resource, which reads secrets (`env:NAME`) from the environment
- `log`: whether a topic's log is still the one that was read
"""
