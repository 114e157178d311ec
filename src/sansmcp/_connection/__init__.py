"""One end of an MCP conversation: the connection, its parts, events, handles and limits.

Begin with `client` and `server`: these classes have the public methods ("verbs" in this room). Then
read `core` (what all parts share), `machine` (which part gets a message), `outgoing` and
`incoming` (the requests of this side and of the peer). This room imports `_wire`, `_spec` and
`_rules`.

Words of this room:
    verb: A method that the application or the transport calls. It checks first, then commits.
    part: An object with one concern and its own tables, such as `Pings`.
    legacy: The revisions up to 2025-11-25, which open with a handshake (`initialize`).
    modern: Revision 2026-07-28, in which each request carries what a handshake would say.
    call: In variable names, a request that this side has sent (`OutgoingRequest`).
    request: In variable names, a request of the peer (`IncomingRequest`).
"""
