"""Which strategy reads a view's history, at what cost, or why not.

- `choose`: which strategy reads a view's history, at what cost, or why not
- `estimates`: what each strategy would need for given upstreams
- `expiry`: how long what a strategy reads is kept, and how long it needs it
- `reasons`: codes for why a strategy is not chosen, or has a risk
"""
