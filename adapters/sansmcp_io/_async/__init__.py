"""What the event loops with `async` share; each loop brings the primitives that `loop` lists.

Begin with `client` and `server` (what applications hold), or with `dispatch` (what is done about
each event). This room knows `_common` and `_http1`.
"""
