"""The parts that all adapters share: errors, calls of handlers, limits, logs. No event loop.

Begin with `call` (what a handler is given) and `errors` (what adapters raise).
"""
