"""What has been consumed and what is read next: positions, reads, lag, retention, order.

- `bronze_files`: which data files of a bronze table may hold rows of the offsets that are to be read
- `lag`: how far a view may fall behind its upstream while it catches up
- `order`: in which order the histories of several upstreams are read, such as dimensions before facts
- `positions`: how far each partition has been consumed, and the moves that are allowed
- `reads`: what an epoch reads
- `retention`: whether a pinned snapshot is read before VACUUM and log clean-up may take what it needs
- `value`: what all values that are saved have in common
"""
