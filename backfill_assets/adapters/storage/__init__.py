"""Where tables and small objects are stored: local disk or object store.

- `documents`: stored JSON documents, each with the number of its format
- `lru`: a cache with a bound
- `object_store`: small objects below a folder or bucket prefix
- `options`: how the warehouse's storage is declared
- `packing`: long maps of a stored document as columns, compressed
- `put_if_absent`: whether a store writes an object only if it is absent
- `s3`: one declaration of an S3 store, as delta-rs takes it and as Spark takes it
- `warehouse`: the folder of all tables, and file access there
"""
