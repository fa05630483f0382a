"""What topics hold, and the settings of both Kafka clients.

- `connector`: Kafka
- `log`: what of a topic's log is still what it was
"""
