"""Simulated upstreams, crash points and a manual clock: for the project's own tests and for those of its users.

- `crash_points`: crash points
- `manual_clock`: a clock that moves only by hand, so that tests of waiting never wait
- `simulated_ledger`: a simulated ledger
- `simulated_table`: simulated Delta tables with delta-rs's optimistic concurrency
- `simulated_topic`: a simulated Kafka topic, as far as consumers can tell it from a real one
- `simulation`: a whole world in memory
"""
