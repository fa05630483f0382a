"""Where tables and small objects lie: local disk or object store.

- `object_store`: small objects below a folder or bucket prefix
- `warehouse`: where tables live, and plain file access there
"""
