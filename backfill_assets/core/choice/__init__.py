"""Which strategy reads a view's history, at what cost, or why not.

- `choose`: which strategy reads a view's history, at what cost, or why not
- `estimates`: what each strategy would take for given upstreams
- `reasons`: why a strategy is not taken, or is to be watched
"""
