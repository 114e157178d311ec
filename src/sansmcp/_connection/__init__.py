"""One end of an MCP conversation: the connection, its parts, events, handles and limits.

Begin with `client` and `server`: these classes have the public methods ("verbs" in this room). Then
read `core` (what all parts share), `machine` (which part gets a message), `outgoing` and
`incoming` (the requests of this side and of the peer). This room imports `_wire`, `_spec` and
`_rules`.

Modules by subject:
    what applications hold: `client` and `server`, with `connection` as their base; `typed_requests`
        (overloads, generated); `handles`, `events`, `config`.
    what all parts share: `core`, `machine`, `timers`, `transport` (where byte streams and HTTP
        differ).
    requests of this side: `outgoing`, `incoming_responses`.
    requests of the peer: `intake` (judged and opened), `incoming` (answered or cancelled),
        `used_ids`.
    the members that modern messages add: `modern_messages`; payloads judged in full: `payloads`.
    other subjects: `notifications` with log messages, `pings`, `listings`, `cursors`.

Folders, each for one larger subject, with a module for each side where there are two:
    `opening` (handshake and discovery), `input_required`, `subscriptions`, `caching`, `tasks`.

Words of this room:
    verb: A method that the application or the transport calls. It checks first, then commits.
    part: An object with one concern and its own tables, such as `Pings`.
    legacy: The revisions up to 2025-11-25, which open with a handshake (`initialize`).
    modern: Revision 2026-07-28, in which each request carries what a handshake would say.
    call: As a variable, a request of this side (`OutgoingRequest`). Texts say "request".
    request: As a variable, a request of the peer (`IncomingRequest`).
"""
