"""Where tables and small objects are stored: local disk or object store.

- `documents`: stored JSON documents, each with the number of its format
- `lru`: a cache with a bound
- `object_store`: small objects below a folder or bucket prefix
- `packing`: long maps of a stored document as columns, compressed
- `warehouse`: the folder of all tables, and file access there
"""
