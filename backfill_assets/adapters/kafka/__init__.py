"""Offsets, identity and logs of topics, and the settings of both Kafka clients.

- `client_settings`: reads secrets (`env:NAME`) from the environment, and translates settings for Kafka's Java client
- `connector`: offsets and identity of topics; the Dagster resource
- `log`: whether a topic's log is still the one that was read
"""
