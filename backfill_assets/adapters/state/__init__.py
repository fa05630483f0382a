"""The state store: plans, leases, controls, passes of checks.

- `ledger`: the ledger
- `state_store`: the state store
"""
