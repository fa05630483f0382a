"""Where tables and small objects are stored: local disk or object store.

- `access`: one declaration of a store, as delta-rs takes it and as Spark takes it, for each provider
- `addresses`: addresses of folders, which all clients of a store understand alike
- `asked_stores`: whether stores can be read
- `azure`: the same of an account on Azure
- `copied_log`: a table's log, copied from an object store, each entry once
- `documents`: stored JSON documents, each with the number of its format
- `google`: the same of Google's store
- `log_tail`: the end of a table's log, as one object
- `loopback`: whether an endpoint is on this machine
- `lru`: a cache with a bound
- `markers`: deletes the objects with which Spark's connectors mark folders
- `object_store`: small objects below a folder or bucket prefix
- `options`: declared storage as the options of delta-rs
- `packing`: long maps of a stored document as columns, compressed
- `put_if_absent`: whether a store writes an object only if it is absent
- `s3`: the same of a store on S3
- `store_errors`: what a store's client says of an error, as an error of this package; texts without secrets
- `store_files`: a table's folder in an object store as a file system
- `upstream_location`: where a Delta table is that somebody else writes, and how its store is reached
- `warehouse`: the folder of all tables, and file access there
"""
