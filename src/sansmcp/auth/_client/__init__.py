"""The client's side of authorization: `client.AuthorizationClient` and its parts.

An attempt goes through the states of `states`. `flow.Flow` decides what comes next; each other part
makes one kind of request and judges what comes back. It knows `_common`, `_wire` and `_spec`, and
the challenges of `http` by their type. Begin with `client`, then `flow`.
"""
