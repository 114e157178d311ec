"""The client's half of Streamable HTTP; `sansmcp.http` exports what is public of it.

Begin with `endpoint`: `ClientEndpoint` makes the parts and has the public methods. Then read
`exchange` (one HTTP request and its response), `post` (one message on its way) and `response_judge`
(what a status means). This room imports rooms below `sansmcp.http`, and of `_server` one event.

Modules by subject:
    the endpoint: `endpoint`, `core`, `events`.
    one exchange: `exchange`, `headers`, `urls`, `response_head`, `response_judge`, `responses`.
    messages: `post`, `post_transport` (the way of each message of the connection), `tool_headers`.
    streams: `streams` (by GET), `retries` (when they are resumed).
    a session: `session`; `old_transport` is HTTP+SSE of 2024-11-05.
    credentials: `authorization`, `auth_challenges`.

Words of this room:
    exchange: One HTTP request and the response to it.
    owner: What an exchange is made for, a message or a stream. It may need several exchanges.
    post: A message that is POSTed; a request of this side has it as its route.
    held: An exchange that waits until the application supplies credentials.
    moved: A request of a lost session that is sent again in the next session.
    former: A request that a lost session leaves in doubt: the server may have run it.
"""
