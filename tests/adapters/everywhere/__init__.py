"""Behaviour that every adapter must have, tested once for all of them.

A test here is one `async def` over a few names that all adapters have in common, and runs with
every client on every kind of server. So there are three parts:

- `test_*.py`, the bodies. They know neither a loop nor a transport, only a `Shim` and its client.
- `shims.py`, one `Shim` for each client: how it is opened over a transport, how a body is run,
  how several things are done at once, and how a caller gives up a call. On trio the bodies run
  as they are. The blocking client is called directly by methods that are `async` in name only: a
  body then never suspends, and stepping it once runs it to its end. Over HTTP, each has a
  shim of its own, and what concerns processes and pipes is marked `process`.
- `server.py`, one handler, which is written in the same way and served by each adapter in a
  process of its own.

Real processes and real time: no test here may depend on how fast they are.
"""
