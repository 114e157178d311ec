"""One end of a conversation: the connection, its parts, its events, handles and limits.

Begin with `client` and `server`, which have the public verbs, or with `connection`. This room knows
`_wire`, `_spec` and `_rules`.
"""
