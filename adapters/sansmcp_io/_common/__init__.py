"""What all adapters share: errors, the call of a handler, limits, logs. No event loop is involved.

Begin with `call` (what a handler is given) and `errors` (what adapters raise).
"""
