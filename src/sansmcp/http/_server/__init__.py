"""The server's half of Streamable HTTP; `sansmcp.http` exports what is public of it.

Begin with `endpoint`, which has the public verbs, then `exchange`: one HTTP request and its
response. A request goes from `head` to `methods` and `post`, which find the transport that it is
for in `hosted_transports`: that of a session (`session_store`, `session_transport`, `streams`),
or one that clients share (`shared_transport`). `routed_transport` is the base of both, and `core`
is what all of these share.

A request is judged by `head` with `origins`, by `bodies`, and by `modern_headers`. `sessions` has
the settings and the handle of a session, `event_log` its events for a client that resumes a stream,
and `events` the events of the endpoint.

A request that needs something of the application waits in `lookups`, and `lookup_answers` has the
verbs by which it goes on; `relay` is the response to one that was carried to another process.
"""
