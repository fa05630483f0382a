"""Simulated upstreams, crash points and a manual clock, for the project's own tests and for those of its users.

- `crash_points`: ends a run at a chosen step of the epoch protocol
- `manual_clock`: a clock that only moves when it is told to, so that tests of waiting never wait
- `simulated_ledger`: a ledger in memory
- `simulated_table`: simulated Delta tables with delta-rs's optimistic concurrency
- `simulated_topic`: a simulated Kafka topic, as far as consumers can tell it from a real one
- `simulation`: topics, tables, ledger and Spark in memory, driven by the real core
- `world_settings`: what a test sets in a simulated world
"""
