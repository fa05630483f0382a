"""What has been consumed and what is read next: positions, reads, lag, retention, order.

- `bronze_files`: which data files of a bronze table may have rows of the offsets to read
- `driving`: what drives the history of a query over several tables that is read in chunks
- `lag`: how far a view may fall behind its upstream while it catches up
- `order`: in which order the histories of several upstreams are read, such as dimensions before facts
- `positions`: how far each partition has been consumed, and the allowed transitions
- `reads`: what an epoch reads
- `retention`: whether a pinned snapshot is read before VACUUM and log clean-up may remove what it needs
- `value`: the base of all values that are saved
"""
