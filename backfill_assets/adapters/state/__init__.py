"""The state store: plans, leases, controls, passes of checks.

- `ledger`: the plans of all tables
- `state_store`: leases, controls, left-out rows and passes of checks; the Dagster resource
- `table_documents`: the documents of one kind
"""
